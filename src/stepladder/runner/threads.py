"""Runs blocking code in a dedicated thread."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def in_thread(work: Callable[[], T], late: Callable[[T], None], *, name: str) -> asyncio.Future[T]:
    """Starts ``work``, which never raises, and returns its result.

    There is no pool: jobs in flight are bounded, and a tool that sleeps must not delay another job, nor others that
    ask asyncio for a thread. A thread cannot be stopped: if the future is cancelled, ``late`` gets the result, in any
    thread, and the process ends without waiting for it. Raises ``RuntimeError`` if no thread can be started.
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
        except RuntimeError:  # the loop has ended
            late(result)

    threading.Thread(target=contextvars.copy_context().run, args=(run,), name=name, daemon=True).start()
    return future
