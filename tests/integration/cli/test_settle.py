"""``stepladder settle``, and what the other commands say of a job that waits for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import Done, Shell

NOBODY = "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5a6b"


def pay(shell: Shell) -> Done:
    done = shell.run("run", "paying.yaml", "--signal", 'confirmation={"action": "go"}')
    assert done.code == 0, done.err
    return done


@pytest.fixture
def unsettled(shell: Shell) -> str:
    """A job of which nobody knows whether its payment took effect."""
    return pay(shell).out.split()[1]


def test_what_is_to_be_settled_is_said_with_the_commands_for_it(shell: Shell) -> None:
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


def test_it_took_effect(shell: Shell, unsettled: str) -> None:
    said = shell.run("settle", unsettled, "--done", '{"receipt": 7}')
    assert (said.code, said.out) == (0, f"job {unsettled}: settled; status waiting\n")
    again = shell.run("settle", unsettled, "--done", '{"receipt": 7}')
    assert "settled already" in again.out
    assert "local settled it: it took effect" in shell.run("show", unsettled).out
    other = shell.run("settle", unsettled, "--not-done")
    assert other.code == 2
    assert "settled differently before" in other.err
    done = shell.run("run", "--job", unsettled, "--json")
    assert (done.code, done.json["result"]) == (0, {"receipt": 7})


def test_it_did_not(shell: Shell, unsettled: str) -> None:
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
        (("--done", "{}", "--not-done"), "state whether the tool took effect"),
        (("--done", "{"), "cannot be read as JSON"),
        (("--done", "7"), "pay cannot return this result"),
        (("--done", "{}", "--key", "another"), "and not of another"),
    ],
)
def test_a_settlement_of_no_use_is_refused(shell: Shell, unsettled: str, words: tuple[str, ...], said: str) -> None:
    done = shell.run("settle", unsettled, *words)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert shell.rows("SELECT count(*) FROM settlements WHERE job_id = %s", unsettled) == [(0,)]


def test_a_job_that_waits_for_something_else_says_for_what(shell: Shell, waiting_job: str) -> None:
    done = shell.run("settle", waiting_job, "--not-done")
    assert done.code == 2
    assert "it waits for the signal approval" in done.err
    nobody = shell.run("settle", NOBODY, "--not-done")
    assert (nobody.code, "there is no job" in nobody.err) == (2, True)


def test_a_request_to_end_that_waits_for_a_settlement_is_said(shell: Shell, unsettled: str) -> None:
    assert shell.run("cancel", unsettled).code == 0
    assert "it is cancelled once this call is settled" in shell.run("show", unsettled).out
    assert shell.run("settle", unsettled, "--not-done").code == 0
    assert shell.run("run", "--job", unsettled).code == 1
    assert shell.rows("SELECT status FROM jobs WHERE id = %s", unsettled) == [("cancelled",)]


def test_watch_tells_what_is_to_be_settled_while_it_waits(shell: Shell, unsettled: str) -> None:
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
