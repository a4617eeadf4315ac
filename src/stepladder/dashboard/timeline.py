"""A job's visits to states in order, each with what its page shows of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from stepladder.dashboard.highlighting import Piece, highlight_json, highlight_text, stopped_at
from stepladder.schemas.history import Attempt, CallVisit, Timeline, ToolVisit, TurnVisit, WaitVisit
from stepladder.schemas.outcomes import Outcome, RungState
from stepladder.validation.parse import Parsed, parse
from stepladder.workflows.machine import ERROR, OK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepladder.schemas.responses import ChildJob, Job

Record: TypeAlias = TurnVisit | ToolVisit | WaitVisit | CallVisit


@dataclass(frozen=True, slots=True)
class ShownAttempt:
    """An attempt with its answer, errors highlighted.

    ``text`` is None without an answer, ``parsed`` unless it is JSON. ``offset`` is the character where it stopped being
    what was asked for.
    """

    record: Attempt
    text: tuple[Piece, ...] | None = None
    parsed: tuple[Piece, ...] | None = None
    offset: int | None = None

    @property
    def rungs(self) -> list[tuple[str, RungState]]:
        rungs = self.record.rungs
        return [] if rungs is None else [(name, getattr(rungs, name)) for name in RUNGS]


RUNGS = ("termination", "parse", "schema", "semantic")


@dataclass(frozen=True, slots=True)
class Visit:
    """A visit to a state. ``word`` is the action chosen there or how it ended, ``target`` the state it led to."""

    ordinal: int
    kind: Literal["turn", "tool", "wait", "call"]
    record: Record
    word: str | None
    attempts: tuple[ShownAttempt, ...] = ()
    children: tuple[ChildJob, ...] = ()
    target: str | None = None

    @property
    def state(self) -> str:
        return self.record.state


def visits_of(job: Job, turns: Sequence[TurnVisit], timeline: Timeline) -> list[Visit]:
    """All visits, oldest first. A turn that was opened while these were read comes last."""
    last = len(turns) + len(timeline.tools) + len(timeline.waits) + len(timeline.calls)
    visits = [
        Visit(timeline.turns.get(one.ordinal, last), "turn", one, _turn_word(one), tuple(map(_shown, one.attempts)))
        for one in turns
    ]
    visits += [Visit(one.visit, "tool", one, _call_word(one)) for one in timeline.tools]
    visits += [Visit(one.visit, "wait", one, one.action) for one in timeline.waits]
    for one in timeline.calls:
        children = tuple(child for child in job.children or () if child.visit == one.visit)
        visits.append(Visit(one.visit, "call", one, _call_word(one), children=children))
    visits.sort(key=lambda visit: visit.ordinal)
    if not visits:
        return []
    targets = [visit.state for visit in visits[1:]]
    now = job.state if job.state != visits[-1].state else None
    return [replace(visit, target=target) for visit, target in zip(visits, [*targets, now], strict=True)]


def _turn_word(turn: TurnVisit) -> str | None:
    failed = turn.outcome is not None and turn.outcome is not Outcome.VALID
    return turn.action or (str(turn.outcome) if failed else None)


def _call_word(call: ToolVisit | CallVisit) -> str | None:
    if call.closed_at is None:
        return None
    return ERROR if call.error is not None and call.result is None else OK


def _shown(record: Attempt) -> ShownAttempt:
    content = record.content_bytes
    if content is None:
        return ShownAttempt(record)
    text = content.decode("utf-8", "replace")
    stopped = stopped_at(content, record.outcome)
    if stopped is not None:
        return ShownAttempt(record, tuple(highlight_text(text, *stopped)), offset=stopped[0])
    parsed = parse(content) if record.rungs is not None and record.rungs.parse is RungState.PASSED else None
    if not isinstance(parsed, Parsed):
        return ShownAttempt(record, (Piece(text),))
    errors = [(error.pointer, error.reason) for error in (*record.errors, *record.observed)]
    return ShownAttempt(record, (Piece(text),), tuple(highlight_json(parsed.value, errors)))
