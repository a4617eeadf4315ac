"""Ringing: telling the broker, after a commit, that a job is due."""

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

log = structlog.get_logger("stepladder.bell")

WITHIN_S = 2.0
_THREADS = 2
_CHUNK = 100  # rung within one time limit


class Bell:
    """Rings jobs over the application's broker. Use it in a loop, as ``async with``; it has threads of its own.

    A ring may be lost, and may come twice: a worker that finds nothing to do leaves it at that, and the sweep rings
    again what nobody has heard. So a broker that is down is logged, and fails nobody; nobody waits for it longer than
    ``within_s`` seconds.
    """

    def __init__(self, app: Celery, *, within_s: float = WITHIN_S) -> None:
        self._app = app
        self._within_s = within_s
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="bell")
        self._silent = False
        self._ringing: set[asyncio.Task[bool]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._ringing:
            task.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def ring(self, job_id: UUID) -> bool:
        """Says that a job is due. False if that was in vain for now."""
        return await self.ring_many([job_id])

    async def ring_many(self, jobs: Sequence[UUID]) -> bool:
        """Says of each job that it is due. False if that was in vain for some of them. 1,000 take about 0.5 s."""
        for chunk in (jobs[at : at + _CHUNK] for at in range(0, len(jobs), _CHUNK)):
            if await self._try(partial(self._send, chunk)) is None:
                return False
        return True

    def soon(self, jobs: Sequence[UUID]) -> None:
        """Rings the jobs while the caller goes on. To be called in the loop."""
        if jobs:
            task = asyncio.ensure_future(self.ring_many(jobs))
            self._ringing.add(task)
            task.add_done_callback(self._ringing.discard)

    async def waiting(self) -> int | None:
        """How many messages wait in the broker for a worker. None if the broker does not answer."""
        return await self._try(self._count)

    async def _try(self, work: Callable[[], T]) -> T | None:
        loop = asyncio.get_running_loop()
        try:
            done = await asyncio.wait_for(loop.run_in_executor(self._threads, work), self._within_s)
        except TimeoutError:
            self._complain(f"no answer within {self._within_s:g} s")
        except OperationalError as error:
            self._complain(str(error))
        else:
            self._silent = False
            return done
        return None

    def _complain(self, reason: str) -> None:
        """Once, until the broker answers again: every sweep would say the same."""
        if not self._silent:
            log.warning("broker takes no messages; jobs are rung once it does", reason=reason)
        self._silent = True

    def _send(self, jobs: Sequence[UUID]) -> int:
        with self._app.producer_or_acquire() as producer:
            for job in jobs:
                self._app.send_task(RUN_JOB, args=[str(job)], queue=QUEUE, producer=producer)
        return len(jobs)

    def _count(self) -> int:
        with self._app.connection_or_acquire() as connection:
            return int(connection.default_channel.queue_declare(QUEUE).message_count)
