"""``stepladder publish`` and ``stepladder submit``: what is checked, what is written, and what a key is good for."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from stepladder.testing import wait_until

from .conftest import BILL

if TYPE_CHECKING:
    from .conftest import Shell

INPUT = ("--input", '{"team": "search"}')


@pytest.fixture(autouse=True)
def published(shell: Shell) -> None:
    assert shell.run("publish", "bill.yaml").code == 0


def test_publishing_again_changes_nothing_and_a_changed_definition_is_refused(shell: Shell) -> None:
    again = shell.run("publish", "bill.yaml", "--json")
    assert (again.code, again.json["status"]) == (0, "already_published")
    assert (again.json["name"], again.json["version"]) == ("bill", 1)
    changed = shell.run("publish", shell.write("changed.yaml", BILL.replace("at 3 dollars", "at 4 dollars")))
    assert (changed.code, changed.out) == (2, "")
    assert "version: 2" in changed.err


def test_a_job_is_submitted_by_name_and_its_id_alone_goes_to_the_pipe(shell: Shell) -> None:
    words = ("--priority", "7", "--metadata", "order=4711", "--deadline-s", "60", "--token-budget", "0")
    done = shell.run("submit", "bill", *INPUT, *words)
    assert done.code == 0, done.err
    job = UUID(done.out.strip())
    assert str(job) in done.err  # how to watch it
    [row] = shell.rows(
        "SELECT status, priority, metadata, token_budget, deadline_at - created_at FROM job_overview WHERE job_id = %s",
        job,
    )
    assert row[:4] == ("queued", 7, {"order": "4711"}, 0)
    assert row[4].total_seconds() == 60


def test_the_same_key_gives_the_same_job_and_another_body_is_refused(shell: Shell) -> None:
    words = ("submit", "bill", *INPUT, "--idempotency-key", "once")
    first, again = shell.run(*words), shell.run(*words)
    assert (first.code, again.code) == (0, 0)
    assert first.out == again.out
    before = shell.counts()
    other = shell.run("submit", "bill", "--input", '{"team": "maps"}', "--idempotency-key", "once")
    assert (other.code, other.out) == (2, "")
    assert "was used for another submission" in other.err
    assert shell.counts() == before


def test_a_document_is_published_on_the_way(shell: Shell) -> None:
    document = shell.write("fresh.yaml", BILL.replace("name: bill", "name: fresh"))
    bad = shell.run("submit", document)
    assert bad.code == 2
    assert not shell.rows("SELECT name FROM workflows WHERE name = 'fresh'")
    done = shell.run("submit", document, *INPUT, "--json")
    assert done.code == 0, done.err
    assert (done.json["workflow"], done.json["version"], done.json["status"]) == ("fresh", 1, "queued")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nothing",), "there is no workflow nothing"),
        (("bill", *INPUT, "--version", "9"), "it has 1"),
        (("bill",), 'must have the field "team"'),
        (("bill", "--input", "{team: 1}"), "cannot be read as JSON"),
        (("bill", *INPUT, "--metadata", "order"), "is not NAME=VALUE"),
        (("bill", *INPUT, "--metadata", "a=1", "--metadata", "a=2"), "given twice"),
        (("bill", *INPUT, "--priority", "1001"), "--priority"),
        (("missing.yaml",), "cannot be read"),
    ],
)
def test_bad_input_is_explained_and_stores_nothing(shell: Shell, words: tuple[str, ...], said: str) -> None:
    before = shell.counts()
    done = shell.run("submit", *words)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert shell.counts() == before


def test_who_lacks_the_tools_is_told_which_flag_to_use(shell: Shell) -> None:
    done = shell.run("submit", "bill", *INPUT, STEPLADDER_APP=None)
    assert done.code == 2
    assert "look_up" in done.err
    assert shell.run("submit", "bill", *INPUT, "--app", "app.py", STEPLADDER_APP=None).code == 0


def test_wait_follows_the_job_to_its_end_and_the_code_tells_which(shell: Shell) -> None:
    with shell.start("submit", "bill", *INPUT, "--wait", "--json", "--metadata", "who=waits") as waiting:
        find = 'SELECT job_id FROM job_overview WHERE metadata @> \'{"who": "waits"}\''
        [(job,)] = wait_until(lambda: shell.rows(find), 20)
        worked = shell.run("run", "--job", str(job), "--signal", 'approval={"action": "refuse"}')
        assert worked.code == 1
        out, err = waiting.communicate(timeout=20)
    assert waiting.returncode == 1
    assert f'"id": "{job}"' in out
    assert '"failure": "rejected"' in out
    assert "semantic (arithmetic)" in err


def test_a_broker_that_is_down_keeps_nobody_waiting(shell: Shell) -> None:
    """Nothing is lost: the sweep of a worker finds the job."""
    done = shell.run("submit", "bill", *INPUT, STEPLADDER_BROKER_URL="redis://:hush@127.0.0.1:1/0")
    assert done.code == 0
    assert "broker" in done.err
    assert "hush" not in done.err
