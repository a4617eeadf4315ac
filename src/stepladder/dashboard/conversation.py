"""A job as a conversation: its visits in their order, each with what a page shows of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from stepladder.dashboard.marks import Piece, marked_json, marked_text, offset_of
from stepladder.schemas.outcomes import RungState
from stepladder.validation.parse import Parsed, parse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepladder.schemas.history import Attempt, CallVisit, Timeline, ToolVisit, Turn, WaitVisit
    from stepladder.schemas.responses import ChildJob


@dataclass(frozen=True, slots=True)
class Try:
    """An attempt, with its answer to the letter and, where it is JSON, as such; failing places are marked.

    ``text`` is None where no answer came, ``parsed`` where it is no JSON. ``offset`` is the character at which the
    answer stopped being what was asked for.
    """

    record: Attempt
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
    turn: Turn
    tries: tuple[Try, ...]
    kind: str = "turn"


@dataclass(frozen=True, slots=True)
class Ran:
    """A tool's run."""

    visit: int
    call: ToolVisit
    kind: str = "tool"


@dataclass(frozen=True, slots=True)
class Waited:
    """A wait for a signal."""

    visit: int
    wait: WaitVisit
    kind: str = "wait"


@dataclass(frozen=True, slots=True)
class Called:
    """A call of other jobs, and how those stand."""

    visit: int
    call: CallVisit
    children: tuple[ChildJob, ...]
    kind: str = "call"


Shown: TypeAlias = Asked | Ran | Waited | Called


def conversation(turns: Sequence[Turn], timeline: Timeline, children: Sequence[ChildJob] = ()) -> list[Shown]:
    """All visits, oldest first. A turn that was opened while these were read comes last."""
    last = len(turns) + len(timeline.tools) + len(timeline.waits) + len(timeline.calls)
    shown: list[Shown] = [
        Asked(timeline.turns.get(turn.ordinal, last), turn, tuple(map(_try, turn.attempts))) for turn in turns
    ]
    shown += [Ran(call.visit, call) for call in timeline.tools]
    shown += [Waited(wait.visit, wait) for wait in timeline.waits]
    shown += [
        Called(call.visit, call, tuple(child for child in children if child.visit == call.visit))
        for call in timeline.calls
    ]
    return sorted(shown, key=lambda one: one.visit)


def _try(record: Attempt) -> Try:
    if record.content_bytes is None:
        return Try(record, None, None)
    text = record.content_bytes.decode("utf-8", "replace")
    stopped = offset_of(record.content_bytes, record.outcome)
    if stopped is not None:
        return Try(record, tuple(marked_text(text, *stopped)), None, stopped[0])
    parsed = (
        parse(record.content_bytes) if record.rungs is not None and record.rungs.parse is RungState.PASSED else None
    )
    if not isinstance(parsed, Parsed):
        return Try(record, (Piece(text),), None)
    wrong = [(error.pointer, error.reason) for error in (*record.errors, *record.observed)]
    return Try(record, (Piece(text),), tuple(marked_json(parsed.value, wrong)))
