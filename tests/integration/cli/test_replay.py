"""``stepladder replay`` and ``stepladder export``."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from stepladder.models.database import Database
from stepladder.models.store import Store
from stepladder.runner.machines import Machines
from stepladder.schemas.tool import Kit
from stepladder.services.bulks import hand_out
from stepladder.services.replays import Replays

if TYPE_CHECKING:
    from .conftest import Done, Shell

SUM = """
name: {name}
version: {version}
input: {{type: object, properties: {{team: {{type: string, maxLength: 40}}}}, required: [team]}}
start: sum
states:
  sum:
    ask: "{{{{ input.team }}}} used 12 hours at 3 dollars."
    output: {{type: object, properties: {{total: {{type: integer}}}}, required: [total], additionalProperties: false}}
    rules:
      - {{id: arithmetic, check: "output.total {check}", pointer: /total, reason: must be hours times 3}}
    retry: {{attempts: {attempts}}}
    next: done
  done: {{end: succeeded, result: {{total: turns.sum.total}}}}
"""


def document(name: str, *, check: str = "== 36", attempts: int = 3, version: int = 1) -> str:
    return SUM.format(name=name, check=check, attempts=attempts, version=version)


def run(shell: Shell, name: str, *, teams: int = 1, attempts: int = 3) -> list[str]:
    """Jobs of a workflow whose first answer breaks the rule; the second, if there is one, does not."""
    shell.write(f"{name}.yaml", document(name, attempts=attempts))
    done = [shell.run("run", f"{name}.yaml", "--input", json.dumps({"team": f"t{n}"}), "--json") for n in range(teams)]
    return [one.json["id"] for one in done]


def words(done: Done) -> str:
    return " ".join(done.err.split())


def test_a_changed_verdict_has_exit_code_1(shell: Shell) -> None:
    [job] = run(shell, "again")
    before = shell.counts()
    done = shell.ok("replay", job, "--mode", "revalidate")
    assert "turn 1 sum, attempt 1: semantic (arithmetic), unchanged" in done.out
    assert "no verdict changed" in done.out
    assert shell.counts() == before
    changed = shell.run(
        "replay", job, "--mode", "revalidate", "--set", "states.sum.rules.0.check=output.total > 0", "--json"
    )
    assert changed.code == 1
    assert (changed.json["changed"], [one["now"] for one in changed.json["attempts"]]) == (1, ["valid", "valid"])


def test_a_stricter_document_shows_which_answers_break_it(shell: Shell) -> None:
    run(shell, "many", teams=3)
    same = shell.run("replay", "--where", "workflow=many", "--mode", "revalidate")
    assert (same.code, "no drift" in same.out, "6 attempts of 3 jobs judged" in same.out) == (0, True, True), same.out
    assert "a second" in same.out
    tighter = shell.write("tighter.yaml", document("many", check="== 37"))
    report = shell.run("replay", "--where", "workflow=many", "--mode", "revalidate", "--with", tighter)
    assert report.code == 1
    assert "3 verdicts of 3 jobs changed" in report.out
    assert "accepted before, rejected now: 3 attempts of 3 jobs" in report.out
    assert all(len(line) <= 100 for line in report.out.splitlines()), report.out


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--mode", "fork", "--set", "states.sun.ask=x"), "did you mean `sum`"),
        (("--mode", "fork", "--with", "bill.yaml"), "--with needs"),
        (("--mode", "revalidate", "--from-turn", "1"), "--from-turn has no meaning"),
        (("--mode", "revalidate", "--with", "other.yaml"), "of workflow flags"),
    ],
)
def test_bad_input_is_refused_with_a_remedy(shell: Shell, flags: tuple[str, ...], said: str) -> None:
    shell.write("other.yaml", document("other"))
    jobs = shell.run("jobs", "--workflow", "flags", "--json").json["jobs"]
    job = jobs[0]["id"] if jobs else run(shell, "flags", attempts=1)[0]
    assert said in shell.refused("replay", job, *flags)


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("status=lost", "write one of queued, running"),
        ("colour=red", "known are status"),
    ],
)
def test_a_bad_filter_lists_the_valid_words(shell: Shell, where: str, said: str) -> None:
    assert said in shell.refused("replay", "--where", where, "--mode", "revalidate")


def test_exported_answers_get_the_same_verdicts_elsewhere(shell: Shell) -> None:
    run(shell, "exported", teams=2)
    done = shell.ok("export", "--where", "workflow=exported")
    lines = done.out.splitlines()
    assert len(lines) == 4
    shell.write("exported.jsonl", done.out)
    shell.ok("judge", "exported.jsonl", "--expect")


def hand_out_all(shell: Shell) -> list[str]:
    """What a worker does once a second: the jobs that it wrote."""

    async def look() -> list[str]:
        async with Database(shell.database_url) as database:
            store = Store(database)
            return [str(job) for job in await hand_out(store, Replays(database, store, Machines(store, Kit())))]

    return asyncio.run(look())


def test_a_bulk_replay_is_estimated_ordered_once_and_followed(shell: Shell) -> None:
    jobs = run(shell, "bulk", teams=3, attempts=1)
    where = ("replay", "--where", "workflow=bulk", "--where", "status=failed", "--mode", "fork")
    change = ("--set", "states.sum.rules.0.check=output.total == 35")
    before = shell.counts()
    dry = shell.run(*where, *change, "--dry-run", "--json")
    assert (dry.code, dry.json["jobs"], dry.json["turns"], dry.json["refused"]) == (0, 3, 3, {})
    assert dry.json["tokens"] > 0
    assert "3 jobs would be replayed, and 3 turns" in shell.run(*where, *change, "--dry-run").out
    assert "--yes" in shell.refused(*where, *change)
    assert shell.counts() == before
    ordered = shell.ok(*where, *change, "--yes", "--concurrency", "2", "--idempotency-key", "b-1")
    order = ordered.out.strip()
    first = hand_out_all(shell)
    assert (len(first), hand_out_all(shell)) == (2, [])  # no more at once than was said
    for job in first:
        assert shell.run("run", "--job", job, "--json").json["result"] == {"total": 35}
    [last] = hand_out_all(shell)
    assert shell.run("run", "--job", last).code == 0
    assert hand_out_all(shell) == []
    followed = shell.run("replay", "--follow", order, "--json")
    assert (followed.code, followed.json["state"], followed.json["jobs"]) == (0, "done", {"succeeded": 3})
    assert "done: of 3 jobs 3 replayed (3 succeeded)" in shell.run("replay", "--follow", order).out
    again = shell.run(*where, *change, "--yes", "--concurrency", "2", "--idempotency-key", "b-1")
    assert (again.code, again.out.strip(), hand_out_all(shell)) == (0, order, [])
    replayed = shell.rows("SELECT replay_of FROM jobs WHERE bulk IS NOT NULL AND bulk = %s", order)
    assert sorted(str(job) for (job,) in replayed) == sorted(jobs)


def test_a_stopped_order_starts_no_more_replays(shell: Shell) -> None:
    run(shell, "stopped", teams=2, attempts=1)
    where = ("replay", "--where", "workflow=stopped", "--mode", "resume", "--yes", "--concurrency", "1")
    order = shell.run(*where).out.strip()
    [started] = hand_out_all(shell)
    stopped = shell.run("replay", "--stop", order)
    assert stopped.out.startswith("stopped: of 2 jobs 1 replayed (1 queued)")
    shell.run("run", "--job", started)
    assert hand_out_all(shell) == []
    ended = shell.run("replay", "--follow", order, "--json")
    assert (ended.code, ended.json["jobs"]) == (1, {"failed": 1})  # the model says the same again
    assert "no order of replays" in shell.refused("replay", "--follow", "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5a6b")


TWO = """
name: two
version: 1
start: first
states:
  first:
    ask: Which number?
    output: {type: object, properties: {total: {type: integer}}, required: [total]}
    next: second
  second:
    ask: And hours times 3?
    output: {type: object, properties: {total: {type: integer}}, required: [total]}
    rules: [{id: arithmetic, check: "output.total == 36", pointer: /total, reason: must be hours times 3}]
    retry: {attempts: 1}
    next: done
  done: {end: succeeded, result: turns.second.total}
"""


def test_a_failed_job_is_resumed_and_forked_as_its_page_says(shell: Shell) -> None:
    shell.write("two.yaml", TWO)
    job = shell.run("run", "two.yaml", "--json").json["id"]
    failed = shell.run("show", job)
    command = failed.out.splitlines()[-1].split()
    assert command == ["stepladder", "replay", job, "--mode", "resume"]
    resumed = shell.run(*command[1:]).out.strip()
    change = "states.second.rules.0.check=output.total == 35"
    forked = shell.run("replay", job, "--mode", "fork", "--from-turn", "2", "--set", change).out.strip()
    shell.run("run", "--job", forked)
    shown = shell.run("show", job)
    assert f"replayed by job {resumed}  queued" in shown.out
    assert f"replayed by job {forked}  succeeded" in shown.out
    assert shell.run("show", job, "--json").json["replays"] == [resumed, forked]
    new = shell.run("show", forked)
    assert f"replay of job {job}: fork from turn 2" in new.out
    assert 'set states.second.rules.0.check="output.total == 35"' in new.out
    [carried] = [line for line in new.out.splitlines() if " carried " in line]
    assert carried.split() == ["1", "first", "carried", '{"total":', "35}"]
    assert "--mode" not in new.out  # it succeeded, and there is nothing to do
    assert max(map(len, new.out.splitlines())) <= 100, new.out
