"""Experiments as they are ordered: one job for each input and arm, or the same job many times."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from stepladder.models.experiments import Experiment, drop_experiment, keep_experiment
from stepladder.models.ids import uuid7
from stepladder.models.records import KeyTaken, NewJob, Retired
from stepladder.schemas.tool import Effect
from stepladder.services.orders import Order, prepare
from stepladder.services.submission import retired
from stepladder.workflows.machine import AskState, ChildState, ToolState
from stepladder.workflows.replay import Refused

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

    from stepladder.models.records import SubmissionKey
    from stepladder.models.store import Store
    from stepladder.schemas.actor import Actor
    from stepladder.schemas.experiment import ExperimentKind
    from stepladder.schemas.jsontypes import Json, JsonObject
    from stepladder.services.replays import Base, Course, Replays
    from stepladder.workflows.machine import Machine

PRIORITY = -10
"""Experiments come after whatever somebody waits for."""
MOST_JOBS = 1000
FIRST, SECOND = "a", "b"
EFFECTS = "effects"


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be run. ``arms`` are what each changes in the document, by name.

    For each of ``inputs`` each arm makes a job. Without ``effects`` a workflow whose tools change something, or that
    calls other jobs, is refused: every job would do it again.
    """

    kind: ExperimentKind
    base: Base
    arms: JsonObject
    inputs: Sequence[Json]
    name: str = ""
    effects: bool = False
    priority: int = PRIORITY
    vary_seeds: bool = False


@dataclass(frozen=True, slots=True)
class Ordered:
    """``again`` says that an earlier order under the same key wrote these jobs."""

    job_ids: tuple[UUID, ...]
    again: bool = False


@dataclass(frozen=True, slots=True)
class _Way:
    """By what one job runs."""

    course: Course
    changes: JsonObject = field(default_factory=dict)


async def order_experiment(
    store: Store, replays: Replays, plan: Plan, actor: Actor, now: datetime, key: SubmissionKey | None = None
) -> Ordered | KeyTaken | Refused:
    """Writes the experiment and all its jobs. ``Refused`` tells where: ``inputs``, an arm, ``effects`` or ``workflow``.

    Raises ``BadDocumentError`` where this process lacks a tool or a rule that the workflow names.
    """
    refused = await _refused(store, plan)
    if refused is not None:
        return refused
    experiment = Experiment(
        id=uuid7(),
        kind=plan.kind,
        name=plan.name,
        workflow=plan.base.workflow,
        version=plan.base.version,
        variant=plan.base.variant,
        arms=plan.arms,
        samples=len(plan.inputs),
        principal=actor.name,
        created_at=now,
    )
    jobs: list[NewJob] = []
    ways: dict[str | None, _Way] = {}
    for arm, changes in plan.arms.items():
        ask = dict(changes) if isinstance(changes, dict) else {}
        for sample, value in enumerate(plan.inputs, 1):
            way = await _way(replays, plan, ask, sample)
            if isinstance(way, Refused):
                return way if way.field == EFFECTS else replace(way, field=arm)
            ways[way.course.variant] = way
            new = _job(plan, experiment, arm, sample, value, way, actor, now)
            if isinstance(new, Refused):
                return new
            jobs.append(new)
    for way in ways.values():
        await replays.keep(way.course, way.changes)
    await keep_experiment(store.database, experiment)
    written = await store.submit_many(jobs, key)
    if isinstance(written, KeyTaken | Retired) or written.again:
        await drop_experiment(store.database, experiment.id)
    if isinstance(written, Retired):
        return await _gone(store, written)
    return written if isinstance(written, KeyTaken) else Ordered(written.job_ids, written.again)


async def _refused(store: Store, plan: Plan) -> Refused | None:
    count = len(plan.inputs) * len(plan.arms)
    if not 0 < count <= MOST_JOBS:
        reason = f"{len(plan.inputs)} inputs by {len(plan.arms)} arms are {count} jobs, and not 1 to {MOST_JOBS}"
        return Refused(reason, "take fewer inputs; a few hundred tell differences of some percent apart", "inputs")
    row = await store.workflow(plan.base.workflow, plan.base.version)
    if row is None:
        reason = f"workflow {plan.base.workflow} has no version {plan.base.version}"
        return Refused(reason, "publish it first", "workflow")
    return await _gone(store, Retired(row.name, row.version)) if row.retired else None


async def _gone(store: Store, found: Retired) -> Refused:
    message, remedy = retired(found.workflow, found.version, await store.workflow(found.workflow))
    return Refused(message, remedy, "workflow")


async def _way(replays: Replays, plan: Plan, changes: JsonObject, sample: int) -> _Way | Refused:
    course = await replays.course(plan.base, changes)
    if isinstance(course, Refused):
        return course
    acting = [] if plan.effects else effects_of(course.machine)
    if acting:
        reason = f"{', '.join(acting)} would act again in every job of workflow {course.machine.name}"
        return Refused(reason, "allow effects if that is meant", EFFECTS)
    if not plan.vary_seeds:
        return _Way(course, changes)
    seeded = dict(changes) | seeds(course.machine, sample)
    course = await replays.course(plan.base, seeded)
    return course if isinstance(course, Refused) else _Way(course, seeded)


def seeds(machine: Machine, seed: int) -> dict[str, Json]:
    """The changes by which every turn is asked with this seed."""
    asking = [name for name, state in machine.states.items() if isinstance(state, AskState)]
    return {f"states.{name}.sampling.seed": seed for name in asking}


def effects_of(machine: Machine) -> list[str]:
    """What of a machine acts upon the world: tools that are not read-only, and calls of other workflows."""
    found: list[str] = []
    for state in machine.states.values():
        if isinstance(state, ToolState):
            found += [f"tool {name}" for name, tool in state.tools.items() if tool.effect is not Effect.READ]
        elif isinstance(state, ChildState):
            found.append(f"workflow {state.workflow}")
    return sorted(set(found))


def _job(
    plan: Plan, experiment: Experiment, arm: str, sample: int, value: Json, way: _Way, actor: Actor, now: datetime
) -> NewJob | Refused:
    machine = way.course.machine
    new = prepare(machine, Order(machine.name, value, machine.version, plan.priority), now, actor)
    if not isinstance(new, NewJob):
        places = "; ".join(f"{one.pointer or '/'} {one.reason}" for one in new[:5])
        reason = f"input {sample} does not fit workflow {machine.name} {machine.version}: {places}"
        return Refused(reason, "mend it; nothing was stored", "inputs")
    created: dict[str, Json] = {"experiment": str(experiment.id), "arm": arm, "sample": sample, "set": way.changes}
    return replace(new, variant=way.course.variant, experiment=experiment.id, arm=arm, sample=sample, created=created)
