from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from structlog.testing import capture_logs

from stepladder.models.ids import uuid7
from stepladder.runner.runner import Slice, SliceEnd
from stepladder.schemas.errors import UnreachableError
from stepladder.tasks.shift import Shift
from stepladder.testing import eventually

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from uuid import UUID


class Slices:
    """Runs every slice as the test says."""

    def __init__(self, work: Callable[[], Awaitable[object]]) -> None:
        self.begun: list[UUID | None] = []
        self._work = work

    async def run_slice(self, job_id: UUID | None = None) -> Slice:
        self.begun.append(job_id)
        await self._work()
        return Slice(SliceEnd.FINISHED)


async def test_a_job_has_its_share_only_while_all_places_are_taken() -> None:
    shift, gate = Shift(2, fair_s=-1.0), asyncio.Event()
    slices = Slices(gate.wait)
    first, second = uuid7(), uuid7()
    async with asyncio.TaskGroup() as group:
        group.create_task(shift.run(slices, first))
        await eventually(lambda: len(slices.begun) == 1)
        assert not shift.is_over(first)
        group.create_task(shift.run(slices, second))
        await eventually(lambda: len(slices.begun) == 2)
        assert shift.is_over(first)
        assert not shift.is_over(uuid7())
        gate.set()
    assert not shift.is_over(first)


async def test_a_share_that_is_not_used_up_is_left_to_its_job() -> None:
    shift, gate = Shift(1, fair_s=1_000.0), asyncio.Event()
    slices, job = Slices(gate.wait), uuid7()
    async with asyncio.TaskGroup() as group:
        group.create_task(shift.run(slices, job))
        await eventually(lambda: len(slices.begun) == 1)
        assert not shift.is_over(job)
        gate.set()


async def test_once_it_is_over_no_slice_is_begun_and_those_that_run_are_told() -> None:
    shift, gate = Shift(9), asyncio.Event()
    slices, job = Slices(gate.wait), uuid7()
    async with asyncio.TaskGroup() as group:
        group.create_task(shift.run(slices, job))
        await eventually(lambda: len(slices.begun) == 1)
        ending = group.create_task(shift.end(1_000.0))
        await eventually(lambda: shift.is_over(job))
        await shift.run(slices, uuid7())
        assert not ending.done()
        gate.set()
    assert slices.begun == [job]


async def test_a_slice_that_does_not_end_is_broken_off() -> None:
    shift = Shift(9)
    slices = Slices(asyncio.Event().wait)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(shift.run(slices, uuid7()))
        await eventually(lambda: len(slices.begun) == 1)
        await shift.end(0.0)
    assert running.exception() is None


async def test_whatever_goes_wrong_in_a_slice_stays_there() -> None:
    async def unreachable() -> None:
        raise UnreachableError("the database is gone")

    async def bug() -> None:
        raise RuntimeError("a bug")

    async def handed_back() -> None:
        raise asyncio.CancelledError

    with capture_logs() as logs:
        for work in (unreachable, bug, handed_back):
            await Shift(1).run(Slices(work), uuid7())
    assert [line["log_level"] for line in logs] == ["warning", "error", "info"]
