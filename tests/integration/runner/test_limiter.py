"""Turns that wait for a slot of an engine that many use together."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from stepladder.engine.limiter import ConcurrencyLimiter
from stepladder.models.database import Database
from stepladder.runner.runner import SliceEnd
from stepladder.runner.sharing import shared_limiter
from stepladder.schemas.job import Failure, JobStatus
from stepladder.testing import Answer, eventually

from .conftest import asking

if TYPE_CHECKING:
    from uuid import UUID

    from .conftest import Open, Works

SEVEN = {"n": 7}
TWO = {"first": asking(next="second"), "second": asking()}


def limiter_of(limit: int) -> ConcurrencyLimiter:
    limiter = ConcurrencyLimiter()
    limiter.allow(limit, asyncio.get_running_loop().time() + 600)
    return limiter


async def opened(w: Works, job: UUID) -> int:
    [row] = await w.rows("SELECT count(*) AS n FROM attempts WHERE job_id = %s", job)
    return int(row["n"])


async def test_a_waiting_turn_keeps_its_lease_and_opens_no_attempt(works: Open) -> None:
    w = await works(respond=lambda _: SEVEN)
    job, limiter = await w.submit(TWO), limiter_of(0)
    running = asyncio.create_task(w.runner(lease_s=0.3, limiter=limiter).run_slice(job))
    await eventually(lambda: limiter.waiting == 1)
    loop = asyncio.get_running_loop()
    beyond = loop.time() + 0.6
    await eventually(lambda: loop.time() > beyond)  # two leases
    assert await w.store.claim("other", 60, job) is None
    assert await opened(w, job) == 0
    assert w.engine.requests == []
    limiter.allow(1, loop.time() + 600)
    assert (await running).end is SliceEnd.FINISHED
    assert limiter.in_use == 0
    assert [attempt.outcome for attempt in await w.attempts(job)] == ["valid", "valid"]


async def test_jobs_of_one_process_never_have_more_requests_than_slots(works: Open) -> None:
    w = await works(respond=lambda _: Answer(SEVEN, delay_s=0.02))
    jobs = [await w.submit(TWO) for _ in range(12)]
    limiter = limiter_of(3)
    runner = w.runner(limiter=limiter)
    ends = await asyncio.gather(*(runner.run_slice(job) for job in jobs))
    assert {one.end for one in ends} == {SliceEnd.FINISHED}
    assert w.engine.peak_in_flight <= 3
    assert len(w.engine.requests) == 24
    assert limiter.in_use == 0


async def test_a_turn_that_waits_is_ended_by_a_request_to_cancel(works: Open) -> None:
    w = await works(respond=lambda _: SEVEN)
    job, limiter = await w.submit(TWO), limiter_of(0)
    running = asyncio.create_task(w.runner(lease_s=0.3, limiter=limiter).run_slice(job))
    await eventually(lambda: limiter.waiting == 1)
    await w.store.request_cancel(job)
    assert (await running).end is SliceEnd.FINISHED
    assert (await w.job(job)).status is JobStatus.CANCELLED
    assert w.engine.requests == []
    assert (limiter.waiting, limiter.in_use) == (0, 0)


async def test_a_job_whose_deadline_passes_while_it_waits_fails_by_it(works: Open) -> None:
    w = await works(respond=lambda _: SEVEN)
    job, limiter = await w.submit(TWO, limits={"deadline_s": 0.3}), limiter_of(0)
    assert (await w.runner(limiter=limiter).run_slice(job)).end is SliceEnd.FINISHED
    assert (await w.job(job)).failure is Failure.DEADLINE
    assert w.engine.requests == []
    assert limiter.waiting == 0


async def test_a_job_that_is_paused_while_it_waits_opens_nothing(works: Open) -> None:
    w = await works(respond=lambda _: SEVEN)
    job, limiter = await w.submit(TWO), limiter_of(1)
    other = limiter.permit()
    w.engine.requests.clear()
    running = asyncio.create_task(w.runner(lease_s=0.3, limiter=limiter).run_slice(job))
    await eventually(lambda: limiter.in_use == 1)
    waiting = asyncio.create_task(other.acquire())  # is served before the job's second turn
    await waiting
    await eventually(lambda: limiter.waiting == 1)
    await w.store.pause(job, "a person")
    other.release()
    assert (await running).end is SliceEnd.PAUSED
    [first] = await w.attempts(job)
    assert first.outcome == "valid"
    assert len(w.engine.requests) == 1
    assert limiter.in_use == 0


async def test_a_lost_lease_stops_the_waiting(works: Open) -> None:
    w = await works(respond=lambda _: SEVEN)
    job, limiter = await w.submit(TWO), limiter_of(0)
    running = asyncio.create_task(w.runner(lease_s=0.3, limiter=limiter).run_slice(job))
    await eventually(lambda: limiter.waiting == 1)
    await w.expire_lease(job)
    claim = await w.store.claim("other", 60, job)
    assert claim is not None
    assert (await running).end is SliceEnd.LOST
    assert limiter.waiting == 0


@pytest.mark.parametrize("bound", [1, 4])
async def test_two_processes_share_an_engine_through_the_database(works: Open, bound: int) -> None:
    w = await works(respond=lambda _: Answer(SEVEN, delay_s=0.05))
    jobs = [await w.submit(TWO) for _ in range(8)]
    async with (
        Database(w.database_url) as database,
        shared_limiter(database, w.engine.url, bound) as one,
        shared_limiter(database, w.engine.url, bound) as other,
    ):
        runners = [w.runner(limiter=limiter) for limiter in (one, other)]
        ends = await asyncio.gather(*(runners[nth % 2].run_slice(job) for nth, job in enumerate(jobs)))
        assert {end.end for end in ends} == {SliceEnd.FINISHED}
    assert w.engine.peak_in_flight <= bound
    assert await w.rows("SELECT * FROM engine_shares WHERE engine = %s", w.engine.url) == []


async def test_without_a_bound_nothing_is_written_for_it(works: Open) -> None:
    w = await works(respond=lambda _: SEVEN)
    async with Database(w.database_url) as database, shared_limiter(database, w.engine.url, None) as limiter:
        assert limiter.limit is None
    assert await w.rows("SELECT * FROM engine_shares WHERE engine = %s", w.engine.url) == []
