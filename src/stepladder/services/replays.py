"""Replays of one job: its answers judged again, or a new job that continues from one of its turns."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from stepladder.judge.revalidate import revalidate
from stepladder.lint.changes import VERSION, recompiled
from stepladder.models.ids import uuid7
from stepladder.models.records import KeyTaken, NewJob, Retired
from stepladder.queries.answers import memories
from stepladder.runner.machines import output_schemas
from stepladder.schemas.canonical import exact_hash
from stepladder.schemas.replay import Mode
from stepladder.schemas.responses import Misfit
from stepladder.services.submission import submission_key
from stepladder.workflows.job import Job
from stepladder.workflows.replay import Carried, Refused, carry, cut

if TYPE_CHECKING:
    from uuid import UUID

    from stepladder.judge.revalidate import Rejudged
    from stepladder.models.database import Database
    from stepladder.models.store import Store
    from stepladder.queries.answers import Memory
    from stepladder.runner.machines import Machines
    from stepladder.schemas.actor import Actor
    from stepladder.schemas.answer import Violation
    from stepladder.schemas.jsontypes import Json, JsonObject
    from stepladder.services.submission import Notify
    from stepladder.workflows.machine import Machine


MOST_DEFINITIONS = 64
"""Changed documents that stay compiled."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A requested replay.

    ``changes`` are values by dotted paths into the document, or ``version`` for another published one. ``input`` holds
    the new job's input if it differs from the old job's.
    """

    mode: Mode
    from_turn: int | None = None
    changes: JsonObject = field(default_factory=dict)
    input: tuple[Json, ...] = ()

    def as_given(self) -> JsonObject:
        """In the words of the HTTP API, by which a repeated request is recognized."""
        given: dict[str, Json] = {"mode": self.mode.value, "from_turn": self.from_turn}
        given |= {"set": self.changes or None, "input": self.input or None}
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Base:
    """What a changed document is based on: a version, or a variant of one."""

    workflow: str
    version: int
    variant: str | None = None


@dataclass(frozen=True, slots=True)
class Definition:
    """What a replay runs by: a machine, and the hash of the changed document unless it is a published version."""

    machine: Machine
    variant: str | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """A new job that can be written. ``misfits`` are carried outputs that break the schema of their state now."""

    new: NewJob
    definition: Definition
    from_turn: int
    misfits: tuple[tuple[int, Violation], ...]


@dataclass(frozen=True, slots=True)
class Started:
    """The new job; without ``prepared``, an earlier request under the same key wrote it."""

    job_id: UUID
    prepared: Prepared | None = None

    @property
    def misfits(self) -> tuple[Misfit, ...]:
        found = () if self.prepared is None else self.prepared.misfits
        return tuple(Misfit(turn=turn, pointer=one.pointer, reason=one.reason) for turn, one in found)


class Replays:
    """Replays over an opened ``database``. Any method raises ``UnreachableError`` when the connection breaks, and
    ``BadDocumentError`` where this process lacks a tool or a rule that a workflow names.

    ``notify`` announces the jobs that ``start`` writes.
    """

    def __init__(self, database: Database, store: Store, machines: Machines, notify: Notify = lambda _: None) -> None:
        self._notify = notify
        self._database = database
        self._store = store
        self._machines = machines
        self._definitions: dict[tuple[str, int, str | None, str], Definition] = {}

    async def revalidated(
        self, job_id: UUID, changes: JsonObject, machine: Machine | None = None
    ) -> tuple[Rejudged, ...] | Refused | None:
        """Every attempt of the job that was judged, with both verdicts; None if there is no such job.

        ``machine`` judges in place of the job's own with ``changes``.
        """
        for memory in await memories(self._database, [job_id], answers=True):
            definition = await self.definition(memory, changes) if machine is None else Definition(machine)
            if isinstance(definition, Refused):
                return definition
            if definition.machine.name != memory.workflow:
                reason = f"job {job_id} is of workflow {memory.workflow}, and the document of {definition.machine.name}"
                return Refused(reason, "name a document of the same workflow", "set")
            return await asyncio.to_thread(revalidate, definition.machine, memory.job, memory.answers)
        return None

    async def start(
        self, job_id: UUID, wanted: Wanted, actor: Actor, key: str | None = None
    ) -> Started | Refused | KeyTaken | None:
        """Writes the new job of a resume or a fork, in the name of ``actor``; None if there is no such job.

        The same ``key`` and request again give the same new job, for a day.
        """
        named = submission_key(actor, key, f"replays/{job_id}", wanted.as_given())
        known = None if named is None else await self._store.submitted(named)
        if known is not None:
            return known if isinstance(known, KeyTaken) else Started(known.job_ids[0])
        prepared = await self.prepared(job_id, wanted, actor, await self._database.now())
        if not isinstance(prepared, Prepared):
            return prepared
        await self.keep(prepared.definition, wanted.changes)
        written = await self._store.submit_many([prepared.new], named)
        if isinstance(written, Retired):
            raise LookupError(f"the replay of job {job_id} was not written")
        if isinstance(written, KeyTaken):
            return written
        if written.again:
            return Started(written.job_ids[0])
        self._notify(written.job_ids)
        return Started(written.job_ids[0], prepared)

    async def prepared(self, job_id: UUID, wanted: Wanted, actor: Actor, now: datetime) -> Prepared | Refused | None:
        """The new job of a resume or a fork, in the name of ``actor``; None if there is no such job."""
        for memory in await memories(self._database, [job_id]):
            return await self.of_memory(memory, wanted, actor, now)
        return None

    async def of_memory(self, memory: Memory, wanted: Wanted, actor: Actor, now: datetime) -> Prepared | Refused:
        """The same for a job that is already read."""
        if wanted.mode is Mode.RESUME and (wanted.changes or wanted.input):
            name = "set" if wanted.changes else "input"
            return Refused("a resume uses the same version, and changes nothing", "use mode fork", name)
        old = await self._machines.get(memory.workflow, memory.version, memory.variant)
        definition = await self.definition(memory, wanted.changes)
        if isinstance(definition, Refused):
            return definition
        at = cut(memory.job, old, wanted.mode, wanted.from_turn)
        if isinstance(at, Refused):
            return at
        carried = carry(memory.job, at, definition.machine)
        if isinstance(carried, Refused):
            return carried
        refused = _input_refused(definition.machine, memory.job, wanted, carried)
        if refused is not None:
            return refused
        value = wanted.input[0] if wanted.input else memory.job.input
        job = _job(memory.job, definition.machine, old, value, carried, actor, now)
        created: dict[str, Json] = {
            "replay_of": str(memory.job.id),
            "mode": wanted.mode.value,
            "from_turn": at.from_turn,
            "set": dict(wanted.changes),
        }
        new = NewJob(
            job,
            definition.machine.name,
            definition.machine.version,
            priority=memory.priority,
            metadata=memory.metadata,
            replay_of=memory.job.id,
            variant=definition.variant,
            created=created | ({"input": value} if wanted.input else {}),
        )
        return Prepared(new, definition, at.from_turn, carried.misfits)

    async def keep(self, definition: Definition, changes: JsonObject) -> None:
        """Stores the changed document, so that jobs can run by it."""
        if definition.variant is not None:
            machine = definition.machine
            base = (machine.name, machine.version)
            await self._store.keep_variant(definition.variant, base, machine.document.definition(), changes)
            await self._store.keep_schemas(output_schemas(machine))

    async def definition(self, memory: Memory | Base, changes: JsonObject) -> Definition | Refused:
        """The old job's machine, that of another version, or of a changed document, compiled once for many jobs."""
        at = (memory.workflow, memory.version, memory.variant, exact_hash(changes))
        if at not in self._definitions:
            while len(self._definitions) >= MOST_DEFINITIONS:
                del self._definitions[next(iter(self._definitions))]
            definition = await self._compile(memory, changes)
            if isinstance(definition, Refused):
                return definition  # the version may be published in a moment
            self._definitions[at] = definition
        return self._definitions[at]

    async def _compile(self, memory: Memory | Base, changes: JsonObject) -> Definition | Refused:
        others = {path: value for path, value in changes.items() if path != VERSION}
        version = changes.get(VERSION, memory.version)
        if isinstance(version, bool) or not isinstance(version, int) or not 0 < version < 2**31:
            return Refused(f"`version` cannot be {str(version)[:40]!r}", "give a number", "set")
        variant = memory.variant if VERSION not in changes else None
        row = await self._store.workflow(memory.workflow, version)
        if row is None:
            reason = f"workflow {memory.workflow} has no version {version}"
            return Refused(reason, "GET /v1/workflows lists the versions", "set")
        if not others:
            return Definition(await self._machines.get(row.name, row.version, variant), variant)
        base = row.document if variant is None else await self._store.variant(variant)
        compiled = await asyncio.to_thread(recompiled, base, others, self._machines.kit)
        if compiled.machine is None:
            count = len(compiled.errors)
            reason = f"the changed document has {count} error" + ("" if count == 1 else "s")
            return Refused(reason, "fix the values of set; nothing was stored", "set", compiled.errors)
        return Definition(compiled.machine, None if compiled.machine.hash == row.hash else compiled.machine.hash)


def _input_refused(machine: Machine, old: Job, wanted: Wanted, carried: Carried) -> Refused | None:
    if wanted.input and carried.state is not None:
        reason = "with another input nothing can be carried over: turns and tool results belong to the old input"
        return Refused(reason, "leave out from_turn, and start at the beginning", "input")
    violations = machine.input.violations(wanted.input[0] if wanted.input else old.input)
    if not violations:
        return None
    places = "; ".join(f"{one.pointer or '/'} {one.reason}" for one in violations[:5])
    reason = f"the input does not fit workflow {machine.name} {machine.version}: {places}"
    return Refused(reason, "fix the input; nothing was stored", "input" if wanted.input else "set")


def _job(
    old: Job, machine: Machine, before: Machine, value: Json, carried: Carried, actor: Actor, now: datetime
) -> Job:
    """Limits start anew. A token budget of the old job's own, not its workflow's, applies again."""
    own = old.token_budget != before.token_budget
    seconds = machine.deadline_s
    return Job(
        id=uuid7(),
        lineage=old.lineage,
        input=value,
        created_at=now,
        state=carried.state,
        visits=carried.visits,
        transcript=carried.transcript,
        token_budget=old.token_budget if own else machine.token_budget,
        deadline_at=None if seconds is None else now + timedelta(seconds=seconds),
        principal=actor.name,
        scopes=actor.scopes,
    )
