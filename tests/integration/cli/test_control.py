"""``stepladder signal``, ``cancel``, ``pause`` and ``unpause``, and ``watch`` beside them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import Done, Shell


INPUT = ("--input", '{"team": "search"}')
APPROVE = '{"action": "approve"}'
MISSING = "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5a6b"


@pytest.fixture
def waiting(shell: Shell) -> str:
    """A job of its own that waits for approval."""
    done = shell.ok("run", "bill.yaml", *INPUT, "--json")
    return str(done.json["id"])


@pytest.fixture
def queued(shell: Shell) -> str:
    done = shell.ok("submit", "bill.yaml", *INPUT)
    return done.out.strip()


def test_a_repeated_signal_counts_once_and_the_job_continues(shell: Shell, waiting: str) -> None:
    words = ("signal", waiting, "approval", "--data", APPROVE, "--idempotency-key", "k1")
    assert shell.run(*words).code == 0
    again = shell.run(*words, "--json")
    assert (again.code, again.json["id"]) == (0, waiting)
    assert shell.rows("SELECT count(*) FROM signals WHERE job_id = %s", waiting) == [(1,)]
    done = shell.run("run", "--job", waiting, "--json")
    assert (done.code, done.json["result"]) == (0, {"total": 36})
    assert "has ended: succeeded" in shell.refused("signal", waiting, "approval", "--data", APPROVE)


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("approval", "{", "cannot be read as JSON"),
        ("approvall", APPROVE, "it waits for approval"),
    ],
)
def test_an_invalid_signal_is_refused_at_once(shell: Shell, waiting: str, name: str, data: str, said: str) -> None:
    assert said in shell.refused("signal", waiting, name, "--data", data)
    assert shell.rows("SELECT count(*) FROM signals WHERE job_id = %s", waiting) == [(0,)]


def test_a_paused_job_does_not_run_until_it_is_unpaused(shell: Shell, queued: str) -> None:
    assert shell.run("pause", queued, "--json").json["status"] == "paused"
    again = shell.ok("pause", queued)
    assert "nothing changed" in again.out
    assert shell.run("unpause", queued, "--json").json["status"] == "queued"
    assert shell.run("run", "--job", queued, "--signal", f"approval={APPROVE}").code == 0
    assert shell.run("pause", queued).code == 2


def test_a_cancelled_job_ends_with_the_next_worker(shell: Shell, queued: str) -> None:
    assert shell.run("cancel", queued).code == 0
    assert shell.run("run", "--job", queued).code == 1
    assert shell.rows("SELECT status FROM jobs WHERE id = %s", queued) == [("cancelled",)]
    again = shell.ok("cancel", queued)
    assert "nothing changed" in again.out


@pytest.mark.parametrize(
    "words", [("cancel",), ("pause",), ("unpause",), ("watch",), ("show",), ("settle", "--not-done")]
)
def test_a_missing_job_is_bad_input(shell: Shell, words: tuple[str, ...]) -> None:
    for job, said in ((MISSING, "there is no job"), ("nobody", "is not a job id")):
        assert said in shell.refused(*words, job)


def test_watch_follows_the_history_to_the_end(shell: Shell, waiting: str) -> None:
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

    told = shell.ok("watch", waiting)
    for line in ("turn 1, attempt 1: semantic (arithmetic)", "waiting for signal approval", 'result {"total": 36}'):
        assert line in told.out
    assert all(len(line) <= 100 for line in told.out.splitlines())


def test_watch_exits_with_1_where_the_job_failed(shell: Shell, waiting: str) -> None:
    assert shell.run("run", "--job", waiting, "--signal", 'approval={"action": "refuse"}').code == 1
    done = shell.run("watch", waiting)
    assert (done.code, "rejected" in done.out) == (1, True)


def test_db_url_prints_the_url(shell: Shell) -> None:
    done = shell.run("db-url")
    assert (done.code, done.out.strip()) == (0, shell.database_url)
    nowhere = shell.run("db-url", STEPLADDER_DATABASE_URL=None)
    assert (nowhere.code, nowhere.out) == (3, "")
    assert "stepladder up" in nowhere.err


def test_a_worker_needs_a_broker_and_a_public_api_needs_keys(shell: Shell) -> None:
    assert "STEPLADDER_BROKER_URL" in shell.refused("worker")
    api = shell.run("api", "--host", "0.0.0.0", "--port", "0")  # noqa: S104 -- it must not start
    assert api.code == 2
    assert "STEPLADDER_API_KEYS" in api.err
    keys = shell.run("api", "--port", "0", STEPLADDER_API_KEYS='[{"name": "a", "key": "hush"}]')
    assert keys.code == 2
    assert "hush" not in keys.err


def pay(shell: Shell) -> Done:
    return shell.ok("run", "paying.yaml", "--signal", 'confirmation={"action": "go"}')


@pytest.fixture
def unsettled(shell: Shell) -> str:
    """A job whose payment may or may not have taken effect."""
    return pay(shell).out.split()[1]


def test_an_open_settlement_is_shown_with_its_commands(shell: Shell) -> None:
    ran = pay(shell)
    job = ran.out.split()[1]
    [(key,)] = shell.rows("SELECT key FROM visits WHERE kind = 'tool' AND job_id = %s", job)
    shown = shell.run("show", job)
    for text in (ran.out, shown.out):
        for line in (
            "tool pay started at",
            "reason: the bank broke off (effect_unknown)",
            'arguments {"cents": 36}',
            f"idempotency key {key}",
            f"stepladder settle {job} --done",
            f"stepladder settle {job} --not-done",
        ):
            assert line in text
    assert f"then continue: stepladder run --job {job}" in ran.err
    settlement = shell.run("show", job, "--json").json["settlement"]
    assert (settlement["tool"], settlement["key"], settlement["said"]) == ("pay", key, None)


def test_an_effect_that_happened_is_settled_once(shell: Shell, unsettled: str) -> None:
    said = shell.run("settle", unsettled, "--done", '{"receipt": 7}')
    assert (said.code, said.out) == (0, f"job {unsettled}: settled; status waiting\n")
    again = shell.run("settle", unsettled, "--done", '{"receipt": 7}')
    assert "settled already" in again.out
    assert "local settled it: it took effect" in shell.run("show", unsettled).out
    assert "settled differently before" in shell.refused("settle", unsettled, "--not-done")
    done = shell.run("run", "--job", unsettled, "--json")
    assert (done.code, done.json["result"]) == (0, {"receipt": 7})


def test_an_effect_that_did_not_happen_is_settled(shell: Shell, unsettled: str) -> None:
    assert shell.run("settle", unsettled, "--not-done", "--json").json["waiting_for"] == "settlement"
    done = shell.run("run", "--job", unsettled, "--json")
    assert (done.code, done.json["result"]) == (1, "not_done")
    told = shell.run("watch", unsettled)
    assert "tool pay needs settlement, it is unknown whether it took effect: the bank broke off" in told.out
    assert "settled by local: it did not take effect" in told.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "state whether the tool took effect"),
        (("--done", "{"), "cannot be read as JSON"),
        (("--done", "7"), "pay cannot return this result"),
    ],
)
def test_an_invalid_settlement_is_refused(shell: Shell, unsettled: str, words: tuple[str, ...], said: str) -> None:
    assert said in shell.refused("settle", unsettled, *words)
    assert shell.rows("SELECT count(*) FROM settlements WHERE job_id = %s", unsettled) == [(0,)]


def test_a_job_that_waits_for_something_else_is_not_settled(shell: Shell, waiting_job: str) -> None:
    assert "it waits for the signal approval" in shell.refused("settle", waiting_job, "--not-done")


def test_a_cancelled_job_ends_once_it_is_settled(shell: Shell, unsettled: str) -> None:
    assert shell.run("cancel", unsettled).code == 0
    assert "it is cancelled once this call is settled" in shell.run("show", unsettled).out
    assert shell.run("settle", unsettled, "--not-done").code == 0
    assert shell.run("run", "--job", unsettled).code == 1
    assert shell.rows("SELECT status FROM jobs WHERE id = %s", unsettled) == [("cancelled",)]


def test_watch_shows_an_open_settlement(shell: Shell, unsettled: str) -> None:
    with shell.start("watch", unsettled) as watching:
        assert watching.stdout is not None
        seen = ""
        while "--not-done" not in seen:
            line = watching.stdout.readline()
            assert line, seen
            seen += line
        assert "idempotency key" in seen
        shell.run("settle", unsettled, "--done", "{}")
        assert shell.run("run", "--job", unsettled).code == 0
        out, _ = watching.communicate(timeout=20)
    assert (watching.returncode, "settled" in out) == (0, True)
