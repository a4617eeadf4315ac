"""A job as a conversation: its visits in their order, each with what a page shows of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from stepladder.dashboard.marks import Piece, marked_json, marked_text, offset_of
from stepladder.schemas.outcomes import RungState
from stepladder.validation.parse import Parsed, parse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepladder.models.children import ChildRecord
    from stepladder.models.reads import AttemptRecord, TurnRecord
    from stepladder.models.visits import Course
    from stepladder.workflows.job import ChildCall, ToolCall, Wait


@dataclass(frozen=True, slots=True)
class Try:
    """An attempt, with its answer to the letter and, where it is JSON, as such; failing places are marked.

    ``text`` is None where no answer came, ``parsed`` where it is no JSON. ``offset`` is the character at which the
    answer stopped being what was asked for.
    """

    record: AttemptRecord
    text: tuple[Piece, ...] | None
    parsed: tuple[Piece, ...] | None
    offset: int | None = None

    @property
    def rungs(self) -> list[tuple[str, RungState]]:
        climbed = self.record.rungs
        if climbed is None:
            return []
        return [(name, getattr(climbed, name)) for name in ("termination", "parse", "schema", "semantic")]


@dataclass(frozen=True, slots=True)
class Asked:
    """A turn."""

    visit: int
    turn: TurnRecord
    tries: tuple[Try, ...]
    kind: str = "turn"


@dataclass(frozen=True, slots=True)
class Ran:
    """A tool's run."""

    visit: int
    call: ToolCall
    kind: str = "tool"


@dataclass(frozen=True, slots=True)
class Waited:
    """A wait for a signal."""

    visit: int
    wait: Wait
    kind: str = "wait"


@dataclass(frozen=True, slots=True)
class Called:
    """A call of other jobs, and how those stand."""

    visit: int
    call: ChildCall
    children: tuple[ChildRecord, ...]
    kind: str = "call"


Shown: TypeAlias = Asked | Ran | Waited | Called


def conversation(turns: Sequence[TurnRecord], course: Course, children: Sequence[ChildRecord] = ()) -> list[Shown]:
    """All visits, oldest first. A turn that was opened while these were read comes last."""
    last = len(turns) + len(course.calls) + len(course.waits) + len(course.child_calls)
    shown: list[Shown] = [
        Asked(course.turn_visits.get(turn.ordinal, last), turn, tuple(map(_try, turn.attempts))) for turn in turns
    ]
    shown += [Ran(call.visit, call) for call in course.calls]
    shown += [Waited(wait.visit, wait) for wait in course.waits]
    shown += [
        Called(call.visit, call, tuple(child for child in children if child.visit == call.visit))
        for call in course.child_calls
    ]
    return sorted(shown, key=lambda one: one.visit)


def _try(record: AttemptRecord) -> Try:
    if record.content is None:
        return Try(record, None, None)
    text = record.content.decode("utf-8", "replace")
    stopped = offset_of(record.content, record.outcome)
    if stopped is not None:
        return Try(record, tuple(marked_text(text, *stopped)), None, stopped[0])
    parsed = parse(record.content) if record.rungs is not None and record.rungs.parse is RungState.PASSED else None
    if not isinstance(parsed, Parsed):
        return Try(record, (Piece(text),), None)
    wrong = [(error.pointer, error.reason) for error in (*record.errors, *record.observed)]
    return Try(record, (Piece(text),), tuple(marked_json(parsed.value, wrong)))
