"""Driving one job in this process until it ends or waits for somebody."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from stepladder.models.ids import uuid7
from stepladder.runner.runner import SliceEnd
from stepladder.schemas.event import EventKind
from stepladder.schemas.job import JobStatus
from stepladder.workflows.job import Wait

if TYPE_CHECKING:
    from uuid import UUID

    from stepladder.models.reads import Overview, Reads
    from stepladder.models.store import Store
    from stepladder.runner.runner import Runner, Slice
    from stepladder.schemas.jsontypes import Json

POLL_S = 0.2  # how long a job that rests or is in other hands is left before it is looked at again


class Driver:
    """Runs slices of one job. ``answers`` holds what to signal when the job waits for the signal of that name.

    An answer is given when its wait is open, and names the wait: so that it also serves a wait that takes no early
    signal, in front of an irreversible tool.
    """

    def __init__(self, runner: Runner, store: Store, reads: Reads, answers: Mapping[str, Sequence[Json]]) -> None:
        self._runner = runner
        self._store = store
        self._reads = reads
        self._answers = {name: list(payloads) for name, payloads in answers.items()}

    async def drive(self, job_id: UUID) -> SliceEnd:
        """``FINISHED``, or ``WAITING`` for somebody who is not here. Another worker may have brought the job there.

        Raises ``LookupError`` for a job that is not in the store.
        """
        while True:
            ended = await self._runner.run_slice(job_id)
            if ended.end is SliceEnd.FINISHED:
                return ended.end
            job = await self._reads.overview(job_id)
            if job is None:
                raise LookupError(f"job {job_id} is not in the store")
            if job.status.final:
                return SliceEnd.FINISHED
            if job.status is JobStatus.WAITING and not (await self._answer(job) or self._is_over(ended)):
                return SliceEnd.WAITING
            if ended.end is not SliceEnd.WAITING:
                await asyncio.sleep(POLL_S)

    async def _answer(self, job: Overview) -> bool:
        """Whether a signal for the open wait is there: one that came, or one of ``answers`` that is sent now."""
        inbox = await self._store.pending_signals(job.id)
        if any(signal.name == job.waiting_for for signal in inbox.signals):
            return True
        payloads = self._answers.get(job.waiting_for or "")
        if not payloads:
            return False
        payload = payloads.pop(0)
        started = [e.event for e in await self._reads.events(job.id) if e.event.kind is EventKind.WAIT_STARTED]
        if isinstance(payload, Mapping) and started:
            payload = {"wait_id": started[-1].data["wait_id"], **payload}
        await self._store.signal(job.id, uuid7(), str(job.waiting_for), payload)
        return True

    def _is_over(self, ended: Slice) -> bool:
        """Whether the time of the wait that a slice ended in has passed already."""
        wait = None if ended.job is None else ended.job.open
        return isinstance(wait, Wait) and wait.until is not None and wait.until <= self._runner.now()
