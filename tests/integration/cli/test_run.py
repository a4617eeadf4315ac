"""``stepladder run``: its exit codes, JSON and logs, and Ctrl-C in the middle."""

from __future__ import annotations

import json
from signal import Signals
from typing import TYPE_CHECKING

import pytest

from stepladder.testing import wait_until

from .conftest import BILL, KEY

if TYPE_CHECKING:
    from .conftest import Shell

APPROVED = ("--signal", 'approval={"action": "approve"}')
INPUT = ("--input", '{"team": "search"}')


def test_a_job_runs_to_its_end_and_shows_its_rejected_answer(shell: Shell) -> None:
    done = shell.ok("run", "bill.yaml", *INPUT, *APPROVED)
    assert "succeeded" in done.out
    assert 'result {"total": 36}' in done.out
    assert "turn 1.1 semantic by arithmetic: /total must be hours times 3" in done.out
    assert "semantic (arithmetic)" in done.err  # progress
    assert "stepladder show" in done.err


def test_json_is_one_document_and_logs_are_json_lines_without_secrets(shell: Shell) -> None:
    shell.write("input.json", '\ufeff{"team": "search"}')
    done = shell.run(
        "run", "bill.yaml", "--input", "@input.json", *APPROVED, "--json", "--log-level", "info", "--app", "app.py"
    )
    assert done.code == 0
    job = done.json
    assert (job["workflow"], job["version"], job["status"]) == ("bill", 1, "succeeded")
    assert job["result"] == {"total": 36}
    [turn] = job["turns"]
    assert [attempt["outcome"] for attempt in turn["attempts"]] == ["semantic", "valid"]

    judged = [line for line in done.logs if line["event"] == "attempt judged"]
    assert [(line["job"], line["turn"], line["attempt"]) for line in judged] == [(job["id"], 1, 1), (job["id"], 1, 2)]
    assert {line["level"] for line in done.logs} == {"info"}
    assert KEY not in done.out
    for hidden in (KEY, "which no log may show", "used 12 hours"):
        assert hidden not in done.err


def test_a_waiting_job_is_no_failure_and_another_run_continues_it(shell: Shell) -> None:
    job = shell.run("run", "bill.yaml", "--input", '{"team": "search"}', "--json").json["id"]
    asked = len(shell.engine.requests)
    again = shell.run("run", "--job", job, "--json")
    assert (again.code, again.json["status"], again.json["waiting_for"]) == (0, "waiting", "approval")
    assert f"stepladder run --job {job} --signal approval=" in again.err
    refused = shell.run("run", "--job", job, "--signal", 'approval={"action": "refuse"}', "--json")
    assert refused.code == 1
    assert (refused.json["status"], refused.json["failure"]) == ("failed", "rejected")
    assert len(shell.engine.requests) == asked
    assert "has ended: failed" in shell.refused("run", "--job", job)


@pytest.mark.long
@pytest.mark.parametrize("ending", [Signals.SIGINT, Signals.SIGKILL])
def test_after_ctrl_c_or_a_kill_another_run_continues_the_job(shell: Shell, ending: Signals) -> None:
    shell.write("patient.yaml", BILL.replace("name: bill", "name: patient").replace(" hours at", " patience at"))
    before = len(shell.engine.requests)
    with shell.start("run", "patient.yaml", "--input", json.dumps({"team": ending.name})) as process:
        wait_until(lambda: len(shell.engine.requests) > before, 30)
        stopped = shell.end(process, ending)
    wait_until(lambda: shell.engine.in_flight == 0, what="the engine is no longer at work for it")
    query = "SELECT id, status, lease_owner IS NULL FROM jobs WHERE workflow = 'patient' AND input ->> 'team' = %s"
    [(job, status, handed_back)] = shell.rows(query, ending.name)
    assert (status, stopped.out) == ("running", "")
    assert handed_back is (ending is Signals.SIGINT)
    if handed_back:
        assert stopped.code == 130
        assert "Traceback" not in stopped.err
        assert f"stepladder run --job {job}" in stopped.err

    done = shell.run("run", "--job", str(job), *APPROVED, "--json")
    assert (done.code, done.json["result"]) == (0, {"total": 36})
    [turn] = done.json["turns"]
    assert [attempt["cause"] for attempt in turn["attempts"]] == ["abandoned", "arithmetic", None]


def test_a_flag_wins_over_the_environment_and_that_over_the_file(shell: Shell) -> None:
    """Each source names another model, and the engine serves none of them: the complaint says which one was meant."""
    shell.write("stepladder.toml", 'model = "of-the-file"\napp = "nowhere"\n')
    try:
        words = ("run", "bill.yaml", *INPUT)
        for model, more, variables in (
            ("of-the-file", (), {"STEPLADDER_MODEL": ""}),
            ("of-the-environment", (), {"STEPLADDER_MODEL": "of-the-environment"}),
            ("of-the-flag", ("--model", "of-the-flag"), {"STEPLADDER_MODEL": "of-the-environment"}),
        ):
            assert f"does not serve the model {model}." in shell.refused(*words, *more, **variables)
    finally:
        (shell.folder / "stepladder.toml").unlink()


def test_a_workflow_built_in_python_is_the_same_workflow(shell: Shell) -> None:
    shell.write(
        "built.py",
        "import app, ruamel.yaml, pathlib\nfrom stepladder import Workflow\n"
        "bill = Workflow.model_validate(ruamel.yaml.YAML(typ='safe').load(pathlib.Path('bill.yaml')))\n",
    )
    done = shell.ok("run", "built:bill", *INPUT, *APPROVED, "--json", STEPLADDER_APP=None)
    assert json.loads(done.out)["workflow"] == "bill"
    assert shell.rows("SELECT count(*) FROM workflows WHERE name = 'bill'") == [(1,)]
