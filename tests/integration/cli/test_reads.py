"""What is asked about jobs on the command line: by their answers, to the byte, and what retention leaves."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import Done, Shell


def test_the_request_of_a_turn_is_written_to_the_byte(shell: Shell, waiting_job: str) -> None:
    done = shell.run("show", waiting_job, "--turn", "1", "--attempt", "2", "--request")
    assert (done.code, done.err) == (0, "")
    received = [
        request.raw.decode() for request in shell.engine.requests if waiting_job in request.headers["x-request-id"]
    ]
    assert done.out == received[1] != received[0]
    assert (
        shell.run("show", waiting_job, "--turn", "1", "--request").out == received[1]
    )  # the last, where none is named


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--request",), "write --turn N; the job has 1"),
        (("--attempt", "1"), "--turn N --attempt M"),
        (("--turn", "1", "--attempt", "3"), "it has 2"),
        (("--turn", "2", "--request"), "has no turn 2"),
    ],
)
def test_a_turn_that_is_not_there_is_told_with_those_that_are(
    shell: Shell, waiting_job: str, words: tuple[str, ...], said: str
) -> None:
    done = shell.run("show", waiting_job, *words)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_one_attempt_and_the_whole_history_can_be_asked_for(shell: Shell, waiting_job: str) -> None:
    one = shell.run("show", waiting_job, "--turn", "1", "--attempt", "1", "--raw")
    assert '{"total": 35}' in one.out
    assert '{"total": 36}' not in one.out
    history = shell.run("show", waiting_job, "--events")
    assert "waiting for signal approval" in history.out
    assert "signal approval: waiting" in history.out  # among the visits
    assert all(len(line) <= 100 for line in history.out.splitlines())
    program = shell.run("show", waiting_job, "--events", "--json").json
    kinds = [event["kind"] for event in program["events"]]
    assert (kinds[0], kinds[-1]) == ("job_created", "wait_started")
    assert [wait["state"] for wait in program["visits"]["waits"]] == ["approve"]


def test_jobs_are_found_by_rule_and_text_and_a_search_tells_how_far_it_looked(shell: Shell, waiting_job: str) -> None:
    for words in (("--rule", "arithmetic"), ("--cause", "arithmetic"), ("--search", "HOURS TIMES 3")):
        found = shell.run("jobs", *words, "--json")
        assert waiting_job in [job["id"] for job in found.json["jobs"]], words
    assert shell.run("jobs", "--search", "nobody ever said this").err.strip() == "No jobs match."
    first = shell.run("jobs", "--search", "total", "--limit", "1")
    assert "search further: --cursor" in first.err


def test_watch_never_prints_a_line_of_more_than_a_hundred_columns(shell: Shell) -> None:
    name = "w" * 90
    document = f"name: {name}\nversion: 1\nstart: s\nstates:\n  s: {{wait: {{signal: {'x' * 95}, timeout_s: 0}}, "
    document += "next: {go: done, timeout: done}}\n  done: {end: succeeded}\n"
    ran = shell.run("run", shell.write("wide.yaml", document), "--input", "{}", "--json")
    assert ran.code == 0, ran.err
    done = shell.run("watch", ran.json["id"])
    assert done.code == 0, done.err
    events = done.out.splitlines()[1:-1]
    assert "x" * 60 in "".join(events)
    assert all(len(line) <= 100 for line in events), events


def test_the_version_is_told(shell: Shell) -> None:
    assert shell.run("--version").out == f"stepladder {version('stepladder')}\n"


def test_nothing_goes_before_it_is_said_how_old_it_has_to_be_and_that_it_is_meant(
    shell: Shell, bare_database_url: str
) -> None:
    def run(*words: str, **variables: str | None) -> Done:
        return shell.run(*words, STEPLADDER_DATABASE_URL=bare_database_url, **variables)

    def refused() -> str:
        job = str(run("run", "bill.yaml", "--input", '{"team": "search"}', "--json").json["id"])
        assert run("signal", job, "approval", "--data", '{"action": "refuse"}').code == 0
        assert run("run", "--job", job, "--json").json["status"] == "failed"
        return job

    def gone() -> int:
        done = run("retain", "--raw-days", "0", "--yes", "--json")
        assert done.code == 0, done.err
        return int(done.json["raw_jobs"])

    assert run("migrate").code == 0
    job, other = refused(), refused()
    assert run("retain").code == 2
    held = run("hold", job)
    assert (held.code, "exempt from retention" in held.out) == (0, True)
    unsaid = run("retain", "--raw-days", "0")
    assert (unsaid.code, "--yes" in unsaid.err) == (2, True)
    looked = run("retain", "--dry-run", "--json", STEPLADDER_KEEP_RAW_DAYS="0", STEPLADDER_KEEP_EVENTS_DAYS="1")
    assert looked.json == {"dry_run": True, "raw_jobs": 1, "attempts": 2, "event_jobs": 0, "events": 0}
    bad = run("retain", "--dry-run", STEPLADDER_KEEP_RAW_DAYS="-1")
    assert (bad.code, "STEPLADDER_KEEP_RAW_DAYS" in bad.err) == (2, True)
    assert '{"total": 35}' in run("show", other, "--raw").out

    assert (gone(), gone()) == (1, 0)
    shown = run("show", other, "--raw")
    assert "raw answers removed by retention" in shown.out
    assert '{"total": 35}' not in shown.out
    assert '{"total": 35}' in run("show", job, "--raw").out
    assert run("release", job).code == 0
    assert gone() == 1
