"""Loop detection, on hashes of a job's outputs, results, signals and states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepladder.schemas.canonical import exact_hash
from stepladder.workflows.job import Turn
from stepladder.workflows.visits import ListRun

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepladder.schemas.jsontypes import Json
    from stepladder.workflows.machine import LoopLimits
    from stepladder.workflows.visits import Visit


@dataclass(frozen=True, slots=True)
class Circle:
    """The evidence: which strength found it, which turns are alike, and the hash that they share."""

    strength: str
    turns: tuple[int, ...]
    hash: str

    def __str__(self) -> str:
        turns = ", ".join(str(turn) for turn in self.turns)
        match self.strength:
            case "repeats":
                what = f"turns {turns} gave the same output after the same results"
            case "stale":
                what = f"turns {turns} brought nothing new"
            case _:
                what = f"turns {turns} stood in the same state with the same outputs and results"
        return f"{what} ({self.hash[:12]})"


def find_circle(visits: Sequence[Visit], limits: LoopLimits) -> Circle | None:
    """Looks at the path up to its last accepted turn, which has just been accepted.

    A visit repeats the one before it in the same state if its output is the same, and so are the tool results and
    signals since the state's previous visit; ``repeats`` of those in a row are a circle. So is a fingerprint (state,
    and the last output, result and payload of every state) that was seen ``repeats`` times before, which finds
    loops over several states. ``stale`` turns in a row that bring neither a new output nor, since the turn before,
    a new result or signal are one as well. A tool result that changes is progress in all three, and so is every element
    of a list, however alike they are: only a list that is built repeatedly is a loop.

    One repetition is not a loop yet: of 50 recorded conversations two that reached their goal had one, one of them with
    the same read three times.
    """
    marks = _marks(visits)
    if not marks:
        return None
    last = marks[-1]
    same = [mark for mark in marks if mark.state == last.state]
    alike = same[-limits.repeats - 1 :] if len(same) > limits.repeats else []
    if alike and all(mark.visit == last.visit for mark in alike):
        return Circle("repeats", tuple(mark.turn for mark in alike), last.visit)
    again = [mark for mark in marks if mark.fingerprint == last.fingerprint]
    if len(again) > limits.repeats:
        return Circle("fingerprint", tuple(mark.turn for mark in again), last.fingerprint)
    tail = marks[len(marks) - limits.stale :] if len(marks) >= limits.stale else []
    if tail and not any(mark.new for mark in tail):
        return Circle("stale", tuple(mark.turn for mark in tail), last.fingerprint)
    return None


@dataclass(frozen=True, slots=True)
class _Mark:
    turn: int
    state: str
    visit: str
    fingerprint: str
    new: bool


def _marks(visits: Sequence[Visit]) -> list[_Mark]:
    marks: list[_Mark] = []
    seen: set[str] = set()
    last: dict[str, str] = {}
    since: dict[str, list[str]] = {}  # by asking state: what came since its previous visit
    place: dict[str, int] = {}  # by state that builds a list: how far it has come
    fresh = False
    for visit in visits:
        match visit:
            case ListRun():
                place[visit.state] = 0
            case Turn() if visit.accepted:
                in_list = visit.state in place
                place |= {visit.state: place[visit.state] + 1} if in_list else {}
                said = exact_hash([visit.state, visit.output, *([place[visit.state]] if in_list else [])])
                new = fresh or in_list or said not in seen
                seen.add(said)
                last[visit.state] = said
                # The first visit has no previous one, so that nothing came since.
                came = since.get(visit.state, [])
                together = exact_hash([said, list(came)])
                fingerprint = exact_hash([visit.state, dict(last)])
                marks.append(_Mark(visit.ordinal, visit.state, together, fingerprint, new))
                since[visit.state] = []
                fresh = False
            case Turn():
                pass
            case _ if visit.closed_at is not None:
                told = exact_hash([visit.state, _told(visit)])
                fresh = fresh or told not in seen
                seen.add(told)
                last[visit.state] = told
                for came in since.values():
                    came.append(told)
            case _:
                pass
    return marks


def _told(visit: Visit) -> Json:
    return visit.value if visit.error is None else {"error": visit.error.kind, "message": visit.error.message}
