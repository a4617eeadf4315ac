"""Python rules: each call runs in a process that is killed once its time is over.

Nothing in a thread stops ``while True: pass``, a long regular expression or a C library. A process also keeps
``sys.exit``, a crash and a change of global state away from the worker.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from stepladder.runner.forks import Forks, GoneError
from stepladder.validation.semantic import UncheckedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepladder.schemas.tool import Kit, RuleFunction

T = TypeVar("T")

TIMEOUT_S = 2.0
AT_ONCE = 8
"""Rules that one process runs side by side. Others wait, and their time has not begun."""

_threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="rules")
_slots = threading.BoundedSemaphore(AT_ONCE)
_forks = Forks()


@dataclass(frozen=True, slots=True)
class BoundedRule:
    """A registered rule that may take ``timeout_s`` seconds. A call raises ``UncheckedError`` if it takes longer,
    raises anything, or returns something else than None or a text."""

    function: RuleFunction
    timeout_s: float

    def __call__(self, output: Any, **known: Any) -> str | None:
        with _slots:
            try:
                said: dict[str, Any] = _forks.call(self.function, (output, known), self.timeout_s)
            except GoneError as error:
                raise UncheckedError(str(error)) from None
        if said["printed"]:
            sys.stdout.write(said["printed"])
        if (why := said.get("error")) is not None:
            raise UncheckedError(why)
        reason: str | None = said["returned"]
        return reason


def bounded(kit: Kit, timeout_s: float = TIMEOUT_S) -> Kit:
    """The kit with its rules bounded; those that are bounded already stay as they are."""
    rules = {
        name: rule if isinstance(rule, BoundedRule) else BoundedRule(rule, timeout_s)
        for name, rule in kit.rules.items()
    }
    _forks.know(rule.function for rule in rules.values())
    return replace(kit, rules=rules)


def start() -> None:
    """Starts the process that the others are forked from: the earlier, the fewer threads and sockets it inherits."""
    _forks.start()


async def off_the_loop(work: Callable[[], T]) -> T:
    """Runs what may call rules in a thread."""
    return await asyncio.get_running_loop().run_in_executor(_threads, work)
