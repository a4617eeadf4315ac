"""The slices of jobs that one worker process runs side by side, all in one loop, and how they come to an end."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Protocol

import structlog

from stepladder.runner.runner import SliceEnd
from stepladder.schemas.errors import UnreachableError

if TYPE_CHECKING:
    from uuid import UUID

    from stepladder.runner.runner import Slice

log = structlog.get_logger("stepladder.worker")

FAIR_S = 30.0
"""How long a job may keep its place while others may be waiting for one."""


class SliceRunner(Protocol):
    async def run_slice(self, job_id: UUID | None = None) -> Slice: ...


class Shift:
    """Runs slices, at most ``places`` at once: that is for the callers to see to.

    Once it is over, no slice is begun any more, and those that run end after the turn that they are at: their jobs are
    due at once, and the sweep of another worker rings them.
    """

    def __init__(self, places: int, *, fair_s: float = FAIR_S) -> None:
        self._places = places
        self._fair_s = fair_s
        self._ending = False
        self._slices: dict[asyncio.Task[None], UUID] = {}
        self._began: dict[UUID, float] = {}

    def is_over(self, job_id: UUID) -> bool:
        """Whether the slice of this job is to end between two turns: all are, or it had its share and others wait.

        A job that ends its slice so is due again, and comes to the end of the queue.
        """
        began = self._began.get(job_id)
        had_its_share = began is not None and time.monotonic() - began > self._fair_s
        return self._ending or (had_its_share and len(self._slices) >= self._places)

    async def run(self, runner: SliceRunner, job_id: UUID) -> None:
        """One slice. Whatever goes wrong is logged: the job is due again then, now or when its lease is over."""
        if self._ending:
            return
        task = asyncio.ensure_future(self._slice(runner, job_id))
        self._slices[task] = job_id
        first = job_id not in self._began  # a second message for a job finds nothing to do, and gives no second share
        if first:
            self._began[job_id] = time.monotonic()
        try:
            await asyncio.wait((task,))
        finally:
            del self._slices[task]
            if first:
                del self._began[job_id]

    async def end(self, within_s: float) -> None:
        """Lets every slice come to the end of its turn, and breaks off those that have not after ``within_s`` seconds.

        A turn that is broken off is asked again by whoever claims the job.
        """
        self._ending = True
        if self._slices:
            log.info("ending after the turns under way", jobs=len(self._slices), within_s=within_s)
            _, late = await asyncio.wait(list(self._slices), timeout=within_s)
            for task in late:
                log.warning("turn broken off", job=str(self._slices[task]))
                task.cancel()
            if late:
                await asyncio.wait(late)

    async def _slice(self, runner: SliceRunner, job_id: UUID) -> None:
        try:
            done = await runner.run_slice(job_id)
        except asyncio.CancelledError:  # nobody but this shift cancels or ends a slice
            log.info("job handed back", job=str(job_id))
        except UnreachableError as error:
            log.warning("slice broken off", job=str(job_id), reason=str(error))
        except Exception:
            log.exception("slice failed", job=str(job_id))
        else:
            if done.end is SliceEnd.IDLE:
                log.debug("nothing to do", job=str(job_id))
