"""A job as a conversation: its visits in their order, each with what a page shows of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from stepladder.schemas.outcomes import RungState
from stepladder.validation.parse import Parsed, parse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepladder.models.reads import AttemptRecord, TurnRecord
    from stepladder.models.visits import Course
    from stepladder.schemas.jsontypes import Json
    from stepladder.workflows.job import ToolCall, Wait


@dataclass(frozen=True, slots=True)
class Try:
    """An attempt, with its answer as text and as the JSON that it holds. ``parsed`` counts if ``is_json``."""

    record: AttemptRecord
    text: str | None
    is_json: bool
    parsed: Json

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


Shown: TypeAlias = Asked | Ran | Waited


def conversation(turns: Sequence[TurnRecord], course: Course) -> list[Shown]:
    """All visits, oldest first. A turn that was opened while these were read comes last."""
    last = len(turns) + len(course.calls) + len(course.waits)
    shown: list[Shown] = [
        Asked(course.turn_visits.get(turn.ordinal, last), turn, tuple(map(_try, turn.attempts))) for turn in turns
    ]
    shown += [Ran(call.visit, call) for call in course.calls]
    shown += [Waited(wait.visit, wait) for wait in course.waits]
    return sorted(shown, key=lambda one: one.visit)


def _try(record: AttemptRecord) -> Try:
    if record.content is None:
        return Try(record, None, is_json=False, parsed=None)
    climbed = record.rungs is not None and record.rungs.parse is RungState.PASSED
    parsed = parse(record.content) if climbed else None
    value = parsed.value if isinstance(parsed, Parsed) else None
    return Try(record, record.content.decode("utf-8", "replace"), isinstance(parsed, Parsed), value)
