"""A workflow's state machine as a picture, with the path that a job took through it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from stepladder.dashboard.layout import Edge, Node, lay_out
from stepladder.schemas.history import TurnVisit
from stepladder.schemas.job import Failure
from stepladder.workflows.machine import ALWAYS, AskState, ChildState, EndState, ToolState, WaitState, targets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepladder.dashboard.timeline import Visit
    from stepladder.schemas.responses import Job
    from stepladder.workflows.machine import Machine, State

MOST_STATES = 60
"""Beyond this a table is easier to read than a picture."""

LONGEST_LABEL = 26
DENIED = "no transition"
FAILURES = frozenset(failure.value for failure in Failure)
ENDS = ("succeeded", "failed")


@dataclass(frozen=True, slots=True)
class Transition:
    """All transitions from one state to another; ``taken`` is how often the job took one of them."""

    source: str
    target: str
    words: tuple[str, ...]
    taken: int

    @property
    def failing(self) -> bool:
        return all(word in FAILURES for word in self.words)

    @property
    def classes(self) -> str:
        flags = {"taken": self.taken, "failing": self.failing, "denied": self.target == DENIED}
        return " ".join(["edge", *(name for name, on in flags.items() if on)])

    @property
    def label(self) -> str:
        """The label, if it fits; the unconditional transition has none."""
        words = [word.replace("_", " ") for word in self.words if word != ALWAYS]
        text = ", ".join(words)
        if len(text) <= LONGEST_LABEL:
            return text
        first = words[0] if len(words[0]) <= LONGEST_LABEL else words[0][: LONGEST_LABEL - 1] + "…"
        return first if len(words) == 1 else f"{first} +{len(words) - 1}"


@dataclass(frozen=True, slots=True)
class Box:
    """A state in the picture."""

    place: Node
    label: str
    title: str
    classes: str


@dataclass(frozen=True, slots=True)
class Graph:
    """Too many states have no ``boxes`` and ``lines``. ``denied`` is an action that had no transition."""

    states: int
    transitions: tuple[Transition, ...]
    description: str
    denied: str | None = None
    boxes: tuple[Box, ...] = ()
    lines: tuple[tuple[Transition, Edge], ...] = ()
    width: float = 0.0
    height: float = 0.0


def graph_of(machine: Machine, job: Job | None = None, visits: Sequence[Visit] = ()) -> Graph:
    """The machine, and the job's path through it."""
    kinds = {name: kind_of(state) for name, state in machine.states.items()}
    taken = Counter((visit.state, visit.target) for visit in visits)
    words: dict[tuple[str, str], list[str]] = {}
    for name, state in machine.states.items():
        for word, target in targets(state):
            words.setdefault((name, target), []).append(word)
    transitions = [Transition(*pair, tuple(found), taken[pair]) for pair, found in words.items()]
    denied = None if job is None else _denied(job, visits)
    names = [machine.start, *(name for name in kinds if name != machine.start)]
    if job is not None and job.state is not None and denied is not None:
        transitions.append(Transition(job.state, DENIED, (denied,), 1))
        names.append(DENIED)
    counts = Counter(visit.state for visit in visits)
    if job is not None and job.state is not None and kinds.get(job.state) in ENDS:
        counts[job.state] += 1
    description = f"{len(kinds)} states, starting with {machine.start}."
    if visits:
        never = sum(not counts[name] for name in kinds)
        description += f" The job made {len(visits)} visits and never reached {never} of the states."
    if len(kinds) > MOST_STATES:
        return Graph(len(kinds), tuple(transitions), description, denied)
    drawing = lay_out(tuple(names), tuple((one.source, one.target, one.label) for one in transitions))
    boxes = [_box(node, kinds.get(node.name), counts[node.name], job, denied) for node in drawing.nodes]
    edges = {(edge.source, edge.target): edge for edge in drawing.edges}
    lines = [(one, edges[one.source, one.target]) for one in transitions]
    size = drawing.width, drawing.height
    return Graph(len(kinds), tuple(transitions), description, denied, tuple(boxes), tuple(lines), *size)


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


def _box(node: Node, kind: str | None, count: int, job: Job | None, denied: str | None) -> Box:
    name = node.name
    if kind is None:
        return Box(node, f"✗ {DENIED}", f"there is no transition for {denied}", "k-denied failed")
    sign, title, classes = "", f"{name}: {kind}", ["visited"] if count else []
    if job is not None:
        title += f", visited {count} {'time' if count == 1 else 'times'}" if count else ", never visited"
        if name == job.state:
            here = "failed" if job.failure is not None else "live" if not job.status.final else "ended"
            sign = {"failed": "✗ ", "live": "▶ ", "ended": "✓ " if kind in ENDS else ""}[here]
            title += {"failed": "; the job failed here", "live": "; the job is here", "ended": "; the job ended here"}[
                here
            ]
            classes += ["here", here]
    label = f"{sign}{name}" + (f" ×{count}" if count > 1 else "")
    return Box(node, label, title, " ".join([f"k-{kind}", *classes]))


def _denied(job: Job, visits: Sequence[Visit]) -> str | None:
    """The action that had no transition."""
    turn = visits[-1].record if visits else None
    if job.failure is not Failure.TRANSITION_DENIED or not isinstance(turn, TurnVisit):
        return None
    action = turn.output.get("action") if isinstance(turn.output, dict) else None
    return "no action" if action is None else str(action)[:40]
