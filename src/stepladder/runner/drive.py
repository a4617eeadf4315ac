"""Drives one job and its children in this process until it ends or waits for an outside event."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Self

from stepladder.models.child_jobs import live_children
from stepladder.models.ids import uuid7
from stepladder.runner.runner import SliceEnd
from stepladder.schemas.actor import LOCAL
from stepladder.schemas.event import EventKind
from stepladder.schemas.job import CHILDREN, JobStatus
from stepladder.workflows.visits import SignalWait

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType
    from uuid import UUID

    from stepladder.models.store import Store
    from stepladder.queries.reads import Reads
    from stepladder.runner.runner import Runner, Slice
    from stepladder.schemas.actor import Actor
    from stepladder.schemas.jsontypes import Json
    from stepladder.schemas.responses import Job

POLL_S = 0.2  # between two looks at a job that rests, or that another worker has


class Driver:
    """Runs slices of one job and of its children. ``answers`` holds the payloads to send, as ``sender``, when a job
    waits for the signal of that name.

    An answer is sent once its wait is open, and names the wait, so it also serves a wait that takes no early signal.
    """

    def __init__(
        self,
        runner: Runner,
        store: Store,
        reads: Reads,
        answers: Mapping[str, Sequence[Json]],
        sender: Actor = LOCAL,
    ) -> None:
        self._runner = runner
        self._store = store
        self._reads = reads
        self._sender = sender
        self._answers = {name: list(payloads) for name, payloads in answers.items()}

    async def drive(self, job_id: UUID) -> SliceEnd:
        """``FINISHED``, or ``WAITING`` for an outside event. Another worker may have run the job.

        Raises ``LookupError`` for a job that is not in the store.
        """
        async with _Children(self) as children:
            end = await self._drive(job_id, children)
            if end is SliceEnd.FINISHED:
                await children.tend(await live_children(self._store, job_id), to_its_end=True)
            return end

    async def _drive(self, job_id: UUID, children: _Children) -> SliceEnd:
        while True:
            ended = await self._runner.run_slice(job_id)
            if ended.end is SliceEnd.FINISHED:
                return ended.end
            job = await self._reads.overview(job_id)
            if job is None:
                raise LookupError(f"job {job_id} is not in the store")
            if job.status.final:
                return SliceEnd.FINISHED
            if job.status is JobStatus.WAITING and job.waiting_for == CHILDREN:
                if not await children.tend(await live_children(self._store, job_id)):
                    return SliceEnd.WAITING
            elif job.status is JobStatus.WAITING and not (await self._answer(job) or self._is_over(ended)):
                return SliceEnd.WAITING
            if ended.end is not SliceEnd.WAITING:
                await asyncio.sleep(POLL_S)

    async def _answer(self, job: Job) -> bool:
        """Whether there is a signal for the open wait: one that came, or one of ``answers`` that is sent now."""
        inbox = await self._store.pending_signals(job.id)
        if any(signal.name == job.waiting_for for signal in inbox.signals):
            return True
        payloads = self._answers.get(job.waiting_for or "")
        if not payloads:
            return False
        payload = payloads.pop(0)
        started = [event for event in await self._reads.events(job.id) if event.kind is EventKind.WAIT_STARTED]
        if isinstance(payload, Mapping) and started:
            payload = {"wait_id": started[-1].data["wait_id"], **payload}
        await self._store.signal(job.id, uuid7(), str(job.waiting_for), payload, self._sender)
        return True

    def _is_over(self, ended: Slice) -> bool:
        """Whether the timeout of the wait that a slice ended in has passed already."""
        wait = None if ended.job is None else ended.job.open
        return isinstance(wait, SignalWait) and wait.until is not None and wait.until <= self._runner.now()


class _Children:
    """The children of one job, driven side by side. Leaving it cancels those still running."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._driven: dict[UUID, asyncio.Task[SliceEnd]] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        running = [task for task in self._driven.values() if not task.done()]
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)

    async def tend(self, live: Iterable[UUID], *, to_its_end: bool = False) -> bool:
        """Drives all live children until one has ended or, ``to_its_end``, all have.

        One that waited before is tried again. False if all of them wait for outside events. Raises what a child's slice
        raised.
        """
        live = set(live)
        for child in live:
            if child in self._driven and not self._driven[child].done():
                continue
            self._driven[child] = asyncio.ensure_future(self._driver.drive(child))
        while live:
            running = [task for child, task in self._driven.items() if child in live and not task.done()]
            if not running:
                break
            await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            ended = {child for child in live if self._driven[child].done()}
            finished = {child for child in ended if self._driven[child].result() is SliceEnd.FINISHED}
            if finished and not to_its_end:
                return True
            live -= finished
        return not live
