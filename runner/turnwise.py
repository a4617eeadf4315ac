"""A runner whose slices can be asked to end between two turns, with nothing lost."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepladder.runner.runner import Runner
from stepladder.workflows.step import Ask, Judged, RunTool

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from stepladder.models.records import Claim
    from stepladder.workflows.job import Job
    from stepladder.workflows.machine import Machine
    from stepladder.workflows.step import Trigger


@dataclass(frozen=True, slots=True)
class TurnwiseRunner(Runner):
    """Asks ``is_over`` of a job whenever an answer of the engine has been stored.

    If so, the job is handed back before the answer is judged, and is due at once: whoever claims it next judges the
    answer and goes on. That is the one moment at which no request and no tool is under way and none is opened.
    ``run_slice`` then ends with ``CancelledError``, as when it is cancelled from outside.
    """

    is_over: Callable[[UUID], bool] = lambda _: False

    async def _do(self, claim: Claim, machine: Machine, job: Job, action: Ask | RunTool) -> Trigger | None:
        came = await Runner._do(self, claim, machine, job, action)  # noqa: SLF001 -- super() and slots do not mix
        if isinstance(came, Judged) and self.is_over(job.id):
            raise asyncio.CancelledError
        return came
