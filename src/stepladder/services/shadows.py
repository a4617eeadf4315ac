"""Shadows: a share of live jobs is run again under a variant, whose results are only recorded.

A shadow never acts upon the world. What it runs has read-only tools, calls no other workflow and waits for nobody: a
variant that does is refused, when it is started and again by the worker that would run it. It begins when its live job
has ended, and comes after all others.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import psycopg

from stepladder.models import shadows
from stepladder.models.experiments import Experiment, find_experiment, keep_experiment
from stepladder.models.ids import uuid7
from stepladder.models.records import NewJob, Submitted
from stepladder.schemas.actor import Actor
from stepladder.schemas.experiment import ExperimentKind
from stepladder.schemas.finding import BadDocumentError
from stepladder.services.experiments import SECOND, effects_of
from stepladder.services.orders import Order, prepare
from stepladder.services.replays import Base
from stepladder.workflows.machine import WaitState
from stepladder.workflows.replay import Refused

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from stepladder.models.shadows import LiveJob
    from stepladder.models.store import Store
    from stepladder.schemas.jsontypes import Json, JsonObject
    from stepladder.services.replays import Course, Replays
    from stepladder.workflows.machine import Machine

PRIORITY = -1000
"""The lowest that there is."""
AT_ONCE = 50
SETTLED_S = 2.0
_PARTS = 1 << 32


async def start_shadow(
    store: Store, replays: Replays, base: Base, changes: JsonObject, share: float, actor: Actor, now: datetime
) -> Experiment | Refused | None:
    """Writes it; from now on workers run the variant beside a ``share`` (0 to 1) of the jobs of the version that end.

    None where another one runs beside them. Raises ``BadDocumentError`` as ``Replays`` does.
    """
    course = await replays.course(base, changes)
    if isinstance(course, Refused):
        return course
    acting = forbidden(course.machine)
    if acting:
        reason = f"a shadow only reads: {', '.join(acting)} in workflow {base.workflow} cannot be run beside live jobs"
        return Refused(reason, "compare it on chosen inputs: POST /v1/experiments with effects", "set")
    await replays.keep(course, changes)
    experiment = Experiment(
        id=uuid7(),
        kind=ExperimentKind.SHADOW,
        name="",
        workflow=base.workflow,
        version=base.version,
        variant=None,
        arms={SECOND: changes},
        samples=0,
        principal=actor.name,
        created_at=now,
        scopes=actor.scopes,
        share=share,
    )
    return experiment if await keep_experiment(store.database, experiment) else None


def forbidden(machine: Machine) -> list[str]:
    """What no shadow may do: act, call other workflows, or wait."""
    waits = [f"the wait {name}" for name, state in machine.states.items() if isinstance(state, WaitState)]
    return [*effects_of(machine), *waits]


def is_chosen(experiment_id: UUID, job_id: UUID, share: float) -> bool:
    """Whether a live job is of the share: the same for whoever asks, and independent of other shadows."""
    return (experiment_id.int ^ job_id.int) % _PARTS < share * _PARTS


async def hand_out_shadows(store: Store, replays: Replays, settled_s: float = SETTLED_S) -> list[UUID]:
    """Writes the shadows of live jobs that ended, for the caller to notify. Any worker may do so; of two at once, one
    does. Each live job has one shadow of an experiment. Raises ``UnreachableError``.
    """
    due: list[UUID] = []
    for experiment_id in await shadows.open_shadows(store.database):
        experiment = await find_experiment(store.database, experiment_id)
        if experiment is not None:
            due += await _hand_out(store, replays, experiment, settled_s)
    return due


async def _hand_out(store: Store, replays: Replays, experiment: Experiment, settled_s: float) -> list[UUID]:
    changes = experiment.arms[SECOND]
    asked: JsonObject = changes if isinstance(changes, dict) else {}
    try:
        course = await replays.course(Base(experiment.workflow, experiment.version), asked)
    except BadDocumentError:
        return []  # this worker lacks its tools; another one has them
    if isinstance(course, Refused) or forbidden(course.machine):
        return []
    async with store.database.connection() as connection, connection.transaction():
        if not await shadows.hold_shadow(connection, experiment.id):
            return []
        live = await shadows.live_jobs(connection, experiment.id, AT_ONCE, settled_s)
        if not live:
            return []
        due: list[UUID] = []
        for job in live:
            if not is_chosen(experiment.id, job.id, experiment.share or 0.0):
                continue
            new = _job(experiment, course, job, asked)
            if new is not None and await _written(store, new):
                due.append(new.job.id)
        await shadows.note_look(connection, experiment.id, live[-1], len(due))
        return due


async def _written(store: Store, new: NewJob) -> bool:
    try:
        return isinstance(await store.submit_many([new]), Submitted)
    except psycopg.errors.UniqueViolation:  # a worker was lost after it had written this one
        return False


def _job(experiment: Experiment, course: Course, live: LiveJob, changes: JsonObject) -> NewJob | None:
    """None where the live job's input does not fit the variant."""
    machine = course.machine
    actor = Actor(experiment.principal, experiment.scopes)
    new = prepare(machine, Order(machine.name, live.input, machine.version, PRIORITY), live.finished_at, actor)
    if not isinstance(new, NewJob):
        return None
    created: dict[str, Json] = {"experiment": str(experiment.id), "shadow_of": str(live.id), "set": changes}
    return replace(
        new,
        variant=course.variant,
        replay_of=live.id,
        experiment=experiment.id,
        arm=SECOND,
        created=created,
    )
