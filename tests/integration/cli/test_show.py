"""``stepladder show``, ``psql`` and ``migrate``."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING

import psycopg
import pytest

from stepladder.models import migrate

if TYPE_CHECKING:
    from .conftest import Done, Shell


def test_a_job_is_shown_with_its_exact_answers(shell: Shell, waiting_job: str) -> None:
    done = shell.run("show", waiting_job, "--raw", STEPLADDER_ENGINE_URL="http://127.0.0.1:1/v1")
    assert (done.code, done.err) == (0, "")
    assert '{"total": 35}' in done.out
    assert "+ + + x" in done.out
    assert "must be hours times 3" in done.out
    assert all(len(line) <= 100 for line in done.out.splitlines())


def test_model_output_is_escaped_for_a_terminal_and_exact_in_json(shell: Shell, waiting_job: str) -> None:
    """An answer with an escape sequence, markup, a smiley's name and half of a surrogate pair."""
    odd = 'a\x1b]0;owned\x07 [red]b[/red] :smile: "'
    shell.rows("INSERT INTO workflows VALUES ('odd', 1, 'h', '{}') RETURNING name")
    job_like = """
        INSERT INTO jobs (
            id, lineage, workflow, version, status, failure, failure_detail, input, metadata, principal, priority,
            event_count, created_at, finished_at
        )
        SELECT
            gen_random_uuid(), id, 'odd', 1, 'failed', 'tool_failed', %s, '["\\ud800 :smile: \\u001b"]', '{}', 'local',
            0, 1, now(), now()
        FROM jobs WHERE id = %s
        RETURNING id
    """
    [(job,)] = shell.rows(job_like, odd, waiting_job)
    people = shell.ok("show", str(job))
    assert "\x1b" not in people.out
    assert "\\x1b]0;owned" in people.out
    assert '[red]b[/red] :smile: "' in people.out
    program = shell.ok("show", str(job), "--json")
    assert program.json["failure_detail"] == odd
    assert program.json["input"] == ["\ud800 :smile: \x1b"]


def test_psql_opens_the_database_that_is_set(shell: Shell, waiting_job: str) -> None:
    query = (
        "SELECT outcome FROM attempt_outcomes JOIN job_overview USING (job_id) WHERE job_id = :'job' ORDER BY attempt"
    )
    shell.write("query.sql", query)
    done = shell.run_process("psql", "-At", "-v", f"job={waiting_job}", "-f", "query.sql")
    assert (done.code, done.out.split()) == (0, ["semantic", "valid"])
    assert shell.run_process("psql", "-c", "SELECT nothing").code == 1


def test_migrate_creates_the_tables_that_run_needs(shell: Shell, bare_database_url: str) -> None:
    words = ("run", "bill.yaml", "--input", '{"team": "search"}')
    asked = len(shell.engine.requests)
    bare = shell.run(*words, STEPLADDER_DATABASE_URL=bare_database_url)
    assert (bare.code, bare.out) == (3, "")
    assert "has no tables yet" in bare.err
    assert "stepladder migrate" in bare.err
    with psycopg.connect(bare_database_url) as connection:
        assert connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone() == (0,)
    assert len(shell.engine.requests) == asked

    shell.ok("migrate", STEPLADDER_DATABASE_URL=bare_database_url)
    assert migrate.current(bare_database_url) == migrate.head()
    assert shell.run("migrate", "9999", STEPLADDER_DATABASE_URL=bare_database_url).code == 2


LETTER = """
name: letter
version: 1
start: read
states:
  read:
    ask: "Who wrote it?"
    output: {type: object, properties: {total: {type: integer}, age: {type: integer}}, required: [total, age]}
    degrade: true
    retry: {attempts: 2}
    next: done
  done: {end: succeeded}
"""


def test_a_degraded_turn_is_flagged_with_what_it_lost(shell: Shell) -> None:
    ran = shell.run("run", shell.write("letter.yaml", LETTER), "--input", "{}")
    assert ran.code == 1
    assert "degraded" in ran.out
    job = str(shell.rows("SELECT id FROM jobs WHERE workflow = 'letter'")[0][0])
    done = shell.run("show", job)
    assert "turn 1 read degraded: from attempt 2 after schema_violation; it is not an output" in done.out
    assert 'lost: / still breaks the schema: must have the field "age"' in done.out
    assert 'kept: {"total": 36}' in done.out
    program = shell.run("show", job, "--json")
    assert program.json["degraded"] == {"read": program.json["turns"][0]["degraded"]}


def test_the_request_of_a_turn_is_exact(shell: Shell, waiting_job: str) -> None:
    done = shell.run("show", waiting_job, "--turn", "1", "--attempt", "2", "--request")
    assert (done.code, done.err) == (0, "")
    sent = [one.raw.decode() for one in shell.engine.requests if waiting_job in one.headers["x-request-id"]]
    assert done.out == sent[1] != sent[0]
    assert shell.run("show", waiting_job, "--turn", "1", "--request").out == sent[1]  # the last by default


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--request",), "write --turn N; the job has 1"),
        (("--attempt", "1"), "--turn N --attempt M"),
        (("--turn", "1", "--attempt", "3"), "it has 2"),
        (("--turn", "2", "--request"), "has no turn 2"),
        (("--turn", "0", "--json"), "has no turn 0"),
    ],
)
def test_a_missing_turn_or_attempt_is_named(shell: Shell, waiting_job: str, words: tuple[str, ...], said: str) -> None:
    assert said in shell.refused("show", waiting_job, *words)


def test_one_attempt_or_the_whole_history_is_shown(shell: Shell, waiting_job: str) -> None:
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


def test_jobs_are_found_by_rule_and_text(shell: Shell, waiting_job: str) -> None:
    for words in (("--rule", "arithmetic"), ("--cause", "arithmetic"), ("--search", "HOURS TIMES 3")):
        found = shell.run("jobs", *words, "--json")
        assert waiting_job in [job["id"] for job in found.json["jobs"]], words
    assert shell.run("jobs", "--search", "nobody ever said this").err.strip() == "No jobs match."
    first = shell.run("jobs", "--search", "total", "--limit", "1")
    assert "search further: --cursor" in first.err


def test_watch_fits_100_columns(shell: Shell) -> None:
    name = "w" * 90
    document = f"name: {name}\nversion: 1\nstart: s\nstates:\n  s: {{wait: {{signal: {'x' * 95}, timeout_s: 0}}, "
    document += "next: {go: done, timeout: done}}\n  done: {end: succeeded}\n"
    ran = shell.ok("run", shell.write("wide.yaml", document), "--input", "{}", "--json")
    done = shell.ok("watch", ran.json["id"])
    events = done.out.splitlines()[1:-1]
    assert "x" * 60 in "".join(events)
    assert all(len(line) <= 100 for line in events), events


def test_the_version_is_told(shell: Shell) -> None:
    assert shell.run("--version").out == f"stepladder {version('stepladder')}\n"


def test_retention_needs_an_age_and_a_confirmation(shell: Shell, bare_database_url: str) -> None:
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
    assert (gone(), gone()) == (1, 0)
    shown = run("show", other, "--raw")
    assert "raw answers removed by retention" in shown.out
    assert '{"total": 35}' not in shown.out
    assert run("release", job).code == 0
    assert gone() == 1


CHILD = """
name: echo
version: 1
start: hold
states:
  hold: {wait: {signal: word}, next: {go: done}}
  done: {end: succeeded, result: signals.hold.action}
"""
PARENT = """
name: caller
version: 1
start: go
states:
  go: {call: echo, next: {ok: done, error: broken}}
  done: {end: succeeded, result: calls.go}
  broken: {end: failed, result: errors.go}
"""


def test_a_parent_and_its_child_run_and_are_shown_together(shell: Shell) -> None:
    shell.write("echo.yaml", CHILD)
    shell.write("caller.yaml", PARENT)
    assert "never waits for it" in shell.refused(
        "run", "caller.yaml", "--also", "echo.yaml", "--signal", 'nobody={"action": "go"}'
    )
    waits = shell.run("run", "caller.yaml", "--also", "echo.yaml", "--json")
    assert (waits.code, waits.json["status"], waits.json["waiting_for"]) == (0, "waiting", "children")
    assert f"stepladder jobs --parent {waits.json['id']}" in waits.err
    done = shell.run("run", "--job", waits.json["id"], "--signal", 'word={"action": "go"}', "--json")
    assert (done.code, done.json["result"]) == (0, "go")
    shown = shell.run("show", done.json["id"])
    [child] = shell.run("jobs", "--parent", done.json["id"], "--json").json["jobs"]
    assert f"called 1. echo 1  job {child['id']}" in shown.out
    assert f"called by job {done.json['id']}" in shell.run("show", child["id"]).out
    [record] = shell.run("show", done.json["id"], "--json").json["children"]
    assert (record["id"], record["index"], record["status"]) == (child["id"], 1, "succeeded")


LONG = """
name: a-name-so-long-that-no-table-of-a-hundred-columns-has-room-for-it-beside-a-job
version: 1
start: sum
states:
  sum:
    ask: "Sum up."
    output: {type: object, properties: {total: {type: integer}}, required: [total], additionalProperties: false}
    rules: [{id: must-be-the-total-that-somebody-expects-of-it, check: "output.total == 36", reason: must be 36}]
    retry: {attempts: 2}
    next: done
  done: {end: succeeded, result: {total: turns.sum.total, note: "'text ' + 'that goes on and on'"}}
"""


def test_a_job_and_its_fork_are_compared(shell: Shell) -> None:
    shell.write("long-diff.yaml", LONG)
    was = shell.run("run", "long-diff.yaml", "--json").json["id"]
    rule = "states.sum.rules.0.check=output.total == 35"
    now = shell.run("replay", was, "--mode", "fork", "--set", rule, "--json").json["id"]
    assert shell.run("run", "--job", now).code == 0
    done = shell.run("diff", was, now)
    assert (done.code, done.err) == (0, "")
    assert all(len(line) <= 100 for line in done.out.splitlines()), done.out
    assert was in done.out
    assert now in done.out
    assert "~ /total  36 → 35" in done.out
    assert "2→1" in done.out
    found = shell.run("diff", was, now, "--json").json
    assert [(one["pointer"], one["was"], one["now"]) for one in found["result"]] == [("/total", 36, 35)]
    assert found["visits"][0]["differs"] == ["attempts", "output"]


def test_a_job_equals_itself_and_unknown_jobs_are_reported(shell: Shell, waiting_job: str) -> None:
    same = shell.run("diff", waiting_job, waiting_job)
    assert "both took the same path to the same end" in same.out
    missing = "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5a6b"
    assert f"there is no job {missing}" in shell.refused("diff", waiting_job, missing)
