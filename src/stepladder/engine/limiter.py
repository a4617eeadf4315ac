"""How many requests this process may have at its engine at once: a bound that changes while they are in flight."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Self

from stepladder.schemas.errors import UnreachableError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from types import TracebackType


class ConcurrencyLimiter:
    """Gives permits, first come, first served. ``limit`` None sets no bound until ``allow`` does.

    A bound is good for a time and must be renewed. After that it is 0, and requests in flight are cancelled: other
    processes may have got their share.
    """

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        self._until: float | None = None
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._timers: set[asyncio.Timeout] = set()
        self.in_use = 0
        self.wanted = asyncio.Event()
        """Set when a request has to wait for a permit; for others to clear."""

    @property
    def limit(self) -> int | None:
        """The bound at this moment."""
        if self._limit is None or self._until is None:
            return self._limit
        return self._limit if asyncio.get_running_loop().time() < self._until else 0

    @property
    def waiting(self) -> int:
        return len(self._waiters)

    def allow(self, limit: int, until: float) -> None:
        """Sets the bound, good ``until`` then by the loop's clock. Permits in use beyond it are left alone."""
        self._limit, self._until = limit, until
        for timer in self._timers:
            if not timer.expired():
                timer.reschedule(until)
        self._wake()

    def permit(self) -> Permit:
        """For a caller that has one request in flight at a time."""
        return Permit(self)

    def try_acquire(self) -> bool:
        if self._waiters or not self._has_room():
            return False
        self.in_use += 1
        return True

    async def acquire(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        self.wanted.set()
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():  # acquired at the same moment
                self.release()
            else:
                self._waiters.remove(waiter)
            raise

    def release(self) -> None:
        self.in_use -= 1
        self._wake()

    @asynccontextmanager
    async def in_flight(self) -> AsyncIterator[None]:
        """For the request itself. Raises ``UnreachableError`` if the bound is not renewed in time."""
        timer = asyncio.timeout_at(self._until)
        try:
            async with timer:
                self._timers.add(timer)
                yield
        except TimeoutError:
            if not timer.expired():
                raise
            raise UnreachableError(
                "The share of the engine could not be renewed in time, and the request was cancelled.",
                remedy="Check that PostgreSQL runs and answers; the turn is asked again.",
            ) from None
        finally:
            self._timers.discard(timer)

    def _has_room(self) -> bool:
        limit = self.limit
        return limit is None or self.in_use < limit

    def _wake(self) -> None:
        while self._waiters and self._has_room():
            self.in_use += 1
            self._waiters.popleft().set_result(None)


class Permit:
    """Acquired for a request and released after it, any number of times, and at the end of ``with permit``."""

    def __init__(self, limiter: ConcurrencyLimiter) -> None:
        self._limiter = limiter
        self.held = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def try_acquire(self) -> bool:
        """Whether the permit is held already, or one is free and no other caller waits."""
        self.held = self.held or self._limiter.try_acquire()
        return self.held

    async def acquire(self) -> None:
        """Waits for its turn."""
        if not self.try_acquire():
            await self._limiter.acquire()
            self.held = True

    def release(self) -> None:
        if self.held:
            self.held = False
            self._limiter.release()

    @asynccontextmanager
    async def in_flight(self) -> AsyncIterator[None]:
        """For the request itself; the permit is released after it. Raises as the limiter's does."""
        try:
            async with self._limiter.in_flight():
                yield
        finally:
            self.release()
