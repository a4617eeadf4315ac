from __future__ import annotations

import asyncio

import pytest

from stepladder.engine.slots import Seat, Slots
from stepladder.schemas.errors import UnreachableError
from stepladder.testing import eventually


def in_(seconds: float) -> float:
    return asyncio.get_running_loop().time() + seconds


async def test_without_a_bound_everybody_has_a_slot_at_once() -> None:
    slots = Slots()
    seats = [slots.seat() for _ in range(1000)]
    assert all(seat.take_now() for seat in seats)
    assert slots.in_use == 1000
    assert slots.limit is None


async def test_no_more_are_in_use_than_is_allowed_and_who_came_first_is_served_first() -> None:
    slots = Slots(0)
    served: list[int] = []
    peak = 0

    async def work(nth: int) -> None:
        nonlocal peak
        with slots.seat() as seat:
            await seat.take()
            served.append(nth)
            peak = max(peak, slots.in_use)
            await asyncio.sleep(0)

    tasks = [asyncio.create_task(work(nth)) for nth in range(20)]
    await eventually(lambda: slots.waiting == 20)
    assert served == []
    slots.allow(3, in_(60))
    await asyncio.gather(*tasks)
    assert served == list(range(20))
    assert peak == 3
    assert slots.in_use == 0


async def test_nobody_overtakes_who_waits() -> None:
    slots = Slots(1)
    first, second, third = slots.seat(), slots.seat(), slots.seat()
    assert first.take_now()
    waiting = asyncio.create_task(second.take())
    await eventually(lambda: slots.waiting == 1)
    first.leave()
    assert not third.take_now()
    await waiting
    assert second.taken


async def test_who_stops_waiting_leaves_no_slot_behind_even_at_the_last_moment() -> None:
    slots = Slots(1)
    held, late = slots.seat(), slots.seat()
    assert held.take_now()
    early, waiting = asyncio.create_task(slots.seat().take()), asyncio.create_task(late.take())
    await eventually(lambda: slots.waiting == 2)
    early.cancel()
    await eventually(lambda: slots.waiting == 1)
    held.leave()  # the slot is given to the one who waits
    waiting.cancel()  # and comes too late
    await asyncio.wait((early, waiting))
    assert slots.in_use == 0
    assert held.take_now()


async def test_fewer_slots_break_off_nothing_and_are_kept_to_from_then_on() -> None:
    slots = Slots(2)
    one, two, three = slots.seat(), slots.seat(), slots.seat()
    assert one.take_now()
    assert two.take_now()
    slots.allow(1, in_(60))
    assert slots.in_use == 2
    one.leave()
    assert not three.take_now()
    two.leave()
    assert three.take_now()


async def test_a_bound_that_is_not_renewed_gives_no_slot_and_breaks_off_what_is_under_way() -> None:
    slots = Slots(0)
    slots.allow(5, in_(0.05))
    with slots.seat() as seat:
        await seat.take()
        with pytest.raises(UnreachableError, match="could not be renewed"):
            async with seat.used():
                await asyncio.Event().wait()
    assert slots.limit == 0
    assert slots.in_use == 0
    assert not slots.seat().take_now()


async def test_a_bound_that_is_renewed_lets_a_long_request_go_on() -> None:
    slots, gate = Slots(0), asyncio.Event()
    slots.allow(5, in_(0.05))

    async def ask(seat: Seat) -> None:
        await seat.take()
        async with seat.used():
            await gate.wait()

    asking = asyncio.create_task(ask(slots.seat()))
    await eventually(lambda: slots.in_use == 1)
    first_end = in_(0.05)
    slots.allow(5, in_(60))
    await eventually(lambda: asyncio.get_running_loop().time() > first_end)
    assert not asking.done()
    gate.set()
    await asking
    assert slots.in_use == 0


async def test_a_time_out_of_the_request_itself_is_its_own() -> None:
    slots = Slots(0)
    slots.allow(5, in_(60))
    seat = slots.seat()
    await seat.take()
    with pytest.raises(TimeoutError):
        async with seat.used():
            raise TimeoutError
    assert slots.in_use == 0
