"""Two jobs read to be laid beside each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepladder.workflows.diff import JobDifference, Ran, Visited, VisitKind, pairs
from stepladder.workflows.difference import difference

if TYPE_CHECKING:
    from datetime import datetime

    from stepladder.models.reads import Reads
    from stepladder.schemas.history import CallVisit, Timeline, ToolVisit, Turn, WaitVisit
    from stepladder.schemas.responses import Job


async def compare(reads: Reads, job: Job, other: Job) -> JobDifference:
    """In what the ``other`` came out otherwise. Raises ``UnreachableError`` when the connection breaks."""
    was, now = [await _visited(reads, one) for one in (job, other)]
    return JobDifference(
        job=_ran(job),
        other=_ran(other),
        input=difference(job.input, other.input),
        result=difference(job.result, other.result),
        pairs=pairs(was, now),
    )


async def _visited(reads: Reads, job: Job) -> list[Visited]:
    return visited(await reads.turns(job.id), await reads.timeline(job.id))


def visited(turns: tuple[Turn, ...], timeline: Timeline) -> list[Visited]:
    """All visits of a job, oldest first."""
    found = [
        *(_turn(turn, timeline.turns[turn.ordinal]) for turn in turns if turn.ordinal in timeline.turns),
        *(_tool(call) for call in timeline.tools),
        *(_wait(wait) for wait in timeline.waits),
        *(_call(call) for call in timeline.calls),
    ]
    return sorted(found, key=lambda one: one.visit)


def _turn(turn: Turn, visit: int) -> Visited:
    usages = [attempt.usage for attempt in turn.attempts if attempt.usage is not None]
    return Visited(
        VisitKind.TURN,
        turn.state,
        visit,
        turn=turn.ordinal,
        outcome=turn.outcome,
        cause=turn.attempts[-1].cause if turn.attempts else None,
        action=turn.action,
        output=turn.output,
        attempts=len(turn.attempts),
        tokens=sum(usage.total for usage in usages),
        ms=_ms(turn.started_at, turn.finished_at),
        carried=turn.carried,
    )


def _tool(call: ToolVisit) -> Visited:
    return Visited(
        VisitKind.TOOL,
        call.state,
        call.visit,
        outcome=_came_back(call),
        cause=None if call.error is None else call.error.kind,
        action=call.tool,
        given=call.arguments,
        output=call.result,
        attempts=call.runs,
        ms=_ms(call.opened_at, call.closed_at),
        carried=call.carried,
    )


def _call(call: CallVisit) -> Visited:
    return Visited(
        VisitKind.CALL,
        call.state,
        call.visit,
        outcome=_came_back(call),
        cause=None if call.error is None else call.error.kind,
        action=call.workflow,
        given=list(call.inputs),
        output=call.result,
        ms=_ms(call.opened_at, call.closed_at),
        carried=call.carried,
    )


def _wait(wait: WaitVisit) -> Visited:
    return Visited(
        VisitKind.WAIT,
        wait.state,
        wait.visit,
        action=wait.action,
        given=wait.show,
        output=wait.payload,
        ms=_ms(wait.opened_at, wait.closed_at),
        carried=wait.carried,
    )


def _came_back(call: ToolVisit | CallVisit) -> str | None:
    if call.closed_at is None:
        return None
    return "ok" if call.error is None else "error"


def _ran(job: Job) -> Ran:
    ms = None if job.started_at is None else _ms(job.started_at, job.finished_at)
    return Ran(
        id=str(job.id),
        workflow=job.workflow,
        version=job.version,
        variant=job.variant,
        status=job.status,
        failure=job.failure,
        turns=job.turn_count,
        attempts=job.attempts,
        tokens=job.tokens,
        cost=job.cost,
        currency=job.currency,
        seconds=None if ms is None else ms / 1000,
    )


def _ms(began: datetime, ended: datetime | None) -> float | None:
    return None if ended is None else (ended - began).total_seconds() * 1000
