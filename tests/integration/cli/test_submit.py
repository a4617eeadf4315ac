"""``stepladder publish`` and ``stepladder submit``."""

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


def test_a_published_version_cannot_change(shell: Shell) -> None:
    again = shell.run("publish", "bill.yaml", "--json")
    assert (again.code, again.json["status"]) == (0, "already_published")
    assert (again.json["name"], again.json["version"]) == ("bill", 1)
    changed = shell.run("publish", shell.write("changed.yaml", BILL.replace("at 3 dollars", "at 4 dollars")))
    assert (changed.code, changed.out) == (2, "")
    assert "version: 2" in changed.err


def test_a_job_is_submitted_by_name_and_its_id_alone_goes_to_the_pipe(shell: Shell) -> None:
    words = ("--priority", "7", "--metadata", "order=4711", "--deadline-s", "60", "--token-budget", "0")
    done = shell.ok("submit", "bill", *INPUT, *words)
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
    assert "was used for another submission" in shell.refused(
        "submit", "bill", "--input", '{"team": "maps"}', "--idempotency-key", "once"
    )


def test_a_document_is_published_on_the_way(shell: Shell) -> None:
    document = shell.write("fresh.yaml", BILL.replace("name: bill", "name: fresh"))
    bad = shell.run("submit", document)
    assert bad.code == 2
    assert not shell.rows("SELECT name FROM workflows WHERE name = 'fresh'")
    done = shell.ok("submit", document, *INPUT, "--json")
    assert (done.json["workflow"], done.json["version"], done.json["status"]) == ("fresh", 1, "queued")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nothing",), "there is no workflow nothing"),
        (("bill",), 'must have the field "team"'),
        (("bill", *INPUT, "--metadata", "order"), "is not NAME=VALUE"),
        (("bill", *INPUT, "--metadata", "a=1", "--metadata", "a=2"), "given twice"),
        (("bill", *INPUT, "--priority", "1001"), "--priority"),
    ],
)
def test_bad_input_is_explained_and_stores_nothing(shell: Shell, words: tuple[str, ...], said: str) -> None:
    assert said in shell.refused("submit", *words)


def test_without_the_tools_the_flag_for_them_is_named(shell: Shell) -> None:
    assert "look_up" in shell.refused("submit", "bill", *INPUT, STEPLADDER_APP=None)
    assert shell.run("submit", "bill", *INPUT, "--app", "app.py", STEPLADDER_APP=None).code == 0


def test_wait_follows_the_job_to_its_end_and_exit_code(shell: Shell) -> None:
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


def test_a_broker_that_is_down_delays_no_submission(shell: Shell) -> None:
    """Nothing is lost: the sweep of a worker finds the job."""
    done = shell.ok("submit", "bill", *INPUT, STEPLADDER_BROKER_URL="redis://:hush@127.0.0.1:1/0")
    assert "broker" in done.err
    assert "hush" not in done.err
