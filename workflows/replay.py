"""A job that begins where another one stopped, or at any of its turns: what it carries over, and where it continues.

Earlier turns, results and signals are carried over as they are, and none is run or asked again. Limits start
anew: what was carried over counts for none of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stepladder.schemas.job import Failure, JobStatus
from stepladder.schemas.replay import Mode
from stepladder.schemas.tool import Effect
from stepladder.workflows.job import Message, Turn
from stepladder.workflows.machine import OK, AskState, ToolState
from stepladder.workflows.names import names_of
from stepladder.workflows.templates import RenderFailure
from stepladder.workflows.visits import ListRun, ToolCall

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepladder.schemas.answer import Violation
    from stepladder.schemas.finding import Finding
    from stepladder.workflows.job import Job
    from stepladder.workflows.machine import Machine
    from stepladder.workflows.visits import Visit


@dataclass(frozen=True, slots=True)
class Refused:
    """Why there is no such replay, and what to do next.

    ``field`` is what is wrong in what was asked for: ``from_turn``, ``set`` or ``input``; without one it is the job
    that does not allow it. ``findings`` are what a changed document has wrong.
    """

    reason: str
    remedy: str
    field: str | None = None
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a job is cut: its first ``kept`` visits are carried over, and ``state`` is entered next.

    ``state`` None is the very beginning, with nothing carried over. ``from_turn`` is the first turn that is asked anew.
    """

    kept: int
    state: str | None
    from_turn: int = 1


@dataclass(frozen=True, slots=True)
class Carried:
    """What a new job begins with. ``misfits`` are carried outputs that break the schema of their state now."""

    state: str | None
    visits: tuple[Visit, ...] = ()
    transcript: tuple[Message, ...] = ()
    misfits: tuple[tuple[int, Violation], ...] = ()


def cut(job: Job, machine: Machine, mode: Mode, from_turn: int | None) -> Cut | Refused:
    """Where ``job``, which ran by ``machine``, is cut for a resume or a fork.

    Without ``from_turn`` a resume continues where the job failed, and a fork begins at the beginning.
    """
    if mode is Mode.RESUME:
        refused = _not_resumable(job)
        if refused is not None:
            return refused
    if from_turn is not None:
        return _at(job, from_turn)
    return Cut(0, None) if mode is Mode.FORK else _where_it_failed(job, machine)


def _not_resumable(job: Job) -> Refused | None:
    fork = "fork it from a turn of your choice: mode fork"
    if not job.status.final:
        return Refused(f"job {job.id} is {job.status}, and has not ended", "cancel it first, or fork it")
    if job.status is JobStatus.SUCCEEDED:
        return Refused(f"job {job.id} succeeded, and has nothing to continue", fork)
    if job.failure is Failure.REJECTED:
        return Refused(f"job {job.id} ended as its document says, in state {job.state}: rejected", fork)
    return None


def _at(job: Job, from_turn: int) -> Cut | Refused:
    for place, visit in enumerate(job.visits):
        if isinstance(visit, Turn) and visit.ordinal == from_turn:
            return _cut(job, place, visit.state)
    turns = job.turn_count
    has = "no turn" if turns == 0 else "1 turn" if turns == 1 else f"{turns} turns"
    reason = f"job {job.id} has {has}, and no turn {from_turn}"
    return Refused(reason, "turns count from 1: stepladder show JOB", "from_turn")


def _where_it_failed(job: Job, machine: Machine) -> Cut:
    """The last visit is repeated if it failed or was interrupted; else the state after it is entered."""
    if job.state is None:
        return Cut(0, None)
    last = job.visits[-1] if job.visits else None
    if last is None or last.state != job.state:
        return _cut(job, len(job.visits), job.state)
    if _settled_at_the_end(job, last):
        state = machine.states[last.state]
        target = state.edges[OK] if isinstance(state, ToolState) else last.state
        return _cut(job, len(job.visits), target)
    blamed = isinstance(last, Turn) and job.failure in (Failure.TRANSITION_DENIED, Failure.LOOP)
    return _cut(job, len(job.visits) - (0 if last.succeeded and not blamed else 1), job.state)


def _settled_at_the_end(job: Job, last: Visit) -> bool:
    """Whether a job was cancelled while it waited for settlement, and the settlement was that the effect took place.

    The call had returned, and no edge was followed.
    """
    took = isinstance(last, ToolCall) and last.effect is Effect.IRREVERSIBLE and last.error is None
    return took and job.status is JobStatus.CANCELLED


def _cut(job: Job, kept: int, state: str) -> Cut:
    """A list that has no element yet is begun again, so that a changed document says over what."""
    if kept > 0 and isinstance(job.visits[kept - 1], ListRun):
        kept -= 1
    if kept == 0:
        return Cut(0, None)
    return Cut(kept, state, 1 + sum(isinstance(visit, Turn) for visit in job.visits[:kept]))


def carry(job: Job, cut: Cut, machine: Machine) -> Carried | Refused:
    """What a job by ``machine``, which may be another than the old job's, carries over from ``job``.

    The system prompt is the machine's own, rendered now.
    """
    if cut.state is None:
        return Carried(None)
    if cut.state not in machine.states:
        reason = f"workflow {machine.name} {machine.version} has no state {cut.state}, where the job would continue"
        return Refused(reason, "continue from another turn, or from the beginning", "set")
    visits = tuple(_carried(visit) for visit in job.visits[: cut.kept])
    kept = {visit.ordinal for visit in visits if isinstance(visit, Turn)}
    lines: list[tuple[int, str, str]] = []
    if machine.system is not None:
        text = machine.system.render(names_of(replace(job, visits=())))
        if isinstance(text, RenderFailure):
            return Refused(f"the system prompt cannot be rendered: {text.reason}", "change it", "set")
        lines.append((0, "system", text))
    lines += [(line.turn, line.role, line.content) for line in job.transcript if line.turn in kept]
    transcript = tuple(Message(ordinal, *line) for ordinal, line in enumerate(lines, 1))
    return Carried(cut.state, visits, transcript, tuple(_misfits(visits, machine)))


def _carried(visit: Visit) -> Visit:
    if isinstance(visit, Turn):
        return replace(visit, attempts=(), carried=True)
    return replace(visit, carried=True)


def _misfits(visits: Sequence[Visit], machine: Machine) -> list[tuple[int, Violation]]:
    found: list[tuple[int, Violation]] = []
    for visit in visits:
        state = machine.states.get(visit.state)
        if isinstance(visit, Turn) and visit.accepted and isinstance(state, AskState):
            found += [(visit.ordinal, violation) for violation in state.schema.violations(visit.output)]
    return found
