"""The jobs that one worker process runs side by side, all in one event loop, and how it drains them."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING

import structlog

from stepladder.schemas.errors import UnreachableError

if TYPE_CHECKING:
    from uuid import UUID

    from stepladder.models.records import Claim
    from stepladder.runner.claimer import Claimer
    from stepladder.runner.runner import Runner

log = structlog.get_logger("stepladder.worker")

FAIR_S = 30.0
"""How long a job may run on while all places are taken."""


class JobExecutor:
    """Runs jobs, at most ``concurrency`` at once: the callers of ``run`` see to that.

    Once it drains, no job is started, and running ones are released after their current turn: they are due at once, and
    another worker's sweep announces them.
    """

    def __init__(self, runner: Runner, claimer: Claimer, concurrency: int, *, fair_s: float = FAIR_S) -> None:
        self._runner = runner
        self._claimer = claimer
        self._concurrency = concurrency
        self._fair_s = fair_s
        self._draining = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._started: dict[UUID, float] = {}

    def should_stop(self, job_id: UUID) -> bool:
        """Whether to release a job between two turns: on drain, or if it had its fair time and others may wait.

        It is due again then, behind the others of its principal.
        """
        started = self._started.get(job_id)
        had_its_share = started is not None and time.monotonic() - started > self._fair_s
        return self._draining or (had_its_share and len(self._started) >= self._concurrency)

    async def run(self) -> None:
        """Runs the jobs that come next, one after the other, until none is due.

        Errors are logged: the job is then due again, at once or when its lease ends.
        """
        if not self._draining:
            task = asyncio.ensure_future(self._run_due_jobs())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            await asyncio.wait((task,))

    async def drain(self, within_s: float) -> None:
        """Lets every job finish its current turn, and interrupts those that have not after ``within_s`` seconds.

        The turn of an interrupted job is asked again by the next worker.
        """
        self._draining = True
        if not self._tasks:
            return
        log.info("draining: running jobs finish their current turn", jobs=len(self._started), within_s=within_s)
        _, late = await asyncio.wait(list(self._tasks), timeout=within_s)
        if late:
            log.warning("jobs interrupted in their turn", jobs=[str(job_id) for job_id in self._started])
            for task in late:
                task.cancel()
            await asyncio.wait(late)

    async def _run_due_jobs(self) -> None:
        try:
            while not self._draining and (claim := await self._claimer.next()) is not None:
                await self._run_job(claim)
        except asyncio.CancelledError:  # by ``drain``
            return
        except UnreachableError as error:
            log.warning("no job claimed", reason=str(error))
        except Exception:
            log.exception("no job claimed")

    async def _run_job(self, claim: Claim) -> None:
        job_id = claim.job.id
        self._started[job_id] = time.monotonic()
        try:
            await self._runner.run(claim, partial(self.should_stop, job_id))
        except UnreachableError as error:
            log.warning("job interrupted", job=str(job_id), reason=str(error))
        except Exception:
            log.exception("job failed to run", job=str(job_id))
        finally:
            del self._started[job_id]
