"""Waiting for a condition in tests, instead of sleeping."""

from __future__ import annotations

import asyncio
import inspect
import time
from typing import TYPE_CHECKING, Any, TypeVar, overload

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")

POLL_S = 0.005


def wait_until(condition: Callable[[], T], timeout_s: float = 10.0, *, what: str = "the condition") -> T:
    """Call ``condition`` until it is true and return its value. Raises ``AssertionError`` after ``timeout_s``."""
    deadline = time.monotonic() + timeout_s
    while not (answer := condition()):
        _give_up_after(deadline, timeout_s, what)
        time.sleep(POLL_S)
    return answer


@overload
async def eventually(
    condition: Callable[[], Coroutine[Any, Any, T]], timeout_s: float = ..., *, what: str = ...
) -> T: ...


@overload
async def eventually(condition: Callable[[], T], timeout_s: float = ..., *, what: str = ...) -> T: ...


async def eventually(condition: Callable[[], Any], timeout_s: float = 10.0, *, what: str = "the condition") -> Any:
    """``wait_until`` for asyncio: the condition may be a coroutine function, and the loop is not blocked."""
    deadline = time.monotonic() + timeout_s
    while True:
        answer = condition()
        if inspect.isawaitable(answer):
            answer = await answer
        if answer:
            return answer
        _give_up_after(deadline, timeout_s, what)
        await asyncio.sleep(POLL_S)  # polling, since the condition may belong to another thread or process


def _give_up_after(deadline: float, timeout_s: float, what: str) -> None:
    if time.monotonic() >= deadline:
        raise AssertionError(f"{what} was still not true after {timeout_s:g} s")
