"""Replays of one job: its answers judged again, or a new job that goes on from a turn of it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from stepladder.judge.revalidate import revalidate
from stepladder.lint.changes import VERSION, recompiled
from stepladder.models.answers import memories
from stepladder.models.ids import uuid7
from stepladder.models.records import NewJob
from stepladder.runner.machines import output_schemas
from stepladder.schemas.canonical import exact_hash
from stepladder.schemas.replay import Mode
from stepladder.workflows.job import Job
from stepladder.workflows.replay import Carried, Refused, carry, cut

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from stepladder.judge.revalidate import Rejudged
    from stepladder.models.answers import Memory
    from stepladder.models.database import Database
    from stepladder.models.store import Store
    from stepladder.runner.machines import Machines
    from stepladder.schemas.actor import Actor
    from stepladder.schemas.answer import Violation
    from stepladder.schemas.jsontypes import Json, JsonObject
    from stepladder.workflows.machine import Machine


MOST_COURSES = 64
"""Changed documents that are kept compiled."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A replay as it is asked for.

    ``changes`` are values by dotted paths into the document, or ``version`` for another published one. ``input`` is the
    new job's, in a list of one, where it is to be another than the old job's.
    """

    mode: Mode
    from_turn: int | None = None
    changes: JsonObject = field(default_factory=dict)
    input: tuple[Json, ...] = ()


@dataclass(frozen=True, slots=True)
class Base:
    """What a changed document is made from: a version, or a document that was made from it."""

    workflow: str
    version: int
    variant: str | None = None


@dataclass(frozen=True, slots=True)
class Course:
    """By what a replay runs: a machine, and the changed document's hash where no version has it."""

    machine: Machine
    variant: str | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """A new job that can be written. ``misfits`` are outputs taken over that break the schema of their state now."""

    new: NewJob
    course: Course
    from_turn: int
    misfits: tuple[tuple[int, Violation], ...]


class Replays:
    """Replays over an opened ``database``. Any method raises ``UnreachableError`` when the connection breaks, and
    ``BadDocumentError`` where this process lacks a tool or a rule that a workflow names.
    """

    def __init__(self, database: Database, store: Store, machines: Machines) -> None:
        self._database = database
        self._store = store
        self._machines = machines
        self._courses: dict[tuple[str, int, str | None, str], Course] = {}

    async def revalidated(
        self, job_id: UUID, changes: JsonObject, machine: Machine | None = None
    ) -> tuple[Rejudged, ...] | Refused | None:
        """Every attempt of the job that was judged, with both verdicts; None if there is no such job.

        ``machine`` judges in place of the job's own with ``changes``.
        """
        for memory in await memories(self._database, [job_id], answers=True):
            course = await self.course(memory, changes) if machine is None else Course(machine)
            if isinstance(course, Refused):
                return course
            if course.machine.name != memory.workflow:
                reason = f"job {job_id} is of workflow {memory.workflow}, and the document of {course.machine.name}"
                return Refused(reason, "name a document of the same workflow", "set")
            return await asyncio.to_thread(revalidate, course.machine, memory.job, memory.answers)
        return None

    async def prepared(self, job_id: UUID, wanted: Wanted, actor: Actor, now: datetime) -> Prepared | Refused | None:
        """The new job of a resume or a fork, in the name of ``actor``; None if there is no such job."""
        for memory in await memories(self._database, [job_id]):
            return await self.of_memory(memory, wanted, actor, now)
        return None

    async def of_memory(self, memory: Memory, wanted: Wanted, actor: Actor, now: datetime) -> Prepared | Refused:
        """The same of a job that was read before."""
        if wanted.mode is Mode.RESUME and (wanted.changes or wanted.input):
            name = "set" if wanted.changes else "input"
            return Refused("a resume goes on by the same version, and changes nothing", "use mode fork", name)
        old = await self._machines.get(memory.workflow, memory.version, memory.variant)
        course = await self.course(memory, wanted.changes)
        if isinstance(course, Refused):
            return course
        at = cut(memory.job, old, wanted.mode, wanted.from_turn)
        if isinstance(at, Refused):
            return at
        carried = carry(memory.job, at, course.machine)
        if isinstance(carried, Refused):
            return carried
        refused = _input_refused(course.machine, memory.job, wanted, carried)
        if refused is not None:
            return refused
        value = wanted.input[0] if wanted.input else memory.job.input
        job = _job(memory.job, course.machine, old, value, carried, actor, now)
        created: dict[str, Json] = {
            "replay_of": str(memory.job.id),
            "mode": wanted.mode.value,
            "from_turn": at.from_turn,
            "set": dict(wanted.changes),
        }
        new = NewJob(
            job,
            course.machine.name,
            course.machine.version,
            priority=memory.priority,
            metadata=memory.metadata,
            replay_of=memory.job.id,
            variant=course.variant,
            created=created | ({"input": value} if wanted.input else {}),
        )
        return Prepared(new, course, at.from_turn, carried.misfits)

    async def keep(self, course: Course, changes: JsonObject) -> None:
        """Keeps the changed document, so that a job can be written that runs by it."""
        if course.variant is not None:
            machine = course.machine
            base = (machine.name, machine.version)
            await self._store.keep_variant(course.variant, base, machine.document.definition(), changes)
            await self._store.keep_schemas(output_schemas(machine))

    async def course(self, memory: Memory | Base, changes: JsonObject) -> Course | Refused:
        """The old job's own machine, that of another version, or that of a changed document, compiled once for many."""
        at = (memory.workflow, memory.version, memory.variant, exact_hash(changes))
        if at not in self._courses:
            while len(self._courses) >= MOST_COURSES:
                del self._courses[next(iter(self._courses))]
            course = await self._course(memory, changes)
            if isinstance(course, Refused):
                return course  # the version may be published in a moment
            self._courses[at] = course
        return self._courses[at]

    async def _course(self, memory: Memory | Base, changes: JsonObject) -> Course | Refused:
        others = {path: value for path, value in changes.items() if path != VERSION}
        version = changes.get(VERSION, memory.version)
        if isinstance(version, bool) or not isinstance(version, int) or not 0 < version < 2**31:
            return Refused(f"`version` is {str(version)[:40]!r}, and no version of a workflow", "give a number", "set")
        variant = memory.variant if VERSION not in changes else None
        row = await self._store.workflow(memory.workflow, version)
        if row is None:
            reason = f"workflow {memory.workflow} has no version {version}"
            return Refused(reason, "GET /v1/workflows lists the versions", "set")
        if not others:
            return Course(await self._machines.get(row.name, row.version, variant), variant)
        base = row.document if variant is None else await self._store.variant(variant)
        compiled = await asyncio.to_thread(recompiled, base, others, self._machines.kit)
        if compiled.machine is None:
            count = len(compiled.errors)
            reason = f"the changed document has {count} error" + ("" if count == 1 else "s")
            return Refused(reason, "mend what is set; nothing was stored", "set", compiled.errors)
        return Course(compiled.machine, None if compiled.machine.hash == row.hash else compiled.machine.hash)


def _input_refused(machine: Machine, old: Job, wanted: Wanted, carried: Carried) -> Refused | None:
    if wanted.input and carried.state is not None:
        reason = "with another input nothing can be taken over: what was said and done belongs to the old one"
        return Refused(reason, "leave out from_turn, and begin at the beginning", "input")
    violations = machine.input.violations(wanted.input[0] if wanted.input else old.input)
    if not violations:
        return None
    places = "; ".join(f"{one.pointer or '/'} {one.reason}" for one in violations[:5])
    reason = f"the input does not fit workflow {machine.name} {machine.version}: {places}"
    return Refused(reason, "mend the input; nothing was stored", "input" if wanted.input else "set")


def _job(
    old: Job, machine: Machine, before: Machine, value: Json, carried: Carried, actor: Actor, now: datetime
) -> Job:
    """Limits start anew. A token budget that was the old job's own, and not its workflow's, holds again."""
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
