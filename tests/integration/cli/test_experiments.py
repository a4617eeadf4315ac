"""``stepladder experiment`` and ``stepladder stability``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from stepladder.testing import wait_until

if TYPE_CHECKING:
    from .conftest import Shell

SUM = """
name: tried
version: 1
input: {type: object, properties: {team: {type: string, maxLength: 40}}, required: [team]}
start: sum
states:
  sum:
    ask: "{{ input.team }} used 12 hours at 3 dollars."
    output: {type: object, properties: {total: {type: integer}}, required: [total], additionalProperties: false}
    rules: [{id: arithmetic, check: "output.total == 36", pointer: /total, reason: must be hours times 3}]
    sampling: {temperature: 0.7}
    next: done
  done: {end: succeeded, result: {total: turns.sum.total}}
"""


@pytest.fixture(scope="module")
def tried(shell: Shell) -> str:
    """A workflow whose first answer breaks a rule, and whose second does not."""
    shell.write("tried.yaml", SUM)
    assert shell.run("publish", "tried.yaml").code == 0
    assert shell.run("publish", "paying.yaml").code == 0
    shell.write("lines.jsonl", '{"team": "x"}\n{"team": \n')
    shell.write("inputs.jsonl", '{"team": "one"}\n\n{"team": "two"}\n')
    return "tried"


def run_all(shell: Shell, shown: Any) -> None:
    for run in shown["runs"]:
        assert shell.run("run", "--job", run["job"]).code == 0


def fits(text: str) -> bool:
    return all(len(line) <= 100 for line in text.splitlines())


def test_two_variants_are_run_and_compared(shell: Shell, tried: str) -> None:
    rule = "states.sum.rules.0.check=output.total > 0"
    words = ("experiment", "run", tried, "--inputs", "inputs.jsonl", "--set", rule, "--no-wait")
    ordered = shell.ok(*words, "--name", "a looser rule", "--json")
    shown = ordered.json
    assert (shown["jobs"], shown["at_rest"], shown["changes"]["a"]) == (4, 0, {})
    early = shell.run("experiment", "show", shown["id"])
    assert "0 of 4 jobs have ended" in early.out
    run_all(shell, shown)
    done = shell.run("experiment", "show", shown["id"])
    assert (done.code, done.err) == (0, "")
    assert fits(done.out), done.out
    for said in ("a looser rule", "2 succeeded", "validity", "50.0% (15-85) of 4", "100.0% (34-100) of 2", "b minus a"):
        assert said in done.out, done.out
    listed = shell.run("experiment", "show")
    assert shown["id"] in listed.out
    assert fits(listed.out), listed.out


def test_stability_runs_the_same_job_with_varying_seeds(shell: Shell, tried: str) -> None:
    words = ("stability", tried, "--input", '{"team": "three"}', "--times", "3", "--no-wait", "--json")
    shown = shell.run(*words).json
    run_all(shell, shown)
    done = shell.run("experiment", "show", shown["id"])
    assert fits(done.out), done.out
    assert "3 times" in done.out
    assert "3 succeeded" in done.out
    report = shell.run("experiment", "show", shown["id"], "--json").json
    found = {(one["where"], one["pointer"]): one for one in report["fields"]}
    assert found["sum", "/total"]["agreement"] == found["result", "/total"]["agreement"] == 1.0
    assert (found["sum", "/total"]["common"], found["sum", "/total"]["empty"]) == (36, 0.0)
    query = "SELECT DISTINCT sample, sampling::jsonb FROM attempts JOIN jobs ON jobs.id = job_id WHERE experiment = %s"
    sampled = sorted(shell.rows(query, shown["id"]), key=lambda row: row[0])
    assert sampled == [(seed, {"temperature": 0.7, "seed": seed}) for seed in (1, 2, 3)]


@pytest.mark.long
def test_it_waits_until_every_job_is_at_rest(shell: Shell, tried: str) -> None:
    def ordered() -> list[tuple[Any, ...]]:
        query = "SELECT id FROM jobs WHERE experiment IS NOT NULL AND input::text LIKE '%%patient%%'"
        return shell.rows(query)

    words = ("stability", tried, "--input", '{"team": "patient"}', "--times", "2", "--json")
    with shell.start(*words) as process:
        wait_until(lambda: len(ordered()) == 2, 30, what="the jobs are written")
        assert process.poll() is None
        for (job,) in ordered():
            assert shell.run("run", "--job", str(job)).code == 0
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert json.loads(out)["at_rest"] == 2


def test_a_job_can_be_repeated_with_its_own_seed(shell: Shell, tried: str) -> None:
    old = shell.run("run", "tried.yaml", "--input", '{"team": "four"}', "--json").json
    shown = shell.run("stability", old["id"], "--times", "2", "--seeds", "same", "--no-wait", "--json").json
    rows = shell.rows("SELECT input, variant FROM jobs WHERE experiment = %s", shown["id"])
    assert rows == [({"team": "four"}, None)] * 2
    assert shown["workflow"] == tried


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("experiment", "run", "tried", "--inputs", "lines.jsonl"), "both variants are the same"),
        (("experiment", "run", "nobody", "--inputs", "inputs.jsonl", "--set", "model=x"), "no workflow nobody"),
        (("experiment", "run", "tried", "--inputs", "lines.jsonl", "--set", "model=x"), "line 2 is not JSON"),
        (("experiment", "show", "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5a6b"), "no experiment"),
        (("stability", "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5a6b"), "there is no job"),
        (("stability", "paying"), "--effects"),
    ],
)
@pytest.mark.usefixtures("tried")
def test_bad_input_is_refused_with_a_remedy(shell: Shell, words: tuple[str, ...], said: str) -> None:
    assert said in shell.refused(*words)
