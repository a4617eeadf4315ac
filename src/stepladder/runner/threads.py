"""Running what blocks in a thread of its own."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def in_thread(work: Callable[[], T], late: Callable[[T], None], *, name: str) -> asyncio.Future[T]:
    """Begins ``work``, which never raises, and gives what it comes to.

    No pool: jobs in hand are bounded, and one whose tool sleeps must keep no other waiting, nor whatever else asks
    asyncio for a thread. Nothing can stop a thread. Where the future was cancelled, ``late`` is given the result, in
    any thread; the process ends without waiting for it. Raises ``RuntimeError`` where no thread can be had.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def hand_over(result: T) -> None:
        if future.cancelled():
            late(result)
        else:
            future.set_result(result)

    def run() -> None:
        result = work()
        try:
            loop.call_soon_threadsafe(hand_over, result)
        except RuntimeError:  # the loop has ended meanwhile
            late(result)

    threading.Thread(target=contextvars.copy_context().run, args=(run,), name=name, daemon=True).start()
    return future
