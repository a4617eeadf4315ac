from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from structlog.testing import capture_logs

from stepladder.models.ids import uuid7
from stepladder.models.records import Claim
from stepladder.runner.claimer import Claimer
from stepladder.runner.runner import Runner, Slice, SliceEnd
from stepladder.schemas.errors import UnreachableError
from stepladder.tasks.executor import JobExecutor
from stepladder.testing import eventually
from stepladder.workflows.job import Job

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from uuid import UUID


class Jobs(Claimer, Runner):
    """So many jobs are due, and each runs as the test says. Replaces the store's side of both."""

    def __init__(self, work: Callable[[], Awaitable[object]], due: int = 1) -> None:
        self.due = due
        self.begun: list[UUID] = []
        self.asked = 0
        self.may_claim = asyncio.Event()
        self.may_claim.set()
        self.should_stop: Callable[[], bool] = lambda: False
        self._work = work

    async def next(self) -> Claim | None:
        self.asked += 1
        await self.may_claim.wait()
        if self.due == 0:
            return None
        self.due -= 1
        job, now = uuid7(), datetime.now(UTC)
        return Claim(Job(job, job, {}, now), "w", 1, owner="worker", fence=1, lease_s=3.0, claimed_at=now)

    async def run(self, claim: Claim, should_stop: Callable[[], bool] = lambda: False) -> Slice:
        self.begun.append(claim.job.id)
        self.should_stop = should_stop
        await self._work()
        return Slice(SliceEnd.FINISHED)


def executor_of(jobs: Jobs, concurrency: int = 9, fair_s: float = 1_000.0) -> JobExecutor:
    return JobExecutor(jobs, jobs, concurrency, fair_s=fair_s)


async def nothing() -> None:
    return None


async def test_jobs_run_one_after_the_other_until_none_is_due() -> None:
    jobs = Jobs(nothing, due=5)
    await executor_of(jobs, 1).run()
    assert (len(jobs.begun), jobs.asked) == (5, 6)


async def test_a_job_stops_after_its_fair_time_if_all_places_are_taken() -> None:
    gate = asyncio.Event()
    jobs = Jobs(gate.wait)
    executor = executor_of(jobs, 2, fair_s=-1.0)
    async with asyncio.TaskGroup() as group:
        group.create_task(executor.run())
        await eventually(lambda: len(jobs.begun) == 1)
        [first] = jobs.begun
        assert not executor.should_stop(first)
        jobs.due = 1
        group.create_task(executor.run())
        await eventually(lambda: len(jobs.begun) == 2)
        assert executor.should_stop(first)
        assert not executor.should_stop(uuid7())
        gate.set()
    assert not executor.should_stop(first)


async def test_a_job_runs_on_within_its_fair_time() -> None:
    gate = asyncio.Event()
    jobs = Jobs(gate.wait)
    executor = executor_of(jobs, 1)
    async with asyncio.TaskGroup() as group:
        group.create_task(executor.run())
        await eventually(lambda: len(jobs.begun) == 1)
        assert not jobs.should_stop()
        gate.set()


async def test_a_draining_executor_begins_nothing_and_stops_what_runs() -> None:
    gate = asyncio.Event()
    jobs = Jobs(gate.wait, due=3)
    executor = executor_of(jobs)
    async with asyncio.TaskGroup() as group:
        group.create_task(executor.run())
        await eventually(lambda: len(jobs.begun) == 1)
        draining = group.create_task(executor.drain(1_000.0))
        await eventually(jobs.should_stop)
        await executor.run()
        assert not draining.done()
        gate.set()
    assert (len(jobs.begun), jobs.due) == (1, 2)


async def test_a_job_claimed_while_draining_is_to_stop_at_once() -> None:
    jobs = Jobs(nothing)
    executor = executor_of(jobs)
    jobs.may_claim.clear()
    async with asyncio.TaskGroup() as group:
        group.create_task(executor.run())
        await eventually(lambda: jobs.asked == 1)
        group.create_task(executor.drain(1_000.0))
        await asyncio.sleep(0)
        jobs.may_claim.set()
    assert jobs.should_stop()


async def test_a_turn_that_does_not_end_is_interrupted() -> None:
    jobs = Jobs(asyncio.Event().wait)
    executor = executor_of(jobs)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(executor.run())
        await eventually(lambda: len(jobs.begun) == 1)
        await executor.drain(0.0)
    assert running.exception() is None


async def test_an_error_in_one_job_is_logged_and_the_next_is_begun() -> None:
    async def unreachable() -> None:
        raise UnreachableError("the database is gone")

    async def bug() -> None:
        raise RuntimeError("a bug")

    with capture_logs() as logs:
        for work in (unreachable, bug):
            jobs = Jobs(work, due=2)
            await executor_of(jobs, 1).run()
            assert len(jobs.begun) == 2
    assert [line["log_level"] for line in logs] == ["warning"] * 2 + ["error"] * 2


async def test_where_no_job_can_be_claimed_the_place_is_left() -> None:
    class Broken(Jobs):
        async def next(self) -> Claim | None:
            raise UnreachableError("the database is gone")

    with capture_logs() as logs:
        await executor_of(Broken(nothing), 1).run()
    assert [(line["log_level"], line["event"]) for line in logs] == [("warning", "no job claimed")]
