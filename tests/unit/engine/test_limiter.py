from __future__ import annotations

import asyncio

import pytest

from stepladder.engine.limiter import ConcurrencyLimiter, Permit
from stepladder.schemas.errors import UnreachableError
from stepladder.testing import eventually


def in_(seconds: float) -> float:
    return asyncio.get_running_loop().time() + seconds


async def test_without_a_bound_everybody_has_a_slot_at_once() -> None:
    limiter = ConcurrencyLimiter()
    permits = [limiter.permit() for _ in range(1000)]
    assert all(permit.try_acquire() for permit in permits)
    assert limiter.in_use == 1000
    assert limiter.limit is None


async def test_permits_are_given_within_the_bound_first_come_first_served() -> None:
    limiter = ConcurrencyLimiter(0)
    served: list[int] = []
    peak = 0

    async def work(nth: int) -> None:
        nonlocal peak
        with limiter.permit() as permit:
            await permit.acquire()
            served.append(nth)
            peak = max(peak, limiter.in_use)
            await asyncio.sleep(0)

    tasks = [asyncio.create_task(work(nth)) for nth in range(20)]
    await eventually(lambda: limiter.waiting == 20)
    assert served == []
    limiter.allow(3, in_(60))
    await asyncio.gather(*tasks)
    assert served == list(range(20))
    assert peak == 3
    assert limiter.in_use == 0


async def test_no_caller_overtakes_a_waiting_one() -> None:
    limiter = ConcurrencyLimiter(1)
    first, second, third = limiter.permit(), limiter.permit(), limiter.permit()
    assert first.try_acquire()
    waiting = asyncio.create_task(second.acquire())
    await eventually(lambda: limiter.waiting == 1)
    first.release()
    assert not third.try_acquire()
    await waiting
    assert second.held


async def test_a_cancelled_waiter_leaves_no_permit_behind() -> None:
    limiter = ConcurrencyLimiter(1)
    held, late = limiter.permit(), limiter.permit()
    assert held.try_acquire()
    early, waiting = asyncio.create_task(limiter.permit().acquire()), asyncio.create_task(late.acquire())
    await eventually(lambda: limiter.waiting == 2)
    early.cancel()
    await eventually(lambda: limiter.waiting == 1)
    held.release()  # the slot is given to the one who waits
    waiting.cancel()  # and comes too late
    await asyncio.wait((early, waiting))
    assert limiter.in_use == 0
    assert held.try_acquire()


async def test_a_lower_bound_cancels_nothing_and_holds_from_then_on() -> None:
    limiter = ConcurrencyLimiter(2)
    one, two, three = limiter.permit(), limiter.permit(), limiter.permit()
    assert one.try_acquire()
    assert two.try_acquire()
    limiter.allow(1, in_(60))
    assert limiter.in_use == 2
    one.release()
    assert not three.try_acquire()
    two.release()
    assert three.try_acquire()


async def test_a_bound_that_is_not_renewed_cancels_requests() -> None:
    limiter = ConcurrencyLimiter(0)
    limiter.allow(5, in_(0.05))
    with limiter.permit() as permit:
        await permit.acquire()
        with pytest.raises(UnreachableError, match="could not be renewed"):
            async with permit.in_flight():
                await asyncio.Event().wait()
    assert limiter.limit == 0
    assert limiter.in_use == 0
    assert not limiter.permit().try_acquire()


async def test_a_bound_that_is_renewed_lets_a_long_request_go_on() -> None:
    limiter, gate = ConcurrencyLimiter(0), asyncio.Event()
    limiter.allow(5, in_(0.05))

    async def ask(permit: Permit) -> None:
        await permit.acquire()
        async with permit.in_flight():
            await gate.wait()

    asking = asyncio.create_task(ask(limiter.permit()))
    await eventually(lambda: limiter.in_use == 1)
    first_end = in_(0.05)
    limiter.allow(5, in_(60))
    await eventually(lambda: asyncio.get_running_loop().time() > first_end)
    assert not asking.done()
    gate.set()
    await asking
    assert limiter.in_use == 0


async def test_a_time_out_of_the_request_itself_is_its_own() -> None:
    limiter = ConcurrencyLimiter(0)
    limiter.allow(5, in_(60))
    permit = limiter.permit()
    await permit.acquire()
    with pytest.raises(TimeoutError):
        async with permit.in_flight():
            raise TimeoutError
    assert limiter.in_use == 0
