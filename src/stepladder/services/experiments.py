"""Experiments: one job for each input and variant, the same job many times, or a variant shadowing live jobs.

A shadow runs a variant on the inputs of a share of live jobs, and only records its results. Its variant may have only
read-only tools, no calls and no waits: this is checked when it is started, and by each worker before it writes a job.
A shadow job starts after its live job has ended, with the lowest priority.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import psycopg

from stepladder.models import experiments
from stepladder.models.ids import uuid7
from stepladder.models.records import KeyTaken, NewJob, Retired, Submitted
from stepladder.schemas.actor import Actor
from stepladder.schemas.experiment import ExperimentHead, ExperimentKind
from stepladder.schemas.finding import BadDocumentError
from stepladder.schemas.tool import Effect
from stepladder.services.replays import Base
from stepladder.services.submission import new_job, retired
from stepladder.workflows.machine import AskState, ChildState, ToolState, WaitState
from stepladder.workflows.replay import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from stepladder.models.experiments import LiveJob
    from stepladder.models.records import SubmissionKey
    from stepladder.models.store import Store
    from stepladder.schemas.jsontypes import Json, JsonObject
    from stepladder.services.replays import Definition, Replays
    from stepladder.workflows.machine import Machine

PRIORITY = -10
"""Lower than that of new jobs."""
SHADOW_PRIORITY = -1000
"""The lowest possible."""
MAX_JOBS = 1000
FIRST, SECOND = "a", "b"
EFFECTS = "effects"
BATCH = 50
SETTLED_S = 2.0
_PARTS = 1 << 32


@dataclass(frozen=True, slots=True)
class Ordered:
    """``again``: an earlier order with the same key wrote these jobs."""

    job_ids: tuple[UUID, ...]
    again: bool = False


@dataclass(frozen=True, slots=True)
class _Variant:
    definition: Definition
    changes: JsonObject


def draft(
    kind: ExperimentKind, base: Base, changes: Mapping[str, JsonObject], actor: Actor, now: datetime, **more: Any
) -> ExperimentHead:
    """An experiment to order or start; ``changes`` are those of each variant, by its name."""
    given: dict[str, Any] = {"name": "", "samples": 0, "share": None, "stopped_at": None} | more
    return ExperimentHead(
        id=uuid7(),
        kind=kind,
        workflow=base.workflow,
        version=base.version,
        variant=base.variant,
        principal=actor.name,
        changes={name: dict(one) for name, one in changes.items()},
        created_at=now,
        **given,
    )


async def order_experiment(
    store: Store,
    replays: Replays,
    head: ExperimentHead,
    inputs: Sequence[Json],
    actor: Actor,
    key: SubmissionKey | None = None,
    *,
    effects: bool = False,
    vary_seeds: bool = False,
) -> Ordered | KeyTaken | Refused:
    """Writes the experiment and a job for each input and variant. The field of ``Refused`` is ``inputs``, a variant,
    ``effects`` or ``workflow``.

    Without ``effects``, a workflow that has tools with effects or calls other workflows is refused. Raises
    ``BadDocumentError`` where this process lacks a tool or a rule that the workflow names.
    """
    refused = await _refused(store, head, inputs)
    if refused is not None:
        return refused
    jobs: list[NewJob] = []
    variants: dict[str | None, _Variant] = {}
    for name, changes in head.changes.items():
        for sample, value in enumerate(inputs, 1):
            variant = await _variant(replays, head, changes, effects=effects, seed=sample if vary_seeds else None)
            if isinstance(variant, Refused):
                return variant if variant.field == EFFECTS else replace(variant, field=name)
            variants[variant.definition.variant] = variant
            new = _job(head, variant, value, PRIORITY, head.created_at, actor)
            if isinstance(new, Refused):
                return replace(new, reason=f"input {sample} {new.reason}")
            said: JsonObject = {**new.created, "arm": name, "sample": sample}
            jobs.append(replace(new, arm=name, sample=sample, created=said))
    for variant in variants.values():
        await replays.keep(variant.definition, variant.changes)
    await experiments.keep_experiment(store.database, head)
    written = await store.submit_many(jobs, key)
    if isinstance(written, KeyTaken | Retired) or written.again:
        await experiments.drop_experiment(store.database, head.id)
    if isinstance(written, Retired):
        return await _retired(store, written)
    return written if isinstance(written, KeyTaken) else Ordered(written.job_ids, written.again)


async def start_shadow(store: Store, replays: Replays, head: ExperimentHead) -> bool | Refused:
    """From now on, workers run the second variant on the inputs of a share of the version's finished jobs.

    False if the version already has a shadow. Raises ``BadDocumentError`` as ``order_experiment`` does.
    """
    changes = head.changes[SECOND]
    definition = await replays.definition(_base(head), changes)
    if isinstance(definition, Refused):
        return definition
    if acting := forbidden(definition.machine):
        reason = f"a shadow only reads: {', '.join(acting)} in workflow {head.workflow} cannot shadow live jobs"
        return Refused(reason, "compare it on chosen inputs: POST /v1/experiments with effects", "set")
    await replays.keep(definition, changes)
    return await experiments.keep_experiment(store.database, head)


async def hand_out_shadows(store: Store, replays: Replays, settled_s: float = SETTLED_S) -> list[UUID]:
    """Writes the shadow jobs of live jobs that ended, one each, and returns them to be notified.

    Any worker may call it; a shadow is held by one at a time. Raises ``UnreachableError``.
    """
    due: list[UUID] = []
    for head in await experiments.open_shadows(store.database):
        changes = head.changes[SECOND]
        try:
            definition = await replays.definition(_base(head), changes)
        except BadDocumentError:
            continue  # this worker lacks its tools; another one has them
        if not isinstance(definition, Refused) and not forbidden(definition.machine):
            due += await _hand_out(store, head, _Variant(definition, changes), settled_s)
    return due


async def _hand_out(store: Store, head: ExperimentHead, variant: _Variant, settled_s: float) -> list[UUID]:
    async with store.database.connection() as connection, connection.transaction():
        if not await experiments.hold_shadow(connection, head.id):
            return []
        live = await experiments.live_jobs(connection, head.id, BATCH, settled_s)
        chosen = [job for job in live if is_chosen(head.id, job.id, head.share or 0.0)]
        due = [job_id for job in chosen if (job_id := await _write_shadow(store, head, variant, job)) is not None]
        if live:
            await experiments.note_look(connection, head.id, live[-1], len(due))
        return due


async def _write_shadow(store: Store, head: ExperimentHead, variant: _Variant, live: LiveJob) -> UUID | None:
    """None if the input does not match the variant's schema, or a lost worker already wrote the job."""
    new = _job(head, variant, live.input, SHADOW_PRIORITY, live.finished_at, Actor(head.principal, head.scopes))
    if isinstance(new, Refused):
        return None
    said: JsonObject = {**new.created, "shadow_of": str(live.id)}
    try:
        written = await store.submit_many([replace(new, arm=SECOND, replay_of=live.id, created=said)])
        return new.job.id if isinstance(written, Submitted) else None
    except psycopg.errors.UniqueViolation:
        return None


def is_chosen(experiment_id: UUID, job_id: UUID, share: float) -> bool:
    """Whether a live job belongs to the share: the same in every process, and independent of other shadows."""
    return (experiment_id.int ^ job_id.int) % _PARTS < share * _PARTS


def effects_of(machine: Machine) -> list[str]:
    """Its tools that are not read-only, and the workflows that it calls."""
    found: list[str] = []
    for state in machine.states.values():
        if isinstance(state, ToolState):
            found += [f"tool {name}" for name, tool in state.tools.items() if tool.effect is not Effect.READ]
        elif isinstance(state, ChildState):
            found.append(f"workflow {state.workflow}")
    return sorted(set(found))


def forbidden(machine: Machine) -> list[str]:
    """What a shadow may not contain: effects, calls and waits."""
    waits = [f"the wait {name}" for name, state in machine.states.items() if isinstance(state, WaitState)]
    return [*effects_of(machine), *waits]


async def _refused(store: Store, head: ExperimentHead, inputs: Sequence[Json]) -> Refused | None:
    count = len(inputs) * len(head.changes)
    if not 0 < count <= MAX_JOBS:
        reason = f"{len(inputs)} inputs by {len(head.changes)} variants are {count} jobs, and not 1 to {MAX_JOBS}"
        return Refused(reason, "use fewer inputs; a few hundred show differences of some percent", "inputs")
    row = await store.workflow(head.workflow, head.version)
    if row is None:
        return Refused(f"workflow {head.workflow} has no version {head.version}", "publish it first", "workflow")
    return await _retired(store, Retired(row.name, row.version)) if row.retired else None


async def _retired(store: Store, found: Retired) -> Refused:
    message, remedy = retired(found.workflow, found.version, await store.workflow(found.workflow))
    return Refused(message, remedy, "workflow")


async def _variant(
    replays: Replays, head: ExperimentHead, changes: JsonObject, *, effects: bool, seed: int | None
) -> _Variant | Refused:
    definition = await replays.definition(_base(head), changes)
    if isinstance(definition, Refused):
        return definition
    acting = [] if effects else effects_of(definition.machine)
    if acting:
        reason = f"every job of workflow {definition.machine.name} would run {', '.join(acting)} again"
        return Refused(reason, "allow effects if that is intended", EFFECTS)
    if seed is None:
        return _Variant(definition, changes)
    asking = [name for name, state in definition.machine.states.items() if isinstance(state, AskState)]
    seeded = {**changes, **{f"states.{name}.sampling.seed": seed for name in asking}}
    definition = await replays.definition(_base(head), seeded)
    return definition if isinstance(definition, Refused) else _Variant(definition, seeded)


def _job(
    head: ExperimentHead, variant: _Variant, value: Json, priority: int, now: datetime, actor: Actor
) -> NewJob | Refused:
    machine = variant.definition.machine
    new = new_job(machine, value, now, actor, priority=priority)
    if not isinstance(new, NewJob):
        places = "; ".join(f"{one.pointer or '/'} {one.reason}" for one in new[:5])
        reason = f"does not fit workflow {machine.name} {machine.version}: {places}"
        return Refused(reason, "fix it; nothing was stored", "inputs")
    created: JsonObject = {"experiment": str(head.id), "set": variant.changes}
    return replace(new, variant=variant.definition.variant, experiment=head.id, created=created)


def _base(head: ExperimentHead) -> Base:
    return Base(head.workflow, head.version, head.variant)
