"""Telling the broker, after a commit, that jobs are due."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Self, TypeVar

import structlog
from kombu.exceptions import OperationalError

from stepladder.tasks.app import QUEUE, RUN_JOB

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType
    from uuid import UUID

    from celery import Celery

T = TypeVar("T")

log = structlog.get_logger("stepladder.notifier")

TIMEOUT_S = 2.0
_THREADS = 2
_CHUNK = 100  # messages sent within one timeout


class Notifier:
    """Sends a message for each due job over the application's broker. Use it in a loop, as ``async with``.

    A message may be lost or come twice: a worker that finds nothing to do ignores it, and the sweep sends lost ones
    again. So a broker that is down fails no caller: it is logged once, and each chunk of messages waits ``timeout_s``
    seconds at most.
    """

    def __init__(self, app: Celery, *, timeout_s: float = TIMEOUT_S) -> None:
        self._app = app
        self._timeout_s = timeout_s
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="notifier")
        self._is_down = False
        self._background: set[asyncio.Task[bool]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._background:
            task.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def notify(self, jobs: Sequence[UUID]) -> bool:
        """Sends a message for each job. False if some could not be sent for now. 1,000 take about 0.5 s."""
        for chunk in (jobs[at : at + _CHUNK] for at in range(0, len(jobs), _CHUNK)):
            if await self._call(partial(self._send, chunk)) is None:
                return False
        return True

    def notify_soon(self, jobs: Sequence[UUID]) -> None:
        """``notify`` in the background. Call it in the loop."""
        if jobs:
            task = asyncio.ensure_future(self.notify(jobs))
            self._background.add(task)
            task.add_done_callback(self._background.discard)

    async def queue_length(self) -> int | None:
        """How many messages wait in the broker for a worker. None if the broker does not answer."""
        return await self._call(self._count)

    async def _call(self, work: Callable[[], T]) -> T | None:
        loop = asyncio.get_running_loop()
        try:
            done = await asyncio.wait_for(loop.run_in_executor(self._threads, work), self._timeout_s)
        except TimeoutError:
            self._warn_once(f"no answer within {self._timeout_s:g} s")
        except OperationalError as error:
            self._warn_once(str(error))
        else:
            self._is_down = False
            return done
        return None

    def _warn_once(self, reason: str) -> None:
        """Once until the broker answers again: every sweep would log the same."""
        if not self._is_down:
            log.warning("broker unreachable; jobs are announced once it is back", reason=reason)
        self._is_down = True

    def _send(self, jobs: Sequence[UUID]) -> int:
        with self._app.producer_or_acquire() as producer:
            for job in jobs:
                self._app.send_task(RUN_JOB, args=[str(job)], queue=QUEUE, producer=producer)
        return len(jobs)

    def _count(self) -> int:
        with self._app.connection_or_acquire() as connection:
            return int(connection.default_channel.queue_declare(QUEUE).message_count)
