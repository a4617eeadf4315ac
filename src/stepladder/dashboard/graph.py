"""A machine as a graph: what is drawn of its states and edges, and of the way that a job took through them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from stepladder.dashboard.layout import lay_out
from stepladder.schemas.job import Failure
from stepladder.workflows.machine import ALWAYS, AskState, ChildState, EndState, ToolState, WaitState, targets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepladder.dashboard.curves import Drawing
    from stepladder.workflows.machine import Machine, State

MOST_STATES = 60
"""Of more, a table is easier to read than a picture."""

LONGEST = 26
DENIED = "no edge"
FAILURES = frozenset(failure.value for failure in Failure)


@dataclass(frozen=True, slots=True)
class Step:
    """A visit to a state. ``word`` is what was chosen there, or how it came out; ``target`` where it led to."""

    visit: int
    state: str
    word: str | None
    target: str | None


@dataclass(frozen=True, slots=True)
class Way:
    """How a job went. ``here`` is the state that it is in, or ended in. ``denied`` is a word that no edge had."""

    steps: tuple[Step, ...] = ()
    here: str | None = None
    failed: bool = False
    live: bool = False
    denied: str | None = None


@dataclass(frozen=True, slots=True)
class Edge:
    """Everything that leads from one state to another, by its words; ``taken`` counts how often."""

    source: str
    target: str
    words: tuple[str, ...]
    taken: int

    @property
    def failing(self) -> bool:
        return all(word in FAILURES for word in self.words)


@dataclass(frozen=True, slots=True)
class Graph:
    """``drawing`` is None where there is too much to draw; ``kinds`` and ``visits`` go by state."""

    edges: tuple[Edge, ...]
    kinds: dict[str, str]
    visits: Counter[str]
    way: Way
    drawing: Drawing | None
    told: str

    @property
    def denied_name(self) -> str:
        return DENIED

    def edge(self, source: str, target: str) -> Edge:
        return next(edge for edge in self.edges if (edge.source, edge.target) == (source, target))

    def rounded(self, state: str) -> bool:
        """Ends are drawn as pills."""
        return self.kinds.get(state) in ("succeeded", "failed")

    def shown(self, state: str) -> str:
        """What stands in a state's box: its name, with a sign where it says something."""
        if state == DENIED:
            return f"✗ {DENIED}"
        sign = ""
        if state == self.way.here:
            sign = "✗ " if self.way.failed else "▶ " if self.way.live else "✓ " if self.rounded(state) else ""
        times = self.visits[state]
        return f"{sign}{state}" + (f" ×{times}" if times > 1 else "")

    def title(self, state: str) -> str:
        """The same in words."""
        if state == DENIED:
            return f"there is no edge for {self.way.denied}"
        times = self.visits[state]
        visited = "" if not self.way.steps else f", visited {times} times" if times else ", never visited"
        ended = (
            "the job failed here" if self.way.failed else "the job is here" if self.way.live else "the job ended here"
        )
        return f"{state}: {self.kinds[state]}{visited}" + (f"; {ended}" if state == self.way.here else "")

    def classes(self, state: str) -> str:
        """Of a state in the picture."""
        if state == DENIED:
            return "k-denied failed"
        visited = ["visited"] if self.visits[state] else []
        here = ["here", "failed" if self.way.failed else "live" if self.way.live else "ended"]
        return " ".join([f"k-{self.kinds[state]}", *visited, *(here if state == self.way.here else [])])


def kind_of(state: State) -> str:
    match state:
        case AskState():
            return "turn"
        case ToolState():
            return "tool"
        case WaitState():
            return "wait"
        case ChildState():
            return "call"
        case EndState():
            return "succeeded" if state.succeeded else "failed"
        case _:
            assert_never(state)


def graph_of(machine: Machine, way: Way) -> Graph:
    kinds = {name: kind_of(state) for name, state in machine.states.items()}
    steps = [(step.state, step.target) for step in way.steps if step.target is not None]
    taken = Counter(steps)
    words: dict[tuple[str, str], list[str]] = {}
    for name, state in machine.states.items():
        for word, target in targets(state):
            words.setdefault((name, target), []).append(word)
    edges = [Edge(*pair, tuple(listed), taken[pair]) for pair, listed in words.items()]
    if way.denied is not None and way.here is not None:
        edges.append(Edge(way.here, DENIED, (way.denied,), 1))
    visits = Counter(step.state for step in way.steps)
    if way.here is not None and kinds.get(way.here) in ("succeeded", "failed"):
        visits[way.here] += 1
    drawing = None
    if len(kinds) <= MOST_STATES:
        names = [machine.start, *(name for name in kinds if name != machine.start)]
        names += [DENIED] if way.denied is not None else []
        labels = tuple((edge.source, edge.target, label(edge.words)) for edge in edges)
        drawing = lay_out(tuple(names), labels)
    return Graph(tuple(edges), kinds, visits, way, drawing, _told(machine, way, visits))


def label(words: Sequence[str]) -> str:
    """The words beside an edge. One that is always taken says nothing, and many are counted."""
    said = [word.replace("_", " ") for word in words if word != ALWAYS]
    text = ", ".join(said)
    if len(text) <= LONGEST:
        return text
    first = said[0] if len(said[0]) <= LONGEST else said[0][: LONGEST - 1] + "…"
    return first if len(said) == 1 else f"{first} +{len(said) - 1}"


def _told(machine: Machine, way: Way, visits: Counter[str]) -> str:
    text = f"{len(machine.states)} states, beginning with {machine.start}."
    if not way.steps:
        return text
    unseen = sum(not visits[name] for name in machine.states)
    return f"{text} The job made {len(way.steps)} visits, and never came to {unseen} of them."
