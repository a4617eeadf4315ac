from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from structlog.testing import capture_logs

from stepladder.models.ids import uuid7
from stepladder.models.records import Taken
from stepladder.runner.claimer import Picked
from stepladder.runner.runner import Slice, SliceEnd
from stepladder.schemas.errors import UnreachableError
from stepladder.tasks.executor import JobExecutor
from stepladder.testing import eventually

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from uuid import UUID


class Slices:
    """So many jobs are due, and every slice runs as the test says."""

    def __init__(self, work: Callable[[], Awaitable[object]], due: int = 1) -> None:
        self.due = due
        self.begun: list[UUID] = []
        self.put_back_: list[UUID] = []
        self.asked = 0
        self.may_pick = asyncio.Event()
        self.may_pick.set()
        self._work = work

    async def pick(self) -> Picked | None:
        self.asked += 1
        await self.may_pick.wait()
        if self.due == 0:
            return None
        self.due -= 1
        return Picked(Taken(uuid7(), 1, "worker", 3.0), 0.0)

    async def put_back(self, picked: Picked) -> None:
        self.put_back_.append(picked.taken.job_id)

    async def run_picked(self, picked: Picked) -> Slice:
        self.begun.append(picked.taken.job_id)
        await self._work()
        return Slice(SliceEnd.FINISHED)


async def nothing() -> None:
    return None


async def test_a_place_is_worked_at_until_nothing_is_due() -> None:
    slices = Slices(nothing, due=5)
    await JobExecutor(1).run(slices)
    assert len(slices.begun) == 5
    assert slices.asked == 6


async def test_a_job_has_its_share_only_while_all_places_are_taken() -> None:
    executor, gate = JobExecutor(2, fair_s=-1.0), asyncio.Event()
    slices = Slices(gate.wait)
    async with asyncio.TaskGroup() as group:
        group.create_task(executor.run(slices))
        await eventually(lambda: len(slices.begun) == 1)
        [first] = slices.begun
        assert not executor.is_over(first)
        slices.due = 1
        group.create_task(executor.run(slices))
        await eventually(lambda: len(slices.begun) == 2)
        assert executor.is_over(first)
        assert not executor.is_over(uuid7())
        gate.set()
    assert not executor.is_over(first)


async def test_a_share_that_is_not_used_up_is_left_to_its_job() -> None:
    executor, gate = JobExecutor(1, fair_s=1_000.0), asyncio.Event()
    slices = Slices(gate.wait)
    async with asyncio.TaskGroup() as group:
        group.create_task(executor.run(slices))
        await eventually(lambda: len(slices.begun) == 1)
        assert not executor.is_over(slices.begun[0])
        gate.set()


async def test_once_it_is_over_no_slice_is_begun_and_those_that_run_are_told() -> None:
    executor, gate = JobExecutor(9), asyncio.Event()
    slices = Slices(gate.wait, due=3)
    async with asyncio.TaskGroup() as group:
        group.create_task(executor.run(slices))
        await eventually(lambda: len(slices.begun) == 1)
        ending = group.create_task(executor.end(1_000.0))
        await eventually(lambda: executor.is_over(slices.begun[0]))
        await executor.run(slices)
        assert not ending.done()
        gate.set()
    assert len(slices.begun) == 1
    assert slices.due == 2


async def test_a_job_that_is_taken_when_the_shift_is_over_already_is_put_back() -> None:
    executor, slices = JobExecutor(9), Slices(nothing)
    slices.may_pick.clear()
    async with asyncio.TaskGroup() as group:
        group.create_task(executor.run(slices))
        await eventually(lambda: slices.asked == 1)
        group.create_task(executor.end(1_000.0))
        await asyncio.sleep(0)
        slices.may_pick.set()
    assert slices.begun == []
    assert len(slices.put_back_) == 1


async def test_a_slice_that_does_not_end_is_broken_off() -> None:
    executor = JobExecutor(9)
    slices = Slices(asyncio.Event().wait)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(executor.run(slices))
        await eventually(lambda: len(slices.begun) == 1)
        await executor.end(0.0)
    assert running.exception() is None


async def test_whatever_goes_wrong_in_a_slice_stays_there_and_the_next_is_begun() -> None:
    async def unreachable() -> None:
        raise UnreachableError("the database is gone")

    async def bug() -> None:
        raise RuntimeError("a bug")

    async def handed_back() -> None:
        raise asyncio.CancelledError

    with capture_logs() as logs:
        for work in (unreachable, bug, handed_back):
            slices = Slices(work, due=2)
            await JobExecutor(1).run(slices)
            assert len(slices.begun) == 2
    assert [line["log_level"] for line in logs] == ["warning"] * 2 + ["error"] * 2 + ["info"] * 2


async def test_where_no_job_can_be_taken_the_place_is_left() -> None:
    class Broken(Slices):
        async def pick(self) -> Picked | None:
            raise UnreachableError("the database is gone")

    with capture_logs() as logs:
        await JobExecutor(1).run(Broken(nothing))
    assert [(line["log_level"], line["event"]) for line in logs] == [("warning", "no job taken")]
