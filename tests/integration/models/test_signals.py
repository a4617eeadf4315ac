"""Signals and requests to cancel: taken in once, and no wake-up lost."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from stepladder.models import commands, hot
from stepladder.models.ids import uuid7
from stepladder.models.records import Inbox, LeaseStatus, Receipt
from stepladder.models.rows import step_json
from stepladder.schemas.job import JobStatus
from stepladder.schemas.tool import Effect
from stepladder.testing import eventually
from stepladder.workflows.transition import AwaitSettlement, Rest, Transition
from stepladder.workflows.visits import ToolCall
from support.leases import heartbeat

from .conftest import NOW

if TYPE_CHECKING:
    from .conftest import Bench

FAR = datetime.now(UTC) + timedelta(days=1)


async def test_a_signal_wakes_the_job_that_waits_for_it(bench: Bench) -> None:
    job, claim = await bench.claimed()
    assert await bench.commit(claim, bench.waiting(claim, FAR))
    assert await bench.store.claim("worker", 60.0, job.id) is None
    signal_id = uuid7()
    assert await bench.store.signal(job.id, signal_id, "approval", {"action": "approve"}) is Receipt.ACCEPTED
    claim = await bench.claim(job)
    assert [(s.id, s.name, s.payload) for s in claim.signals] == [(signal_id, "approval", {"action": "approve"})]
    assert claim.known_signals == 1


async def test_a_taken_signal_is_pending_no_longer(bench: Bench) -> None:
    job = await bench.submit()
    first, second = uuid7(), uuid7()
    for signal_id in (first, second):
        await bench.store.signal(job.id, signal_id, "approval", None)
    claim = await bench.claim(job)
    assert [signal.id for signal in claim.signals] == [first, second]
    assert await bench.commit(claim, Transition(job, Rest(NOW), taken=first))
    inbox = await bench.store.pending_signals(job.id)
    assert (inbox.known_signals, [signal.id for signal in inbox.signals]) == (2, [second])


async def test_a_signal_counts_once_by_its_id(bench: Bench) -> None:
    job, signal_id = await bench.submit(), uuid7()
    assert await bench.store.signal(job.id, signal_id, "approval", 1) is Receipt.ACCEPTED
    assert await bench.store.signal(job.id, signal_id, "approval", 2) is Receipt.DUPLICATE
    assert [signal.payload for signal in (await bench.store.pending_signals(job.id)).signals] == [1]
    other = await bench.submit()
    assert await bench.store.signal(other.id, signal_id, "approval", 1) is Receipt.ACCEPTED


async def test_of_simultaneous_duplicates_one_counts(bench: Bench) -> None:
    job, signal_id = await bench.submit(), uuid7()
    receipts = await asyncio.gather(*(bench.store.signal(job.id, signal_id, "approval", n) for n in range(6)))
    assert sorted(receipts) == [Receipt.ACCEPTED, *[Receipt.DUPLICATE] * 5]
    assert len((await bench.store.pending_signals(job.id)).signals) == 1


async def test_a_job_that_ended_takes_no_signal_and_no_cancellation(bench: Bench) -> None:
    job, signal_id = await bench.submit(), uuid7()
    await bench.store.signal(job.id, signal_id, "approval", 1)
    claim = await bench.claim(job)
    assert await bench.commit(claim, bench.finished(claim))
    before = await bench.dump()
    assert await bench.store.signal(job.id, uuid7(), "approval", 1) is Receipt.FINAL
    assert await bench.store.signal(job.id, signal_id, "approval", 1) is Receipt.DUPLICATE
    assert await bench.store.request_cancel(job.id) is Receipt.FINAL
    assert await bench.dump() == before


async def test_an_unknown_job_is_named_as_such(bench: Bench) -> None:
    assert await bench.store.signal(uuid7(), uuid7(), "approval", 1) is Receipt.UNKNOWN
    assert await bench.store.request_cancel(uuid7()) is Receipt.UNKNOWN
    assert await bench.store.pending_signals(uuid7()) == Inbox(0, ())


async def test_a_signal_that_came_after_the_worker_looked_makes_the_wait_due_at_once(bench: Bench) -> None:
    job, claim = await bench.claimed()
    await bench.store.signal(job.id, uuid7(), "approval", 1)
    assert await bench.commit(claim, bench.waiting(claim, FAR))
    assert len((await bench.claim(job)).signals) == 1


async def test_a_signal_that_the_worker_knows_does_not_wake_it_again(bench: Bench) -> None:
    job, claim = await bench.claimed()
    await bench.store.signal(job.id, uuid7(), "something_else", 1)
    known = replace(claim, known_signals=(await bench.store.pending_signals(job.id)).known_signals)
    assert await bench.commit(known, bench.waiting(claim, FAR))
    assert await bench.store.claim("worker", 60.0, job.id) is None


async def test_a_signal_that_is_being_written_while_the_job_begins_to_wait_is_not_lost(bench: Bench) -> None:
    job, claim = await bench.claimed()
    async with await bench.connect() as sender:
        async with sender.transaction():
            sent = {"name": "approval", "payload": "1", "by": "local", "scopes": None}
            await sender.execute(commands.SIGNAL, {"job": job.id, "id": uuid7(), **sent})
            committing = asyncio.create_task(bench.commit(claim, bench.waiting(claim, FAR)))
            await eventually(bench.somebody_waits_for_a_lock)
        assert await committing
    assert len((await bench.claim(job)).signals) == 1


async def test_a_signal_that_comes_while_the_wait_is_being_written_is_not_lost(bench: Bench) -> None:
    job, claim = await bench.claimed()
    async with await bench.connect() as writer:
        async with writer.transaction():
            step = step_json(claim, bench.waiting(claim, FAR), None, release=True)
            await writer.execute(hot.COMMIT, {"step": step})
            signalling = asyncio.create_task(bench.store.signal(job.id, uuid7(), "approval", 1))
            await eventually(bench.somebody_waits_for_a_lock)
        assert await signalling is Receipt.ACCEPTED
    assert len((await bench.claim(job)).signals) == 1


async def test_a_signal_does_not_cut_a_rest_short(bench: Bench) -> None:
    job, claim = await bench.claimed()
    await bench.store.signal(job.id, uuid7(), "approval", 1)
    assert await bench.commit(claim, Transition(replace(job, status=JobStatus.RUNNING), Rest(FAR)))
    await bench.store.signal(job.id, uuid7(), "approval", 1)
    assert await bench.store.claim("worker", 60.0, job.id) is None


async def test_a_request_to_cancel_reaches_the_worker_with_its_heartbeat(bench: Bench) -> None:
    job, claim = await bench.claimed()
    assert await bench.store.request_cancel(job.id) is Receipt.ACCEPTED
    assert heartbeat(bench.store, claim) is LeaseStatus.CANCELLING
    assert await bench.store.claim("other", 60.0, job.id) is None


@pytest.mark.parametrize("before", [True, False], ids=["before the commit", "after the commit"])
@pytest.mark.parametrize("kind", ["wait", "rest", "settlement"])
async def test_a_request_to_cancel_wakes_a_job_that_was_let_go_of(bench: Bench, kind: str, before: bool) -> None:
    job, claim = await bench.claimed()
    running = replace(job, status=JobStatus.RUNNING)
    waiting = replace(job, status=JobStatus.WAITING)
    call = ToolCall(1, "pay", NOW, "pay", Effect.IRREVERSIBLE, {}, "key")
    step = {
        "wait": bench.waiting(claim),
        "rest": Transition(running, Rest(FAR)),
        "settlement": Transition(waiting, AwaitSettlement(call)),
    }[kind]
    if before:
        await bench.store.request_cancel(job.id)
    assert await bench.commit(claim, step)
    if not before:
        await bench.store.request_cancel(job.id)
    assert (await bench.claim(job)).cancel_requested


async def test_a_request_to_cancel_that_the_worker_knows_does_not_wake_it_again(bench: Bench) -> None:
    job = await bench.submit()
    await bench.store.request_cancel(job.id)
    claim = await bench.claim(job)
    call = ToolCall(1, "pay", NOW, "pay", Effect.IRREVERSIBLE, {}, "key")
    assert await bench.commit(claim, Transition(replace(job, status=JobStatus.WAITING), AwaitSettlement(call)))
    assert await bench.store.claim("worker", 60.0, job.id) is None


async def test_a_signal_sent_during_a_lease_is_there_when_the_job_is_handed_back(bench: Bench) -> None:
    job, claim = await bench.claimed()
    await bench.commit(claim, bench.waiting(claim, datetime.now(UTC)))
    claim = await bench.claim(job)
    await bench.store.signal(job.id, uuid7(), "approval", 1)
    assert await bench.store.release(claim, FAR)
    assert len((await bench.claim(job)).signals) == 1


async def test_a_name_that_postgresql_cannot_hold_is_just_a_name_that_nobody_waits_for(bench: Bench) -> None:
    job = await bench.submit()
    assert await bench.store.signal(job.id, uuid7(), "appro\0val", {"\0": "\0"}) is Receipt.ACCEPTED
    (signal,) = (await bench.store.pending_signals(job.id)).signals
    assert (signal.name, signal.payload) == ("appro\ufffdval", {"\0": "\0"})
