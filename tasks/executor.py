"""The slices of jobs that one worker process runs side by side, all in one loop, and how they come to an end."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Protocol

import structlog

from stepladder.schemas.errors import UnreachableError

if TYPE_CHECKING:
    from uuid import UUID

    from stepladder.runner.claimer import Picked
    from stepladder.runner.runner import Slice

log = structlog.get_logger("stepladder.worker")

FAIR_S = 30.0
"""How long a job may keep its place while others may be waiting for one."""


class SliceRunner(Protocol):
    async def pick(self) -> Picked | None: ...
    async def put_back(self, picked: Picked) -> None: ...
    async def run_picked(self, picked: Picked) -> Slice: ...


class JobExecutor:
    """Runs slices, at most ``places`` at once: that is for the callers to see to.

    Once it is over, no slice is begun any more, and those that run end after the turn that they are at: their jobs are
    due at once, and the sweep of another worker announces them.
    """

    def __init__(self, places: int, *, fair_s: float = FAIR_S) -> None:
        self._places = places
        self._fair_s = fair_s
        self._ending = False
        self._places_taken: dict[asyncio.Task[None], UUID | None] = {}
        self._began: dict[UUID, float] = {}

    def is_over(self, job_id: UUID) -> bool:
        """Whether the slice of this job is to end between two turns: all are, or it had its share and others wait.

        A job that ends its slice so is due again, behind the others of its principal.
        """
        began = self._began.get(job_id)
        had_its_share = began is not None and time.monotonic() - began > self._fair_s
        return self._ending or (had_its_share and len(self._began) >= self._places)

    async def run(self, runner: SliceRunner) -> None:
        """Takes a place, and runs one slice after the other there, each of the job that comes next, until none is due.

        Whatever goes wrong is logged: the job is due again then, now or when its lease is over.
        """
        if self._ending:
            return
        task = asyncio.ensure_future(self._work(runner))
        self._places_taken[task] = None
        try:
            await asyncio.wait((task,))
        finally:
            del self._places_taken[task]

    async def end(self, within_s: float) -> None:
        """Lets every slice come to the end of its turn, and breaks off those that have not after ``within_s`` seconds.

        A turn that is broken off is asked again by whoever claims the job.
        """
        self._ending = True
        if self._places_taken:
            log.info("ending after the turns under way", jobs=len(self._began), within_s=within_s)
            _, late = await asyncio.wait(list(self._places_taken), timeout=within_s)
            for task in late:
                log.warning("turn broken off", job=str(self._places_taken[task]))
                task.cancel()
            if late:
                await asyncio.wait(late)

    async def _work(self, runner: SliceRunner) -> None:
        try:
            while not self._ending and (picked := await runner.pick()) is not None:
                if self._ending:
                    await runner.put_back(picked)
                else:
                    await self._slice(runner, picked)
        except asyncio.CancelledError:  # nobody but this executor cancels or ends a slice
            log.info("broken off before a job was taken")
        except UnreachableError as error:
            log.warning("no job taken", reason=str(error))
        except Exception:
            log.exception("no job taken")

    async def _slice(self, runner: SliceRunner, picked: Picked) -> None:
        job_id = picked.taken.job_id
        task = asyncio.current_task()
        if task is not None:
            self._places_taken[task] = job_id
        self._began[job_id] = time.monotonic()
        try:
            await runner.run_picked(picked)
        except asyncio.CancelledError:
            log.info("job handed back", job=str(job_id))
        except UnreachableError as error:
            log.warning("slice broken off", job=str(job_id), reason=str(error))
        except Exception:
            log.exception("slice failed", job=str(job_id))
        finally:
            del self._began[job_id]
