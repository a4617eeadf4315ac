"""``stepladder signal``, ``cancel``, ``pause`` and ``unpause``, and ``watch`` beside them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import Shell

INPUT = ("--input", '{"team": "search"}')
APPROVE = '{"action": "approve"}'
NOBODY = "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5a6b"


@pytest.fixture
def waiting(shell: Shell) -> str:
    """A job of its own that waits for approval."""
    done = shell.run("run", "bill.yaml", *INPUT, "--json")
    assert done.code == 0, done.err
    return str(done.json["id"])


@pytest.fixture
def queued(shell: Shell) -> str:
    done = shell.run("submit", "bill.yaml", *INPUT)
    assert done.code == 0, done.err
    return done.out.strip()


def test_a_signal_is_kept_once_under_its_key_and_the_job_goes_on_with_it(shell: Shell, waiting: str) -> None:
    words = ("signal", waiting, "approval", "--data", APPROVE, "--idempotency-key", "k1")
    assert shell.run(*words).code == 0
    again = shell.run(*words, "--json")
    assert (again.code, again.json["id"]) == (0, waiting)
    assert shell.rows("SELECT count(*) FROM signals WHERE job_id = %s", waiting) == [(1,)]
    other = shell.run("signal", waiting, "approval", "--data", '{"action": "refuse"}', "--idempotency-key", "k1")
    assert other.code == 2
    done = shell.run("run", "--job", waiting, "--json")
    assert (done.code, done.json["result"]) == (0, {"total": 36})
    late = shell.run("signal", waiting, "approval", "--data", APPROVE)
    assert late.code == 2
    assert "has ended: succeeded" in late.err


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("approval", '{"action": "perhaps"}', "/action"),
        ("approval", "{", "cannot be read as JSON"),
        ("approvall", APPROVE, "it waits for approval"),
    ],
)
def test_an_invalid_signal_is_refused_at_once(shell: Shell, waiting: str, name: str, data: str, said: str) -> None:
    done = shell.run("signal", waiting, name, "--data", data)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert shell.rows("SELECT count(*) FROM signals WHERE job_id = %s", waiting) == [(0,)]


def test_a_paused_job_does_not_run_until_it_is_unpaused(shell: Shell, queued: str) -> None:
    assert shell.run("pause", queued, "--json").json["status"] == "paused"
    again = shell.run("pause", queued)
    assert again.code == 0
    assert "nothing changed" in again.out
    assert shell.run("unpause", queued, "--json").json["status"] == "queued"
    assert shell.run("run", "--job", queued, "--signal", f"approval={APPROVE}").code == 0
    assert shell.run("pause", queued).code == 2


def test_a_cancelled_job_ends_with_the_next_worker(shell: Shell, queued: str) -> None:
    assert shell.run("cancel", queued).code == 0
    assert shell.run("run", "--job", queued).code == 1
    assert shell.rows("SELECT status FROM jobs WHERE id = %s", queued) == [("cancelled",)]
    again = shell.run("cancel", queued)
    assert again.code == 0
    assert "nothing changed" in again.out


@pytest.mark.parametrize("words", [("cancel",), ("pause",), ("unpause",), ("watch",), ("show",)])
def test_a_job_that_is_not_there_is_bad_input(shell: Shell, words: tuple[str, ...]) -> None:
    for job, said in ((NOBODY, "there is no job"), ("nobody", "is not a job id")):
        done = shell.run(*words, job)
        assert (done.code, done.out) == (2, "")
        assert said in done.err


def test_watch_tells_the_history_and_follows_to_the_end(shell: Shell, waiting: str) -> None:
    with shell.start("watch", waiting, "--json") as watching:
        assert watching.stdout is not None
        seen = [json.loads(watching.stdout.readline())]
        while seen[-1]["kind"] != "wait_started":
            seen.append(json.loads(watching.stdout.readline()))
        assert shell.run("signal", waiting, "approval", "--data", APPROVE).code == 0
        assert shell.run("run", "--job", waiting).code == 0
        out, err = watching.communicate(timeout=20)
    seen += [json.loads(line) for line in out.splitlines()]
    assert (watching.returncode, err) == (0, "")
    assert [event["ordinal"] for event in seen] == list(range(1, len(seen) + 1))
    assert seen[-1]["kind"] == "job_succeeded"

    told = shell.run("watch", waiting)
    assert told.code == 0
    for line in ("turn 1, attempt 1: semantic (arithmetic)", "waiting for signal approval", 'result {"total": 36}'):
        assert line in told.out
    assert all(len(line) <= 100 for line in told.out.splitlines())


def test_watch_ends_with_one_where_the_job_failed(shell: Shell, waiting: str) -> None:
    with shell.start("watch", waiting) as watching:
        assert shell.run("run", "--job", waiting, "--signal", 'approval={"action": "refuse"}').code == 1
        out, _ = watching.communicate(timeout=20)
    assert watching.returncode == 1
    assert "rejected" in out


def test_the_url_of_the_database_is_for_psql(shell: Shell) -> None:
    done = shell.run("db-url")
    assert (done.code, done.out.strip()) == (0, shell.database_url)
    nowhere = shell.run("db-url", STEPLADDER_DATABASE_URL=None)
    assert (nowhere.code, nowhere.out) == (3, "")
    assert "stepladder up" in nowhere.err


def test_a_worker_needs_a_broker_and_a_public_api_needs_keys(shell: Shell) -> None:
    worker = shell.run("worker")
    assert worker.code == 2
    assert "STEPLADDER_BROKER_URL" in worker.err
    api = shell.run("api", "--host", "0.0.0.0", "--port", "0")  # noqa: S104 -- it must not start
    assert api.code == 2
    assert "STEPLADDER_API_KEYS" in api.err
    keys = shell.run("api", "--port", "0", STEPLADDER_API_KEYS='[{"name": "a", "key": "hush"}]')
    assert keys.code == 2
    assert "hush" not in keys.err
