"""How many requests this process may have at its engine at once: a number that changes while they are under way."""

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
    """Given out first come, first served. ``limit`` None sets no bound, until ``allow`` does.

    A bound is good for a time and must be renewed. Once that has passed nobody gets a slot, and what is under way in
    one is broken off: others may have got it.
    """

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        self._until: float | None = None
        self._in_use = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._timers: set[asyncio.Timeout] = set()
        self.wanted = asyncio.Event()
        """Set when somebody has to wait for a slot; for others to clear."""

    @property
    def limit(self) -> int | None:
        """The bound as it holds now."""
        if self._limit is None or self._until is None:
            return self._limit
        return self._limit if asyncio.get_running_loop().time() < self._until else 0

    @property
    def in_use(self) -> int:
        return self._in_use

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def allow(self, limit: int, until: float) -> None:
        """Sets the bound, good ``until`` then by the loop's clock. What is in use beyond it is left alone."""
        self._limit, self._until = limit, until
        for timer in self._timers:
            if not timer.expired():
                timer.reschedule(until)
        self._wake()

    def permit(self) -> Permit:
        """For somebody who will have one request under way at a time."""
        return Permit(self)

    def _try_acquire(self) -> bool:
        if self._waiting or not self._is_free():
            return False
        self._in_use += 1
        return True

    async def _acquire(self) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self.wanted.set()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the slot came too late
                self._release()
            else:
                self._waiting.remove(turn)
            raise

    def _is_free(self) -> bool:
        limit = self.limit
        return limit is None or self._in_use < limit

    def _wake(self) -> None:
        while self._waiting and self._is_free():
            self._in_use += 1
            self._waiting.popleft().set_result(None)

    def _release(self) -> None:
        self._in_use -= 1
        self._wake()

    @asynccontextmanager
    async def _in_flight(self) -> AsyncIterator[None]:
        timer = asyncio.timeout_at(self._until)
        try:
            async with timer:
                self._timers.add(timer)
                yield
        except TimeoutError:
            if not timer.expired():
                raise
            raise UnreachableError(
                "The share of the engine could not be renewed in time, and the request was broken off.",
                remedy="Check that PostgreSQL runs and answers; the turn is asked again.",
            ) from None
        finally:
            self._timers.discard(timer)


class Permit:
    """Takes a slot for a request and leaves it again, any number of times. At the end of ``with permit`` it is left."""

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
        """Whether there is a slot already, or one is free and nobody waits for it."""
        if not self.held:
            self.held = self._limiter._try_acquire()  # noqa: SLF001 -- the other half of the same thing
        return self.held

    async def acquire(self) -> None:
        """Waits for its turn."""
        if not self.try_acquire():
            await self._limiter._acquire()  # noqa: SLF001 -- as above
            self.held = True

    def release(self) -> None:
        if self.held:
            self.held = False
            self._limiter._release()  # noqa: SLF001 -- as above

    @asynccontextmanager
    async def in_flight(self) -> AsyncIterator[None]:
        """For the request itself; the slot is left after it.

        Raises ``UnreachableError`` once the bound was not renewed in time.
        """
        try:
            async with self._limiter._in_flight():  # noqa: SLF001 -- as above
                yield
        finally:
            self.release()
