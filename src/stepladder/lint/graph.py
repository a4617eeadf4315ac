"""A machine as a graph: every edge leads to a state, every state can be reached and can reach an end, a wait
precedes every irreversible tool, and a salvaged output reaches no tool."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from stepladder.schemas import document as doc
from stepladder.schemas.finding import Finding, Severity
from stepladder.schemas.pointer import pointer
from stepladder.workflows.machine import ALWAYS, TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    States = Mapping[str, doc.State]


def edges_of(name: str, state: doc.State) -> Iterator[tuple[str, str, str]]:
    """Every edge of a state as ``(word, target, pointer)``."""
    match state:
        case doc.End():
            return
        case doc.Ask() | doc.Call() | doc.Wait() | doc.ChildWorkflow():
            if isinstance(state.next, str):
                yield ALWAYS, state.next, pointer(("states", name, "next"))
            else:
                for word, target in state.next.items():
                    yield word, target, pointer(("states", name, "next", word))
            if isinstance(state, doc.Ask):
                for failure, target in state.on_failure.items():
                    yield failure.value, target, pointer(("states", name, "on_failure", failure.value))
        case _:
            assert_never(state)


def successors(states: States) -> dict[str, set[str]]:
    """The states that each state has an edge to."""
    return {
        name: {target for _, target, _ in edges_of(name, state) if target in states} for name, state in states.items()
    }


def closure(start: set[str], following: Mapping[str, set[str]]) -> set[str]:
    """``start`` and every state that can be reached from it."""
    reached, rest = set(start), list(start)
    while rest:
        found = following.get(rest.pop(), set()) - reached
        reached |= found
        rest.extend(found)
    return reached


def check_targets(states: States, start: str) -> Iterator[Finding]:
    """Edges to missing states or, where there are none, states that cannot be reached or cannot reach an end."""
    targets = [("/start", start)] + [(at, to) for name, state in states.items() for _, to, at in edges_of(name, state)]
    unknown = [(where, target) for where, target in targets if target not in states]
    for where, target in unknown:
        yield Finding("unknown_state", where, f"there is no state `{target}`", f"the states are {', '.join(states)}")
    if unknown:
        return
    following = successors(states)
    reached = closure({start}, following)
    for name in states:
        if name not in reached:
            message = f"no path leads from `{start}` to this state"
            yield Finding("unreachable_state", pointer(("states", name)), message, "add an edge to it, or remove it")
    preceding: dict[str, set[str]] = {name: set() for name in states}
    for name, names in following.items():
        for target in names:
            preceding[target].add(name)
    ending = closure({name for name, state in states.items() if isinstance(state, doc.End)}, preceding)
    for name in states:
        if name not in ending:
            message = "no path leads from this state to an end"
            yield Finding("no_end", pointer(("states", name)), message, "add an edge to a state with `end`")


def check_irreversible(states: States, start: str, irreversible: set[str]) -> Iterator[Finding]:
    """Only a wait may lead to an irreversible tool, and not by its timeout."""
    remedy = "put a state with `wait` before it, with an edge from an action of that wait"
    if start in irreversible:
        message = f"the job would start with the irreversible tool of `{start}`, without approval"
        yield Finding("unconfirmed", "/start", message, remedy)
    for name, state in states.items():
        for word, target, where in edges_of(name, state):
            if target in irreversible and (not isinstance(state, doc.Wait) or word == TIMEOUT):
                message = f"`{target}` runs an irreversible tool, and this edge leads to it without approval"
                yield Finding("unconfirmed", where, message, remedy)


def check_degrade(states: States) -> Iterator[Finding]:
    """A salvaged output may not lead to a tool, neither chosen by the turn itself nor reached later."""
    for name, state in states.items():
        if not isinstance(state, doc.Ask) or not state.degrade:
            continue
        path = _path_to_tool(states, name)
        if state.tools:
            chosen = ", ".join(f"`{tool}`" for tool in state.tools)
            message = f"this turn chooses a tool ({chosen}), and a salvaged output must never run one"
        elif path:
            end = "a tool" if isinstance(states[path[-1]], doc.Call) else "a child job, which may run tools"
            message = f"this turn leads to {end} ({' -> '.join(path)}), and a salvaged output must never run a tool"
        else:
            continue
        remedy = "remove `degrade`, or every path from here to a state with `tool` or `call`"
        yield Finding("degrade_before_tool", pointer(("states", name, "degrade")), message, remedy)


def _path_to_tool(states: States, start: str) -> list[str]:
    """A shortest path from a state to one that runs a tool, or a child job that may; empty if there is none."""
    came_from: dict[str, str] = {}
    queue = [start]
    for name in queue:  # grows as states are found
        if isinstance(states[name], doc.Call | doc.ChildWorkflow):
            path = [name]
            while path[-1] != start:
                path.append(came_from[path[-1]])
            return path[::-1]
        for _, target, _ in edges_of(name, states[name]):
            if target in states and target != start and target not in came_from:
                came_from[target] = name
                queue.append(target)
    return []


def nobody_else(document: doc.Workflow) -> Iterator[Finding]:
    """Waits for a second principal, which only exists if there are API keys."""
    for name, state in document.states.items():
        if isinstance(state, doc.Wait) and state.wait.by == "other":
            message = f"`{state.wait.signal}` must come from a second principal, and without API keys there is only one"
            remedy = "set STEPLADDER_API_KEYS, with one key to submit with and one to confirm with"
            yield Finding("nobody_else", pointer(("states", name, "wait", "by")), message, remedy, Severity.WARNING)
