"""What a person says of a call that did not come back: kept once, handed to whoever claims the job, and never lost."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from stepladder.models import hot
from stepladder.models.ids import uuid7
from stepladder.models.records import Settling
from stepladder.models.rows import step_json
from stepladder.queries.reads import Reads
from stepladder.schemas.job import SETTLEMENT, JobStatus
from stepladder.schemas.responses import Said
from stepladder.schemas.tool import Effect
from stepladder.testing import eventually
from stepladder.workflows.events import Settled
from stepladder.workflows.transition import AwaitSettlement, Rest, RunTool, Transition
from stepladder.workflows.visits import SignalWait, ToolCall, ToolError, VisitStatus

from .conftest import NOW

if TYPE_CHECKING:
    from stepladder.models.database import Database
    from stepladder.models.records import Claim
    from stepladder.schemas.jsontypes import Json
    from stepladder.workflows.job import Job

    from .conftest import Bench

DONE = Settled(True, {"receipt": 7}, "kim")
KEY = "key-1"
NOT_DONE = Settled(False, by="kim")
WHY = ToolError("timeout", "no result within 5 s")


@pytest.fixture
def reads(database: Database) -> Reads:
    return Reads(database)


async def running(bench: Bench) -> Claim:
    """A job whose irreversible call has begun."""
    claim = await bench.claim(await bench.submit())
    call = ToolCall(1, "pay", NOW, "pay", Effect.IRREVERSIBLE, {"sum": 3}, KEY)
    job = replace(claim.job, status=JobStatus.RUNNING, state="pay", visits=(call,))
    assert await bench.commit(claim, Transition(job, RunTool(call), visits=(call,)))
    return replace(claim, job=job)


def waiting(claim: Claim) -> Transition:
    call = claim.job.visits[-1]
    assert isinstance(call, ToolCall)
    call = replace(call, error=WHY, status=VisitStatus.SETTLEMENT)
    job = replace(claim.job, status=JobStatus.WAITING, waiting_for=SETTLEMENT, visits=(call,))
    return Transition(job, AwaitSettlement(call), visits=(call,))


async def unsettled(bench: Bench) -> Job:
    """A job that is in nobody's hands, and waits for settlement."""
    claim = await running(bench)
    assert await bench.commit(claim, waiting(claim))
    return claim.job


def closed(claim: Claim) -> Transition:
    call = claim.job.visits[-1]
    assert isinstance(call, ToolCall)
    call = call.close(NOW, result={"receipt": 7}, error=None)
    job = replace(claim.job, status=JobStatus.RUNNING, waiting_for=None, visits=(call,))
    return Transition(job, Rest(datetime.now(UTC) + timedelta(days=1)), visits=(call,))


async def test_a_settlement_wakes_the_job_and_comes_with_the_claim(bench: Bench) -> None:
    job = await unsettled(bench)
    assert await bench.store.claim("worker", 60.0, job.id) is None
    assert await bench.store.settle(job.id, KEY, DONE) is Settling.ACCEPTED
    claim = await bench.claim(job)
    assert claim.settled == DONE
    call = claim.job.open
    assert isinstance(call, ToolCall)
    assert call.error == WHY


async def test_the_same_again_is_no_second_settlement_and_another_one_is_refused(bench: Bench) -> None:
    job = await unsettled(bench)
    assert await bench.store.settle(job.id, KEY, DONE) is Settling.ACCEPTED
    before = await bench.dump()
    assert await bench.store.settle(job.id, KEY, replace(DONE, by="lee")) is Settling.DUPLICATE
    for other in (NOT_DONE, replace(DONE, result={"receipt": 8}), replace(DONE, result=None)):
        assert await bench.store.settle(job.id, KEY, other) is Settling.CONTRADICTED
    assert await bench.dump() == before

    claim = await bench.claim(job)
    assert await bench.commit(claim, closed(claim))
    assert await bench.store.settle(job.id, KEY, DONE) is Settling.DUPLICATE, "its answer may have been lost"
    assert await bench.store.settle(job.id, KEY, NOT_DONE) is Settling.CONTRADICTED
    assert await bench.store.settled_before(job.id, DONE) is Settling.DUPLICATE
    assert await bench.store.settled_before(job.id, NOT_DONE) is Settling.NOT_ASKED
    assert await bench.store.settled_before(job.id, NOT_DONE, KEY) is Settling.CONTRADICTED
    assert await bench.store.settled_before(job.id, DONE, "key-2") is Settling.NOT_ASKED


async def test_a_call_that_did_not_take_effect_has_no_result(bench: Bench) -> None:
    job = await unsettled(bench)
    assert await bench.store.settle(job.id, KEY, Settled(False, "ignored", "kim")) is Settling.ACCEPTED
    assert (await bench.claim(job)).settled == NOT_DONE
    assert await bench.store.settle(job.id, KEY, NOT_DONE) is Settling.DUPLICATE


async def test_of_many_at_once_one_counts(bench: Bench) -> None:
    job = await unsettled(bench)
    said = [replace(DONE, result=number) for number in range(4)] * 2
    found = await asyncio.gather(*(bench.store.settle(job.id, KEY, one) for one in said))
    assert sorted(found) == [Settling.ACCEPTED, *[Settling.CONTRADICTED] * 6, Settling.DUPLICATE]
    settled = (await bench.claim(job)).settled
    assert settled is not None
    assert settled.result == said[found.index(Settling.ACCEPTED)].result


async def test_a_settlement_that_names_its_call_is_none_of_another(bench: Bench) -> None:
    job = await unsettled(bench)
    assert await bench.store.settle(job.id, "key-2", DONE) is Settling.NOT_ASKED
    assert await bench.store.settle(job.id, "\0", DONE) is Settling.NOT_ASKED
    assert await bench.store.settle(job.id, KEY, DONE) is Settling.ACCEPTED


@pytest.mark.parametrize("place", ["queued", "running", "a wait of that name", "ended"])
async def test_a_job_that_waits_for_no_settlement_takes_none(bench: Bench, place: str) -> None:
    job = await bench.submit()
    if place == "running":
        job = (await running(bench)).job
    elif place != "queued":
        claim = await bench.claim(job)
        wait = SignalWait(1, "approve", NOW, SETTLEMENT, uuid7(), None)
        held = replace(bench.waiting(claim), visits=(wait,))
        held = replace(held, job=replace(held.job, waiting_for=SETTLEMENT, visits=(wait,)))
        assert await bench.commit(claim, bench.finished(claim) if place == "ended" else held)
    before = await bench.dump()
    for job_id in (job.id, uuid7()):
        assert await bench.store.settle(job_id, KEY, DONE) is Settling.NOT_ASKED
    assert await bench.dump() == before


@pytest.mark.parametrize("hands_back", [False, True], ids=["waits again", "hands the job back"])
async def test_a_settlement_that_comes_during_a_lease_is_found_by_the_next(bench: Bench, hands_back: bool) -> None:
    """A request to cancel woke the job; the worker that took it up did not see the settlement."""
    job = await unsettled(bench)
    await bench.store.request_cancel(job.id)
    claim = await bench.claim(job)
    assert claim.settled is None
    assert await bench.store.settle(job.id, KEY, DONE) is Settling.ACCEPTED
    if hands_back:
        assert await bench.store.release(claim, datetime.now(UTC) + timedelta(days=1))
    else:
        assert await bench.commit(claim, waiting(claim))
    again = await bench.claim(job)
    assert (again.settled, again.cancel_requested) == (DONE, True)


async def test_a_settlement_that_is_being_written_while_the_wait_is_is_not_lost(bench: Bench) -> None:
    job = await unsettled(bench)
    await bench.store.request_cancel(job.id)
    claim = await bench.claim(job)
    async with await bench.connect() as writer:
        async with writer.transaction():
            await writer.execute(hot.COMMIT, {"step": step_json(claim, waiting(claim), None, release=True)})
            settling = asyncio.create_task(bench.store.settle(job.id, KEY, DONE))
            await eventually(bench.somebody_waits_for_a_lock)
        assert await settling is Settling.ACCEPTED
    assert (await bench.claim(job)).settled == DONE


async def test_a_settlement_that_comes_while_another_is_followed_changes_nothing(bench: Bench) -> None:
    job = await unsettled(bench)
    assert await bench.store.settle(job.id, KEY, DONE) is Settling.ACCEPTED
    claim = await bench.claim(job)
    async with await bench.connect() as writer:
        async with writer.transaction():
            await writer.execute(hot.COMMIT, {"step": step_json(claim, closed(claim), None, release=True)})
            settling = asyncio.create_task(bench.store.settle(job.id, KEY, NOT_DONE))
            await settling
        assert settling.result() is Settling.CONTRADICTED
    assert await bench.rows("SELECT done, by FROM settlements") == [{"done": True, "by": "kim"}]


async def test_a_settlement_of_a_paused_job_is_kept_until_it_goes_on(bench: Bench) -> None:
    job = await unsettled(bench)
    await bench.store.pause(job.id, "local")
    assert await bench.store.settle(job.id, KEY, DONE) is Settling.ACCEPTED
    assert await bench.store.claim("worker", 60.0, job.id) is None
    await bench.store.unpause(job.id, "local")
    assert (await bench.claim(job)).settled == DONE


async def test_a_result_and_a_name_come_back_as_they_were(bench: Bench) -> None:
    job = await unsettled(bench)
    odd: Json = {"nul \0": "\ud800", "large": 2**70}
    assert await bench.store.settle(job.id, KEY, Settled(True, odd, "ki\0m")) is Settling.ACCEPTED
    assert (await bench.claim(job)).settled == Settled(True, odd, "ki\ufffdm")


async def test_what_is_to_be_settled_is_read_with_what_was_said_of_it(bench: Bench, reads: Reads) -> None:
    assert await reads.unsettled(uuid7()) is None
    claim = await running(bench)
    assert await reads.unsettled(claim.job.id) is None
    step = waiting(claim)
    assert await bench.commit(claim, step)
    found = await reads.unsettled(claim.job.id)
    assert found is not None
    assert (found.key, found.said) == (KEY, None)
    await bench.store.settle(claim.job.id, KEY, DONE)
    found = await reads.unsettled(claim.job.id)
    assert found is not None
    assert found.said == Said(done=DONE.done, result=DONE.result, by=DONE.by)
    held = await bench.claim(claim.job)
    assert await bench.commit(held, closed(held))
    assert await reads.unsettled(claim.job.id) is None


# A worker that was lost -----------------------------------------------------------------------------------------------


async def test_a_lost_worker_is_known_until_the_machine_has_taken_note_of_it(bench: Bench) -> None:
    job = await bench.submit()
    await bench.claim(job, lease_s=0.0)
    second = await bench.claim(job)
    assert second.taken_over
    assert await bench.store.release(second), "it lacks a tool, and notes nothing"
    third = await bench.claim(job)
    assert third.taken_over
    assert await bench.commit(third, Transition(replace(job, status=JobStatus.RUNNING), Rest(NOW)))
    assert not (await bench.claim(job)).taken_over
