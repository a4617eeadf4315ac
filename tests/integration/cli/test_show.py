"""``stepladder show``, and the commands beside it that only look."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg

from stepladder.models import migrate

if TYPE_CHECKING:
    from .conftest import Shell


def test_a_job_is_shown_with_its_answers_to_the_letter(shell: Shell, waiting_job: str) -> None:
    done = shell.run("show", waiting_job, "--raw", STEPLADDER_ENGINE_URL="http://127.0.0.1:1/v1")
    assert (done.code, done.err) == (0, "")
    assert '{"total": 35}' in done.out
    assert "+ + + x" in done.out
    assert "must be hours times 3" in done.out
    assert all(len(line) <= 100 for line in done.out.splitlines())


def test_json_shows_the_same_facts_and_a_turn_alone_can_be_asked_for(shell: Shell, waiting_job: str) -> None:
    done = shell.run("show", waiting_job, "--turn", "1", "--json")
    assert done.code == 0
    assert done.json["id"] == waiting_job
    assert [attempt["outcome"] for attempt in done.json["turns"][0]["attempts"]] == ["semantic", "valid"]
    missing = shell.run("show", waiting_job, "--turn", "0", "--json")
    assert (missing.code, missing.out) == (2, "")
    assert "has no turn 0" in missing.err


def test_model_output_cannot_control_the_terminal_and_json_keeps_it_exactly(shell: Shell, waiting_job: str) -> None:
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
    people = shell.run("show", str(job))
    assert people.code == 0
    assert "\x1b" not in people.out
    assert "\\x1b]0;owned" in people.out
    assert '[red]b[/red] :smile: "' in people.out
    program = shell.run("show", str(job), "--json")
    assert program.code == 0
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


def test_migrate_brings_up_the_tables_that_run_asks_for(shell: Shell, bare_database_url: str) -> None:
    words = ("run", "bill.yaml", "--input", '{"team": "search"}')
    asked = len(shell.engine.requests)
    bare = shell.run(*words, STEPLADDER_DATABASE_URL=bare_database_url)
    assert (bare.code, bare.out) == (3, "")
    assert "has no tables yet" in bare.err
    assert "stepladder migrate" in bare.err
    with psycopg.connect(bare_database_url) as connection:
        assert connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone() == (0,)
    assert len(shell.engine.requests) == asked

    done = shell.run("migrate", STEPLADDER_DATABASE_URL=bare_database_url)
    assert done.code == 0
    assert migrate.current(bare_database_url) == migrate.head()
    assert shell.run("migrate", "9999", STEPLADDER_DATABASE_URL=bare_database_url).code == 2


LETTER = """
name: letter
version: 1
start: read
states:
  read:
    ask: "Who wrote it?"
    output: {type: object, properties: {total: {type: string}, age: {type: integer}}, required: [total, age]}
    degrade: true
    retry: {attempts: 2}
    next: done
  done: {end: succeeded}
"""


def test_what_was_kept_of_a_turn_is_flagged_and_all_that_is_lost_is_said(shell: Shell) -> None:
    """The engine of these tests says ``{"total": 35}``, and then 36: no texts, and so nothing would be left of them."""
    document = LETTER.replace("type: string", "type: integer")
    ran = shell.run("run", shell.write("letter.yaml", document), "--input", "{}")
    assert ran.code == 1
    assert "degraded" in ran.out
    job = str(shell.rows("SELECT id FROM jobs WHERE workflow = 'letter'")[0][0])
    done = shell.run("show", job)
    assert "turn 1 read degraded: from attempt 2 after schema_violation; it is not an output" in done.out
    assert 'lost: / still breaks the schema: must have the field "age"' in done.out
    assert 'kept: {"total": 36}' in done.out
    program = shell.run("show", job, "--json")
    assert program.json["degraded"] == {"read": program.json["turns"][0]["degraded"]}
    assert program.json["degraded"]["read"]["value"] == {"total": 36}
    assert program.json["result"] is None
