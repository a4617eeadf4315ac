"""Leases and fences: one worker at a time, and none that lost its job can write to it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from stepladder.models import hot
from stepladder.models.ids import uuid7
from stepladder.models.records import LeaseStatus
from stepladder.models.rows import step_json
from stepladder.schemas.answer import Received, Verdict
from stepladder.schemas.event import EventKind, HistoryEvent
from stepladder.schemas.job import JobStatus
from stepladder.schemas.outcomes import Outcome
from stepladder.schemas.tool import Effect
from stepladder.testing import eventually
from stepladder.workflows.job import Attempt, Message, Turn
from stepladder.workflows.transition import Finished, Rest, RunTool, Transition
from stepladder.workflows.visits import SignalWait, ToolCall
from support.leases import heartbeat

from .conftest import NOW

if TYPE_CHECKING:
    from stepladder.models.records import Claim

    from .conftest import Bench


def soon(seconds: float = 3600) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


async def test_of_two_workers_one_gets_the_job(bench: Bench) -> None:
    job = await bench.submit()
    claims = await asyncio.gather(*(bench.store.claim(owner, 60.0, job.id) for owner in ("one", "two")))
    assert sorted(claim is None for claim in claims) == [False, True]


async def test_many_workers_share_many_jobs_out_with_none_left_and_none_taken_twice(bench: Bench) -> None:
    jobs = [await bench.submit() for _ in range(12)]
    claims: list[Claim] = []
    while len(claims) < len(jobs):  # a row that another worker is taking at this moment is passed over
        found = await asyncio.gather(*(bench.store.claim(f"worker {n}", 60.0) for n in range(8)))
        claims += [claim for claim in found if claim is not None]
    assert sorted(claim.job.id for claim in claims) == sorted(job.id for job in jobs)
    assert await bench.store.claim("late", 60.0) is None


async def test_a_claim_gives_the_job_its_workflow_and_a_higher_fence(bench: Bench) -> None:
    job, first = await bench.claimed()
    assert (first.job, first.workflow, first.version) == (job, "usage-bill", 1)
    assert await bench.store.release(first)
    second = await bench.claim(job)
    assert second.fence > first.fence
    assert not second.taken_over


async def test_the_higher_priority_is_claimed_first_and_then_the_longer_wait(bench: Bench) -> None:
    jobs = [await bench.submit(priority=priority) for priority in (0, 5, 0, 5)]
    claims = [await bench.store.claim("worker", 60.0) for _ in jobs]
    assert [claim.job.id for claim in claims if claim] == [jobs[n].id for n in (1, 3, 0, 2)]


async def test_a_job_that_rests_is_not_due_before_its_time(bench: Bench) -> None:
    job, claim = await bench.claimed()
    assert await bench.commit(claim, Transition(replace(job, status=JobStatus.RUNNING, due_at=soon()), Rest(soon())))
    assert await bench.store.claim("worker", 60.0, job.id) is None
    job, claim = await bench.claimed()
    assert await bench.commit(claim, Transition(replace(job, status=JobStatus.RUNNING), Rest(soon(-1))))
    assert (await bench.claim(job)).job.status is JobStatus.RUNNING


async def test_a_short_rest_may_be_kept_in_hand(bench: Bench) -> None:
    job, claim = await bench.claimed()
    assert await bench.commit(claim, Transition(job, Rest(soon(-1))), release=False)
    assert await bench.store.claim("other", 60.0, job.id) is None
    assert heartbeat(bench.store, claim) is LeaseStatus.HELD


@pytest.mark.parametrize("status", [JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.CANCELLED])
async def test_a_finished_job_is_let_go_of_for_good(bench: Bench, status: JobStatus) -> None:
    job, claim = await bench.claimed()
    assert await bench.commit(claim, Transition(replace(job, status=status, result=[1]), Finished()))
    row = await bench.row(job)
    assert (row["status"], row["result"], row["lease_owner"], row["wake_at"]) == (status, [1], None, None)
    assert row["finished_at"] is not None
    assert await bench.store.claim("worker", 60.0, job.id) is None
    assert heartbeat(bench.store, claim) is LeaseStatus.LOST
    assert not await bench.commit(claim, Transition(job, Rest(NOW)))


async def test_a_heartbeat_keeps_the_lease_and_a_commit_renews_it(bench: Bench) -> None:
    job, claim = await bench.claimed(lease_s=0.0)
    assert heartbeat(bench.store, claim, 60.0) is LeaseStatus.HELD
    assert await bench.store.claim("other", 60.0, job.id) is None
    assert heartbeat(bench.store, claim, 0.0) is LeaseStatus.HELD
    await bench.ask(replace(claim, lease_s=60.0))
    assert await bench.store.claim("other", 60.0, job.id) is None


async def test_who_lost_the_lease_can_write_nothing_anywhere(bench: Bench) -> None:
    job, first = await bench.claimed(lease_s=0.0)
    first, attempt = await bench.ask(first)
    signal_id = uuid7()
    await bench.store.signal(job.id, signal_id, "approval", {})
    second = await bench.claim(job)
    assert second.taken_over
    before = await bench.dump()
    turn, call = Turn(2, "bill", NOW, 2, "?", "b" * 64), ToolCall(3, "run", NOW, "pay", Effect.IDEMPOTENT, {}, "k")
    judged = replace(attempt, verdict=Verdict(Outcome.VALID, output=1))
    everything = Transition(
        replace(first.job, status=JobStatus.SUCCEEDED, tokens=99, event_count=9),
        Finished(),
        events=(HistoryEvent(3, EventKind.JOB_SUCCEEDED),),
        visits=(replace(turn, ordinal=1), turn, call, SignalWait(4, "approve", NOW, "approval", uuid7(), None)),
        judged=(judged,),
        opened=Attempt(2, 1, 10),
        messages=(Message(2, 1, "user", "?"),),
        taken=signal_id,
    )
    assert not await bench.commit(first, everything)
    assert not await bench.commit(first, everything, unless_paused=True)
    assert not await bench.answer(first, attempt)
    assert not await bench.store.holds(first)
    assert not await bench.store.release(first)
    assert heartbeat(bench.store, first) is LeaseStatus.LOST
    assert await bench.dump() == before
    assert heartbeat(bench.store, second) is LeaseStatus.HELD


async def test_the_same_step_from_the_rightful_worker_writes_to_every_table(bench: Bench) -> None:
    job, claim, attempt = await bench.asked()
    signal_id = uuid7()
    await bench.store.signal(job.id, signal_id, "approval", {})
    before = await bench.dump()
    turn, call = Turn(2, "bill", NOW, 2, "?", "b" * 64), ToolCall(3, "run", NOW, "pay", Effect.IDEMPOTENT, {}, "k")
    step = Transition(
        replace(claim.job, status=JobStatus.RUNNING),
        RunTool(call),
        events=(HistoryEvent(3, EventKind.TOOL_STARTED),),
        visits=(turn, call, SignalWait(4, "approve", NOW, "approval", uuid7(), None)),
        judged=(replace(attempt, verdict=Verdict(Outcome.VALID, output=1)),),
        opened=Attempt(2, 1, 10),
        messages=(Message(2, 1, "user", "?"),),
        taken=signal_id,
    )
    assert await bench.commit(claim, step)
    after = await bench.dump()
    assert {name for name in after if after[name] == before[name]} == {
        "workflows",
        "output_schemas",
        "idempotency_keys",
        "prices",
        "principal_bounds",
        "engine_shares",
        "settlements",
        "variants",
        "bulks",
        "experiments",
    }


@pytest.mark.parametrize("came", [None, Received(429, b"slow down", retry_after_s=1.5)], ids=["in flight", "stored"])
async def test_an_attempt_and_a_stored_answer_survive_their_worker(bench: Bench, came: Received | None) -> None:
    job, first, attempt = await bench.asked(lease_s=0.0)
    assert came is None or await bench.answer(first, attempt, came)
    pending = await bench.pending(job)
    assert (pending.attempt, pending.arrival) == (attempt, came)


async def test_a_judged_attempt_is_not_pending(bench: Bench) -> None:
    job, claim, attempt = await bench.asked(lease_s=0.0)
    await bench.answer(claim, attempt)
    judged = replace(attempt, verdict=Verdict(Outcome.EMPTY, "no_content"))
    assert await bench.commit(claim, Transition(claim.job, Rest(soon(-1)), judged=(judged,)))
    again = await bench.claim(job)
    assert again.pending is None
    assert again.job.open is not None


async def test_an_answer_arrives_once(bench: Bench) -> None:
    _, claim, attempt = await bench.asked()
    assert await bench.answer(claim, attempt, Received(200, b"first"))
    assert not await bench.answer(claim, attempt, Received(200, b"second"))


async def test_a_claim_waits_for_an_answer_that_is_being_written_and_finds_it(bench: Bench) -> None:
    job, claim, attempt = await bench.asked(lease_s=0.0)
    parameters = {
        "job": job.id, "fence": claim.fence, "turn": 1, "ordinal": 1, "http_status": 200, "streamed": False,
        "raw": b"paid for", "raw_encoding": "identity", "retry_after_s": None, "lost_cause": None, "lost_detail": None,
        "ttft_ms": None, "duration_ms": 1.0,
    }  # fmt: skip
    async with await bench.connect() as writer:
        async with writer.transaction():
            await writer.execute(hot.ARRIVED, parameters)
            claiming = asyncio.create_task(bench.claim(job))
            await eventually(bench.somebody_waits_for_a_lock)
        pending = (await claiming).pending
    assert pending is not None
    assert pending.attempt == attempt
    assert pending.arrival == Received(200, b"paid for")


@pytest.mark.parametrize("late", ["answer", "commit"])
async def test_what_comes_during_a_take_over_writes_nothing(bench: Bench, late: str) -> None:
    job, claim, attempt = await bench.asked(lease_s=0.0)
    async with await bench.connect() as taker:
        async with taker.transaction():
            await taker.execute(hot.CLAIM_ONE, {"owner": "taker", "lease_s": 60.0, "job": job.id})
            writing = bench.answer(claim, attempt) if late == "answer" else bench.commit(claim, bench.finished(claim))
            writing_late = asyncio.create_task(writing)
            await eventually(bench.somebody_waits_for_a_lock)
        assert not await writing_late
    assert (await bench.row(job))["status"] == "running"
    assert await bench.rows("SELECT arrived_at FROM attempts") == [{"arrived_at": None}]


async def test_a_take_over_that_comes_during_the_last_commit_finds_nothing_to_do(bench: Bench) -> None:
    job, claim = await bench.claimed(lease_s=0.0)
    async with await bench.connect() as writer:
        async with writer.transaction():
            await writer.execute(hot.COMMIT, {"step": step_json(claim, bench.finished(claim), None, release=True)})
            claiming = asyncio.create_task(bench.store.claim("taker", 60.0, job.id))
            await eventually(bench.somebody_waits_for_a_lock)
        assert await claiming is None


async def test_a_job_that_is_handed_back_is_due_at_once_or_when_it_was_said(bench: Bench) -> None:
    job = await bench.submit()
    assert await bench.store.release(await bench.claim(job), soon())
    assert await bench.store.claim("worker", 60.0) is None
    other = await bench.submit()
    assert await bench.store.release(await bench.claim(other))
    found = await bench.store.claim("worker", 60.0)
    assert found is not None
    assert found.job.id == other.id


async def test_asking_keeps_the_job_and_leaves_its_place_in_the_queue(bench: Bench) -> None:
    job, claim = await bench.claimed()
    before = await bench.row(job)
    await bench.ask(claim)
    after = await bench.row(job)
    assert (after["wake_at"], after["fence"], after["lease_owner"]) == (before["wake_at"], claim.fence, "worker")


async def test_an_unknown_job_cannot_be_claimed(bench: Bench) -> None:
    assert await bench.store.claim("worker", 60.0, uuid7()) is None
    assert await bench.store.claim("worker", 60.0) is None
