"""Publishing a workflow and submitting jobs: everything is checked before anything is written."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeAlias

from stepladder.models.ids import uuid7
from stepladder.models.records import KeyTaken, NewJob, Publication, Retired, SubmissionKey
from stepladder.runner.machines import output_schemas
from stepladder.schemas import responses
from stepladder.schemas.actor import LOCAL
from stepladder.schemas.canonical import content_hash
from stepladder.schemas.errors import BadInputError
from stepladder.workflows.job import Job

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from uuid import UUID

    from stepladder.models.records import Submitted, WorkflowRow
    from stepladder.models.store import Store
    from stepladder.queries.reads import Reads
    from stepladder.runner.machines import Machines
    from stepladder.schemas.actor import Actor
    from stepladder.schemas.answer import Violation
    from stepladder.schemas.jsontypes import Json, JsonObject
    from stepladder.schemas.submission import JobRequest
    from stepladder.workflows.machine import Machine

LONGEST_KEY = 255

Notify: TypeAlias = "Callable[[Sequence[UUID]], None]"
"""Notifies workers of due jobs in the background, after the commit; the sweep announces what it misses."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """What is wrong with the ``nth`` of the requested jobs, counted from 0: a JSON pointer into the request."""

    nth: int
    pointer: str
    reason: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Rejected:
    """Nothing was written. ``mistakes`` are all there are in any of the requested jobs."""

    mistakes: tuple[Mistake, ...]
    summary: str

    @property
    def remedy(self) -> str:
        return f"{self.mistakes[0].remedy or 'fix the input'}; nothing was stored"


@dataclass(frozen=True, slots=True)
class Accepted:
    """The jobs, in the order of the requests. ``again``: an earlier submission under the same key wrote them."""

    jobs: tuple[responses.Job, ...]
    again: bool = False


class Submissions:
    """The one way in for new jobs: over HTTP, on the command line, and from the client, which speaks HTTP.

    Any method raises ``UnreachableError`` when the database connection breaks, and ``BadDocumentError`` where this
    process lacks a tool or a rule that a workflow names.
    """

    def __init__(self, store: Store, reads: Reads, machines: Machines, notify: Notify) -> None:
        self._store = store
        self._reads = reads
        self._machines = machines
        self._notify = notify

    async def submit(
        self, wanted: Sequence[JobRequest], actor: Actor, key: str | None = None
    ) -> Accepted | Rejected | KeyTaken:
        """Writes all jobs or none, in the name of ``actor``, in one statement; the answer is built from what it wrote.

        For a day, the same ``key`` and requests return the same jobs, whatever their state or the workflow's.
        """
        named = submission_key(actor, key, "jobs", [one.as_given() for one in wanted])
        found = await self._checked(wanted, actor)
        if isinstance(found, Rejected):
            known = None if named is None else await self._store.submitted(named)
            return found if known is None else await self._known(known)
        written = await self._store.submit_many(found, named)
        if isinstance(written, Retired):  # just now; without a version, another one is current by now
            return await self.submit(wanted, actor, key)
        if isinstance(written, KeyTaken) or written.again:
            return await self._known(written)
        self._notify(written.job_ids)
        return Accepted(tuple(queued(new, paused=new.job.id in written.paused) for new in found))

    async def _known(self, found: Submitted | KeyTaken) -> Accepted | KeyTaken:
        return found if isinstance(found, KeyTaken) else Accepted(await self._reads.overviews(found.job_ids), True)

    async def _checked(self, wanted: Sequence[JobRequest], actor: Actor) -> list[NewJob] | Rejected:
        machines: dict[tuple[str, int | None], Machine | Mistake] = {}
        mistakes: list[Mistake] = []
        jobs: list[NewJob] = []
        now = await self._store.database.now()
        for nth, one in enumerate(wanted):
            named = (one.workflow, one.version)
            if named not in machines:
                machines[named] = await self._machine(*named)
            machine = machines[named]
            if isinstance(machine, Mistake):
                mistakes.append(Mistake(nth, machine.pointer, machine.reason, machine.remedy))
                continue
            new = new_job(
                machine,
                one.input,
                now,
                actor,
                priority=one.priority,
                deadline_s=one.deadline_s,
                token_budget=one.token_budget,
                metadata=one.metadata,
            )
            if isinstance(new, NewJob):
                jobs.append(new)
            else:
                mistakes += [Mistake(nth, "/input" + violation.pointer, violation.reason) for violation in new]
        return Rejected(tuple(mistakes), _summary(mistakes, wanted)) if mistakes else jobs

    async def _machine(self, name: str, version: int | None) -> Machine | Mistake:
        row = await self._store.workflow(name, version)
        if row is not None and not row.retired:
            return await self._machines.of_row(row)
        if row is not None:
            return Mistake(0, "/version", *retired(name, row.version, await self._store.workflow(name)))
        versions = [one.version for one in await self._reads.workflows() if one.name == name]
        if not versions:
            return Mistake(0, "/workflow", f"there is no workflow {name}", "publish it: stepladder publish DOC")
        if version is None:
            remedy = f"publish a new version, or: stepladder unretire {name} {versions[-1]}"
            return Mistake(0, "/workflow", f"every version of workflow {name} is retired", remedy)
        listed = ", ".join(map(str, versions[-20:]))
        return Mistake(0, "/version", f"workflow {name} has no version {version}; it has {listed}", "name one of those")


def _summary(mistakes: Sequence[Mistake], wanted: Sequence[JobRequest]) -> str:
    first, one = mistakes[0], wanted[0]
    if len(wanted) > 1:
        return f"{len({mistake.nth for mistake in mistakes})} of {len(wanted)} jobs cannot be submitted"
    if not first.pointer.startswith("/input"):
        return first.reason
    return f"the input does not fit workflow {one.workflow}" + ("" if one.version is None else f" {one.version}")


def submission_key(actor: Actor, key: str | None, what: str, body: Json) -> SubmissionKey | None:
    """An idempotency key with the fingerprint of what is asked for. Raises ``BadInputError`` for a bad key."""
    if key is None:
        return None
    check_key(key)
    return SubmissionKey(actor.name, key, content_hash([what, body]))


def check_key(key: str) -> None:
    """Raises ``BadInputError`` for an idempotency key that is empty or too long."""
    if not 0 < len(key) <= LONGEST_KEY:
        raise BadInputError(f"the idempotency key must have 1 to {LONGEST_KEY} characters", remedy="use another key")


def accepted(found: Accepted | Rejected | KeyTaken) -> Accepted:
    """For the command line. Raises ``BadInputError`` for everything else."""
    match found:
        case Accepted():
            return found
        case KeyTaken():
            message = "the idempotency key was used for another submission"
            raise BadInputError(message, remedy="repeat that submission, or use a new key; nothing was stored")
        case Rejected():
            places = [mistake for mistake in found.mistakes if mistake.reason != found.summary]
            lines = "".join(f"\n  {one.pointer.removeprefix('/input') or '/'}: {one.reason}" for one in places)
            raise BadInputError(found.summary + lines, remedy=found.remedy)


def new_job(
    machine: Machine,
    value: Json,
    now: datetime,
    actor: Actor = LOCAL,
    *,
    priority: int = 0,
    deadline_s: float | None = None,
    token_budget: int | None = None,
    metadata: JsonObject | None = None,
) -> NewJob | tuple[Violation, ...]:
    """A job that can be written, or every place where the input breaks the schema, by pointer into the input.

    ``deadline_s`` and ``token_budget`` override the workflow's. The job is ``actor``'s, and its tools may use what
    ``actor`` may.
    """
    violations = machine.input.violations(value)
    if violations:
        return violations
    job_id = uuid7()
    seconds = machine.deadline_s if deadline_s is None else deadline_s
    job = Job(
        id=job_id,
        lineage=job_id,
        input=value,
        created_at=now,
        token_budget=machine.token_budget if token_budget is None else token_budget,
        deadline_at=None if seconds is None else now + timedelta(seconds=seconds),
        principal=actor.name,
        scopes=actor.scopes,
    )
    return NewJob(job, machine.name, machine.version, priority, metadata or {})


def queued(new: NewJob, *, paused: bool) -> responses.Job:
    """A job that was written just now; ``paused`` with its workflow."""
    job = new.job
    return responses.Job(
        id=job.id,
        workflow=new.workflow,
        version=new.version,
        status=job.status,
        state=None,
        waiting_for=None,
        failure=None,
        failure_detail=None,
        input=job.input,
        result=None,
        degraded=None,
        turn_count=0,
        attempts=0,
        tokens=0,
        created_at=job.created_at,
        started_at=None,
        finished_at=None,
        replay_of=new.replay_of,
        parent=None,
        variant=new.variant,
        bulk=new.bulk,
        priority=new.priority,
        metadata=dict(new.metadata),
        principal=job.principal,
        token_budget=job.token_budget,
        deadline_at=job.deadline_at,
        event_count=1,
        cancel_requested=False,
        workflow_paused=paused,
        cost=None,
        currency=None,
        hold_at=None,
        hold_by=None,
        raw_gone_at=None,
        events_gone_at=None,
    )


async def publish(store: Store, machine: Machine) -> Publication:
    """Publishes a compiled workflow under its name and version; the same definition again changes nothing.

    Raises ``BadInputError`` where that version is published with another definition.
    """
    published = await store.publish(machine.name, machine.version, machine.hash, machine.document.definition())
    if published is Publication.DEFINITION_CHANGED:
        raise BadInputError(
            f"workflow {machine.name} {machine.version} is published with another definition",
            remedy=f"a published version never changes: write `version: {machine.version + 1}`",
        )
    await store.keep_schemas(output_schemas(machine))
    return published


async def submit(
    store: Store,
    machine: Machine,
    value: Json,
    now: datetime,
    *,
    priority: int = 0,
    metadata: JsonObject | None = None,
    principal: Actor = LOCAL,
) -> Job:
    """A job for this process to run: the machine is loaded, and no other worker is notified.

    Raises ``BadInputError`` for an input that does not fit, and for a retired version.
    """
    new = new_job(machine, value, now, principal, priority=priority, metadata=metadata)
    if not isinstance(new, NewJob):
        raise _misfit(machine, new)
    if isinstance(await store.submit_many([new]), Retired):
        message, remedy = retired(machine.name, machine.version, await store.workflow(machine.name))
        raise BadInputError(message, remedy=remedy)
    return new.job


def check_input(machine: Machine, value: Json) -> None:
    """Raises ``BadInputError`` with every place where the input breaks the workflow's schema."""
    violations = machine.input.violations(value)
    if violations:
        raise _misfit(machine, violations)


def retired(name: str, version: int, current: WorkflowRow | None) -> tuple[str, str]:
    """What is wrong with submitting to a retired version, and what to do; ``current`` is the workflow's current one."""
    message = f"version {version} of workflow {name} is retired"
    if current is None:
        return f"{message}, and so are all others", f"publish a new version, or: stepladder unretire {name} {version}"
    return f"{message}; the current one is {current.version}", f"name version {current.version}, or none"


def _misfit(machine: Machine, violations: Sequence[Violation]) -> BadInputError:
    lines = "\n".join(f"  {violation.pointer or '/'}: {violation.reason}" for violation in violations)
    message = f"the input does not fit workflow {machine.name} {machine.version}:\n{lines}"
    return BadInputError(message, remedy="fix the input; nothing was stored")
