"""Checks of a machine's edges: every edge leads to a state, every state can reach an end, an action without a listed
transition is denied, and irreversible tools require prior human approval."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, assert_never

from stepladder.schemas import document as doc
from stepladder.schemas.finding import Finding, Severity
from stepladder.schemas.job import CHILDREN, SETTLEMENT, Failure
from stepladder.schemas.pointer import pointer
from stepladder.workflows.machine import ALWAYS, ERROR, EXHAUSTED, OK, TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stepladder.workflows.actions import Actions

MACHINE_WORDS = (ALWAYS, EXHAUSTED, TIMEOUT)
NEVER_A_TURNS = (Failure.TOOL_FAILED, Failure.PERMISSION_DENIED, Failure.REJECTED)


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


def check_targets(states: Mapping[str, doc.State], start: str) -> Iterator[Finding]:
    """Every edge leads to a state, every state can be reached, and from every state an end can be."""
    known = f"the states are {', '.join(states)}"
    astray = start not in states
    if astray:
        yield Finding("unknown_state", "/start", f"there is no state `{start}`", known)
    for name, state in states.items():
        for _, target, where in edges_of(name, state):
            if target not in states:
                astray = True
                yield Finding("unknown_state", where, f"there is no state `{target}`", known)
    if astray:  # reachability is worth reporting only once every edge leads somewhere
        return
    following = successors(states)
    reached = closure({start}, following)
    for name in states:
        if name not in reached:
            remedy = "lead an edge to it, or remove it"
            yield Finding("unreachable_state", pointer(("states", name)), f"no path leads from `{start}` here", remedy)
    preceding = {name: {one for one in states if name in following[one]} for name in states}
    ending = closure({name for name, state in states.items() if isinstance(state, doc.End)}, preceding)
    for name in states:
        if name not in ending:
            remedy = "lead an edge to a state with `end`"
            yield Finding("no_end", pointer(("states", name)), "no path leads from here to an end", remedy)


def successors(states: Mapping[str, doc.State]) -> dict[str, set[str]]:
    """The states that each state has an edge to."""
    return {
        name: {target for _, target, _ in edges_of(name, state) if target in states} for name, state in states.items()
    }


def closure(start: set[str], following: Mapping[str, set[str]]) -> set[str]:
    """``start`` and every state that can be reached from it."""
    reached, rest = set(start), list(start)
    while rest:
        for target in following.get(rest.pop(), set()) - reached:
            reached.add(target)
            rest.append(target)
    return reached


def check_ask_words(name: str, state: doc.Ask, actions: Actions) -> Iterator[Finding]:
    """An output with an action goes by words that it can say; one without has one edge."""
    where = pointer(("states", name, "next"))
    yield from check_exhausted(name, state)
    yield from check_failure_words(name, state)
    if actions.none:
        words = [] if isinstance(state.next, str) else [word for word in state.next if word not in (ALWAYS, EXHAUSTED)]
        if words:
            message = f"the output has no `action`, so it can never be {_words(words)}"
            remedy = "add a required `action` with an enum to the output, or write `next: STATE`"
            yield Finding("no_action", where, message, remedy)
        elif not isinstance(state.next, str) and ALWAYS not in state.next:
            remedy = f"write `next: STATE`, or `{ALWAYS}: STATE` beside `{EXHAUSTED}`"
            yield Finding("no_edge", where, "no edge leads on from an accepted answer", remedy)
        return
    if isinstance(state.next, str) or ALWAYS in state.next:
        message = "the output has an `action`, and this edge would be taken whatever it is"
        yield Finding("unconditional", where, message, "write one edge for each action: `next: {WORD: STATE}`")
        return
    if actions.absent:
        message = "`action` may be missing from the output or not be a string, and then no edge can be taken"
        remedy = "add `action` to `required`, with an enum of words"
        yield Finding("optional_action", pointer(("states", name, "output")), message, remedy)
    for word in actions.words:
        if word in MACHINE_WORDS:
            message = f"the action `{word}` is reserved for the machine"
            yield Finding("reserved_action", pointer(("states", name, "output")), message, "call it something else")
        elif word not in state.next:
            message = f"the action `{word}` has no edge, and would fail the job as transition_denied"
            remedy = f"add `{word}: STATE`, or remove the action from the output"
            yield Finding("word_without_edge", where, message, remedy, Severity.WARNING)
    for word in state.next:
        if word != EXHAUSTED and not actions.open and word not in actions.words:
            remedy = f"it can say {_words(actions.words)}"
            yield Finding(
                "impossible_word", f"{where}/{_escaped(word)}", f"no output can have the action `{word}`", remedy
            )


def check_failure_words(name: str, state: doc.Ask) -> Iterator[Finding]:
    for failure in state.on_failure:
        if failure in NEVER_A_TURNS:
            where = pointer(("states", name, "on_failure", failure.value))
            remedy = "remove it; a tool's errors go by the edge `error` of its own state"
            yield Finding("impossible_word", where, f"no turn fails as {failure.value}", remedy, Severity.WARNING)


def check_tool_words(name: str, state: doc.Call) -> Iterator[Finding]:
    where = pointer(("states", name, "next"))
    yield from check_exhausted(name, state)
    if OK not in state.next:
        yield Finding("no_edge", where, "no edge leads on from a result", f"add `{OK}: STATE`")
    for word in state.next:
        if word not in (OK, ERROR, EXHAUSTED):
            remedy = f"a tool goes by `{OK}` and `{ERROR}`"
            yield Finding("impossible_word", f"{where}/{_escaped(word)}", f"no tool ends with `{word}`", remedy)


def check_wait_words(name: str, state: doc.Wait, actions: Actions) -> Iterator[Finding]:
    where = pointer(("states", name, "next"))
    if state.wait.signal == CHILDREN:
        message = f"`{CHILDREN}` is the machine's own signal, for child jobs that are running"
        yield Finding(
            "reserved_signal", pointer(("states", name, "wait", "signal")), message, "call the signal something else"
        )
    if state.wait.signal == SETTLEMENT:
        message = f"`{SETTLEMENT}` is the machine's own signal, for tools that may or may not have taken effect"
        yield Finding(
            "reserved_signal", pointer(("states", name, "wait", "signal")), message, "call the signal something else"
        )
    if state.wait.timeout_s is not None and TIMEOUT not in state.next:
        yield Finding("no_edge", where, "the wait has `timeout_s` and no edge for it", f"add `{TIMEOUT}: STATE`")
    if state.wait.timeout_s is None and TIMEOUT in state.next:
        message = "this edge is never taken: the wait has no `timeout_s`"
        yield Finding(
            "impossible_word", f"{where}/{TIMEOUT}", message, "add `timeout_s` to the wait, or remove the edge"
        )
    words = [word for word in state.next if word != TIMEOUT]
    if not words:
        yield Finding("no_edge", where, "no edge leads on from a signal", "add one for each action of the signal")
    for word in words:
        if word in MACHINE_WORDS:
            yield Finding(
                "reserved_action",
                f"{where}/{word}",
                f"`{word}` is reserved for the machine",
                "call it something else",
            )
        elif state.wait.schema_ is not None and not actions.open and word not in actions.words:
            remedy = (
                f"its schema allows {_words(actions.words)}"
                if actions.words
                else "add a required `action` to its schema"
            )
            message = f"no signal can have the action `{word}`"
            yield Finding("impossible_word", f"{where}/{_escaped(word)}", message, remedy)


def check_irreversible(states: Mapping[str, doc.State], start: str, irreversible: set[str]) -> Iterator[Finding]:
    """Irreversible tools require prior human approval: only a wait leads into one, and not by its time-out."""
    remedy = "put a state with `wait` before it, and lead that wait's own action here"
    if start in irreversible:
        message = f"the job would start with the irreversible tool of `{start}`, unconfirmed"
        yield Finding("unconfirmed", "/start", message, remedy)
    for name, state in states.items():
        for word, target, where in edges_of(name, state):
            if target in irreversible and (not isinstance(state, doc.Wait) or word == TIMEOUT):
                message = f"`{target}` runs an irreversible tool, and no one confirms it on this edge"
                yield Finding("unconfirmed", where, message, remedy)


def check_degrade(states: Mapping[str, doc.State]) -> Iterator[Finding]:
    """A salvaged output may not lead to a tool, neither chosen by the turn itself nor reached later."""
    for name, state in states.items():
        if not isinstance(state, doc.Ask) or not state.degrade:
            continue
        path = _path_to_tool(states, name)
        if state.tools:
            message = f"this turn chooses a tool ({_words(state.tools)}), and a salvaged output must never run one"
        elif path is not None:
            end = "a tool" if isinstance(states[path[-1]], doc.Call) else "a child job, which may run tools"
            message = f"this turn leads to {end} ({' -> '.join(path)}), and a salvaged output must never run a tool"
        else:
            continue
        remedy = "remove `degrade`, or every path from here to a state with `tool` or `call`"
        yield Finding("degrade_before_tool", pointer(("states", name, "degrade")), message, remedy)


def _path_to_tool(states: Mapping[str, doc.State], start: str) -> tuple[str, ...] | None:
    """The shortest path of edges from a state to one that runs a tool, or a child job that may."""
    came_from: dict[str, str | None] = {start: None}
    waiting = deque([start])
    while waiting:
        name = waiting.popleft()
        if isinstance(states[name], doc.Call | doc.ChildWorkflow):
            path: list[str] = []
            here: str | None = name
            while here is not None:
                path.append(here)
                here = came_from[here]
            return tuple(reversed(path))
        for _, target, _ in edges_of(name, states[name]):
            if target in states and target not in came_from:
                came_from[target] = name
                waiting.append(target)
    return None


def check_exhausted(name: str, state: doc.Ask | doc.Call | doc.ChildWorkflow) -> Iterator[Finding]:
    where = pointer(("states", name, "next"))
    has = not isinstance(state.next, str) and EXHAUSTED in state.next
    if state.max_visits is not None and not has:
        message = "`max_visits` is set, and there is no edge for the visit after the last"
        yield Finding("no_edge", where, message, f"add `{EXHAUSTED}: STATE`")
    if state.max_visits is None and has:
        message = "this edge is never taken: the state has no `max_visits`"
        yield Finding("impossible_word", f"{where}/{EXHAUSTED}", message, "add `max_visits: N`, or remove the edge")


def _words(words: Iterator[str] | list[str] | tuple[str, ...]) -> str:
    return ", ".join(f"`{word}`" for word in words) or "nothing"


def _escaped(word: str) -> str:
    return pointer((word,))[1:]
