"""Two jobs compared, visit by visit, so that an extra visit does not shift those after it."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stepladder.experiments.difference import difference
from stepladder.schemas.diff import JobDiff, PairOfVisits, Ran, Visited

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from stepladder.schemas.diff import VisitKind
    from stepladder.schemas.history import CallVisit, Timeline, ToolVisit, TurnVisit
    from stepladder.schemas.responses import Job

Key = tuple["VisitKind", str, int]
Place = tuple["VisitKind", str, Visited]
"""A visit with its kind and state."""


@dataclass(frozen=True, slots=True)
class History:
    """A job and everything that it went through."""

    job: Job
    turns: tuple[TurnVisit, ...]
    timeline: Timeline


def job_diff(was: History, now: History) -> JobDiff:
    input_, result = difference(was.job.input, now.job.input), difference(was.job.result, now.job.result)
    visits = pairs(_visits(was), _visits(now))
    ends = [(one.job.status, one.job.failure) for one in (was, now)]
    return JobDiff(
        job=_ran(was.job),
        other=_ran(now.job),
        same=ends[0] == ends[1] and not (input_ or result or any(pair.differs for pair in visits)),
        input=input_,
        result=result,
        visits=visits,
    )


def pairs(was: Iterable[Place], now: Iterable[Place]) -> list[PairOfVisits]:
    """Each visit paired with that of the same kind, state and count, in the order of the first job.

    A visit that only the second job made comes after the one that it followed there.
    """
    here, there = dict(_keyed(was)), dict(_keyed(now))
    behind: defaultdict[Key | None, list[Key]] = defaultdict(list)
    last: Key | None = None
    for key in there:
        if key in here:
            last = key
        else:
            behind[last].append(key)
    order = [*behind[None], *(one for key in here for one in (key, *behind[key]))]
    return [_pair(key, here.get(key), there.get(key)) for key in order]


def _keyed(visits: Iterable[Place]) -> Iterator[tuple[Key, Visited]]:
    counts: Counter[tuple[VisitKind, str]] = Counter()
    for kind, state, one in visits:
        counts[kind, state] += 1
        yield (kind, state, counts[kind, state]), one


def _pair(key: Key, was: Visited | None, now: Visited | None) -> PairOfVisits:
    kind, state, nth = key
    place: dict[str, Any] = {"kind": kind, "state": state, "nth": nth, "was": was, "now": now}
    if was is None or now is None:
        return PairOfVisits(**place, differs=["visit"], given=[], output=[])
    given, output = difference(was.given, now.given), difference(was.output, now.output)
    names = ["outcome", "cause", "action"]
    if not (was.carried or now.carried):  # a carried turn was not asked here
        names.append("attempts")
    differs = [name for name in names if getattr(was, name) != getattr(now, name)]
    differs += [name for name, changes in (("given", given), ("output", output)) if changes]
    return PairOfVisits(**place, differs=differs, given=given, output=output)


def _visits(history: History) -> list[Place]:
    """All visits of a job, oldest first."""
    timeline = history.timeline
    found: list[Place] = [
        ("turn", turn.state, _turn(turn, timeline.turns[turn.ordinal]))
        for turn in history.turns
        if turn.ordinal in timeline.turns
    ]
    found += [
        ("tool", call.state, _call(call, action=call.tool, given=call.arguments, attempts=call.runs))
        for call in timeline.tools
    ]
    found += [
        ("call", call.state, _call(call, action=call.workflow, given=list(call.inputs))) for call in timeline.calls
    ]
    found += [
        ("wait", wait.state, _visited(wait, action=wait.action, given=wait.show, output=wait.payload))
        for wait in timeline.waits
    ]
    return sorted(found, key=lambda place: place[2].visit)


def _turn(turn: TurnVisit, visit: int) -> Visited:
    fields: dict[str, Any] = {"outcome": turn.outcome, "action": turn.action, "output": turn.output}
    return Visited(
        visit=visit,
        turn=turn.ordinal,
        cause=turn.attempts[-1].cause if turn.attempts else None,
        given=None,
        attempts=len(turn.attempts),
        tokens=sum(attempt.usage.total for attempt in turn.attempts if attempt.usage is not None),
        ms=_ms(turn.started_at, turn.finished_at),
        carried=turn.carried,
        **fields,
    )


def _call(call: ToolVisit | CallVisit, **fields: Any) -> Visited:
    outcome = None if call.closed_at is None else "ok" if call.error is None else "error"
    cause = None if call.error is None else call.error.kind
    return _visited(call, outcome=outcome, cause=cause, output=call.result, **fields)


def _visited(visit: Any, **fields: Any) -> Visited:
    """A visit that asks no model."""
    absent = dict.fromkeys(("turn", "outcome", "cause", "attempts", "tokens"))
    ms = _ms(visit.opened_at, visit.closed_at)
    return Visited(**absent | {"visit": visit.visit, "ms": ms, "carried": visit.carried} | fields)


def _ran(job: Job) -> Ran:
    ms = None if job.started_at is None else _ms(job.started_at, job.finished_at)
    names = ("id", "workflow", "version", "variant", "status", "failure", "attempts", "tokens", "cost", "currency")
    seconds = None if ms is None else ms / 1000
    return Ran(**{name: getattr(job, name) for name in names}, turns=job.turn_count, seconds=seconds)


def _ms(started: datetime, ended: datetime | None) -> float | None:
    return None if ended is None else (ended - started).total_seconds() * 1000
