"""Waits: signals early and late, taken once, refused where they do not fit, and time that runs out."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

import stepladder
from stepladder.models.ids import uuid7
from stepladder.models.records import Receipt
from stepladder.testing import Answer, eventually

from .conftest import asking

if TYPE_CHECKING:
    from uuid import UUID

    from .conftest import Open, Works

GO = {"type": "object", "properties": {"action": {"enum": ["go", "stop"]}, "n": {"type": "integer"}}}
GO |= {"required": ["action"]}


def waiting(**fields: Any) -> dict[str, Any]:
    return {"wait": {"signal": "word", "schema": GO} | fields, "next": {"go": "done", "stop": "broken"}}


async def signal(w: Works, job: UUID, payload: Any, name: str = "word") -> Receipt:
    return await w.store.signal(job, uuid7(), name, payload)


async def test_a_signal_ends_the_wait_and_stays_readable(works: Open) -> None:
    w = await works()
    done = {"end": "succeeded", "result": {"n": "signals.hold.n"}}
    job = await w.submit({"hold": waiting(), "done": done})
    assert (await w.drive(job)).waiting_for == "word"
    assert await signal(w, job, {"action": "go", "n": 5}) is Receipt.ACCEPTED
    ended = await w.drive(job)
    assert (ended.status, ended.result, ended.waiting_for) == ("succeeded", {"n": 5}, None)
    assert await signal(w, job, {"action": "go"}) is Receipt.FINAL


async def test_an_early_signal_counts_and_each_is_taken_once(works: Open) -> None:
    """Two waits for the same name, two signals before either was open: one each, in the order of their coming."""
    w = await works()
    states = {
        "first": waiting() | {"next": {"go": "second", "stop": "broken"}},
        "second": waiting(),
        "done": {"end": "succeeded", "result": {"first": "signals.first.n", "second": "signals.second.n"}},
    }
    job = await w.submit(states)
    for n in (1, 2):
        await signal(w, job, {"action": "go", "n": n})
    assert (await w.drive(job)).result == {"first": 1, "second": 2}
    taken = await w.rows("SELECT count(*) AS n FROM signals WHERE job_id = %s AND taken_at IS NOT NULL", job)
    assert taken == [{"n": 2}]


async def test_a_signal_during_the_turn_before_the_wait_is_not_missed(works: Open) -> None:
    w = await works(Answer({"n": 1}, delay_s=0.2))
    job = await w.submit({"ask": asking(next="hold"), "hold": waiting()})

    async def signal_while_asking() -> None:
        await eventually(lambda: len(w.engine.requests) == 1)
        await signal(w, job, {"action": "go"})

    ended, _ = await asyncio.gather(w.drive(job), signal_while_asking())
    assert ended.status == "succeeded"


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        ({"action": "go", "n": "five"}, "/n"),
        (None, "map"),
        ({"action": "go", "wait_id": "another"}, "wait_id"),
    ],
)
async def test_an_invalid_signal_is_consumed_and_the_wait_continues(works: Open, payload: Any, reason: str) -> None:
    w = await works()
    job = await w.submit({"hold": waiting()})
    await w.drive(job)
    await signal(w, job, payload)
    left = await w.drive(job)
    assert (left.status, left.state) == ("waiting", "hold")
    [refused] = [e.data for e in await w.reads.events(job) if e.kind == "signal_refused"]
    assert reason in str(refused["reason"])
    assert (await w.store.pending_signals(job)).signals == ()
    assert (await w.drive(job, {"word": [{"action": "go"}]})).status == "succeeded"


async def test_a_job_that_waits_can_be_cancelled(works: Open) -> None:
    w = await works()
    job = await w.submit({"hold": waiting()})
    await w.drive(job)
    assert await w.store.request_cancel(job) is Receipt.ACCEPTED
    done = await w.drive(job, {"word": [{"action": "go"}]})
    assert (done.status, done.waiting_for) == ("cancelled", None)


async def test_answers_are_given_one_by_one_until_one_fits(works: Open) -> None:
    w = await works()
    answers = {"word": [{"action": "perhaps"}, {"action": "stop"}, {"action": "go"}], "other": [{"action": "go"}]}
    done = await w.drive(await w.submit({"hold": waiting()}), answers)
    assert (done.status, done.failure) == ("failed", "rejected")


async def test_a_wait_without_a_signal_times_out(works: Open) -> None:
    w = await works()
    hold = waiting(timeout_s=0.2)
    hold["next"] = hold["next"] | {"timeout": "late"}
    late = {"end": "succeeded", "result": {"spoken": "has(signals.hold)"}}
    job = await w.submit({"hold": hold, "late": late})

    async def ended() -> bool:
        return (await w.drive(job)).status.final

    await eventually(ended)
    done = await w.job(job)
    assert (done.status, done.state, done.result) == ("succeeded", "late", {"spoken": False})


async def test_the_deadline_stands_still_while_a_job_waits(works: Open) -> None:
    w = await works({"n": 1})
    states = {"hold": waiting() | {"next": {"go": "ask", "stop": "broken"}}, "ask": asking()}
    job = await w.submit(states, limits={"deadline_s": 300})
    before = (await w.rows("SELECT deadline_at FROM jobs WHERE id = %s", job))[0]["deadline_at"]
    await w.drive(job)
    # As if it had waited for an hour.
    hour = "UPDATE {} = {} - interval '1 h' WHERE job_id = %s"
    await w.rows(hour.format("visits SET opened_at", "opened_at"), job)
    assert (await w.drive(job, {"word": [{"action": "go"}]})).status == "succeeded"
    after = (await w.rows("SELECT deadline_at FROM jobs WHERE id = %s", job))[0]["deadline_at"]
    assert (after - before).total_seconds() >= 3600


async def test_an_irreversible_tool_takes_no_early_signal(works: Open) -> None:
    paid: list[int] = []

    @stepladder.tool("pay", effect="irreversible")
    def pay(amount: int) -> None:
        paid.append(amount)

    w = await works()
    states = {
        "confirm": {"wait": {"signal": "confirm"}, "next": {"yes": "pay", "no": "broken"}},
        "pay": {"tool": "pay", "arguments": {"amount": "input.amount"}, "next": {"ok": "done", "error": "broken"}},
    }
    job = await w.submit(states, {"amount": 7})
    await signal(w, job, {"action": "yes"}, name="confirm")
    left = await w.drive(job)
    assert (left.status, left.state, paid) == ("waiting", "confirm", [])
    wait = (await w.rows("SELECT body FROM visits WHERE job_id = %s", job))[0]["body"]
    assert wait["frozen"] == {"pay": {"tool": "pay", "arguments": {"amount": 7}}}

    await signal(w, job, {"action": "yes"}, name="confirm")  # it names no wait, and may have been meant for another
    assert (await w.drive(job)).state == "confirm"
    await signal(w, job, {"action": "yes", "wait_id": str(wait["wait_id"])}, name="confirm")
    assert (await w.drive(job)).status == "succeeded"
    assert paid == [7]
