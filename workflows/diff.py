"""Two jobs side by side, visit by visit, so that one visit more does not shift all that follow it."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from stepladder.workflows.difference import difference

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stepladder.schemas.jsontypes import Json, JsonObject
    from stepladder.workflows.difference import Change

Key = tuple["VisitKind", str, int]


class VisitKind(StrEnum):
    """What a job does in a state."""

    TURN = "turn"
    TOOL = "tool"
    WAIT = "wait"
    CALL = "call"


@dataclass(frozen=True, slots=True)
class Visited:
    """One visit of a job as it stands.

    ``outcome`` is a turn's, with the ``cause`` of its last attempt; of a tool or a call it is ``ok`` or ``error``, with
    the error's kind; None while it is open. ``given`` are a tool's arguments, a call's inputs or what a wait shows, and
    ``output`` is what came of it. ``attempts`` counts those of a turn, and how often a tool was begun. ``tokens`` are
    of all attempts; ``ms`` is from the visit's beginning to its end.
    """

    kind: VisitKind
    state: str
    visit: int
    turn: int | None = None
    outcome: str | None = None
    cause: str | None = None
    action: str | None = None
    given: Json = None
    output: Json = None
    attempts: int | None = None
    tokens: int | None = None
    ms: float | None = None
    carried: bool = False


@dataclass(frozen=True, slots=True)
class Ran:
    """A job at a glance. ``seconds`` are from its first step to its end, waits included."""

    id: str
    workflow: str
    version: int
    variant: str | None
    status: str
    failure: str | None
    turns: int
    attempts: int
    tokens: int
    cost: float | None
    currency: str | None
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Pair:
    """The ``nth`` visit of a state in both jobs; None on the side of a job that made none."""

    kind: VisitKind
    state: str
    nth: int
    was: Visited | None
    now: Visited | None
    given: tuple[Change, ...] = ()
    output: tuple[Change, ...] = ()

    @property
    def differs(self) -> tuple[str, ...]:
        """The names of what is not the same. Tokens and time hardly ever are, and do not count."""
        if self.was is None or self.now is None:
            return ("visit",)
        names = ["outcome", "cause", "action"]
        if not (self.was.carried or self.now.carried):  # what was taken over was not asked here
            names.append("attempts")
        found = [name for name in names if getattr(self.was, name) != getattr(self.now, name)]
        return (*found, *(name for name in ("given", "output") if getattr(self, name)))

    def as_json(self) -> JsonObject:
        return {
            "kind": self.kind.value,
            "state": self.state,
            "nth": self.nth,
            "was": _side(self.was),
            "now": _side(self.now),
            "differs": list(self.differs),
            "given": [change.as_json() for change in self.given],
            "output": [change.as_json() for change in self.output],
        }


@dataclass(frozen=True, slots=True)
class JobDifference:
    """Two jobs, and everything in which the ``other`` came out otherwise than the ``job``."""

    job: Ran
    other: Ran
    input: tuple[Change, ...]
    result: tuple[Change, ...]
    pairs: tuple[Pair, ...]

    @property
    def same(self) -> bool:
        """Whether both went the same way to the same end."""
        ends = (self.job.status, self.job.failure) == (self.other.status, self.other.failure)
        return ends and not self.input and not self.result and not any(pair.differs for pair in self.pairs)

    def as_json(self) -> JsonObject:
        """In the words of the HTTP API."""
        return {
            "job": asdict(self.job),
            "other": asdict(self.other),
            "same": self.same,
            "input": [change.as_json() for change in self.input],
            "result": [change.as_json() for change in self.result],
            "visits": [pair.as_json() for pair in self.pairs],
        }


def pairs(was: Sequence[Visited], now: Sequence[Visited]) -> tuple[Pair, ...]:
    """The visits of two jobs, each beside that of the same kind, state and count, in the order of the first job.

    A visit that only the second one made stands behind the one that it followed there.
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
    return tuple(_pair(key, here.get(key), there.get(key)) for key in order)


def _keyed(visits: Sequence[Visited]) -> Iterator[tuple[Key, Visited]]:
    counts: Counter[tuple[VisitKind, str]] = Counter()
    for one in visits:
        counts[one.kind, one.state] += 1
        yield (one.kind, one.state, counts[one.kind, one.state]), one


def _pair(key: Key, was: Visited | None, now: Visited | None) -> Pair:
    if was is None or now is None:
        return Pair(*key, was, now)
    return Pair(*key, was, now, difference(was.given, now.given), difference(was.output, now.output))


def _side(one: Visited | None) -> JsonObject | None:
    if one is None:
        return None
    names = ("visit", "turn", "outcome", "cause", "action", "given", "output", "attempts", "tokens", "ms", "carried")
    return {name: getattr(one, name) for name in names}
