"""The words that the edges of one state are keyed by: each one possible, and none missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepladder.schemas import document as doc
from stepladder.schemas.finding import Finding, Severity
from stepladder.schemas.job import CHILDREN, SETTLEMENT, Failure
from stepladder.schemas.pointer import pointer
from stepladder.workflows.machine import ALWAYS, ERROR, EXHAUSTED, OK, TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from stepladder.lint.actions import Actions

MACHINE_WORDS = (ALWAYS, EXHAUSTED, TIMEOUT)
MACHINE_SIGNALS = {
    CHILDREN: "for child jobs that are running",
    SETTLEMENT: "for tools that may or may not have taken effect",
}
NO_TURN_FAILS_AS = (Failure.TOOL_FAILED, Failure.PERMISSION_DENIED, Failure.REJECTED)
RENAME = "use another word"


def next_of(state: doc.Ask) -> Mapping[str, str]:
    """The edges of a turn by word; a single edge is ``always``."""
    return {ALWAYS: state.next} if isinstance(state.next, str) else state.next


def check_ask(name: str, state: doc.Ask, actions: Actions) -> Iterator[Finding]:
    """``actions`` are those of the turn's output."""
    for failure in state.on_failure:
        if failure in NO_TURN_FAILS_AS:
            where = pointer(("states", name, "on_failure", failure.value))
            remedy = "remove it; a tool's errors take the edge `error` of its own state"
            message = f"a turn never fails as {failure.value}"
            yield Finding("impossible_word", where, message, remedy, Severity.WARNING)
    if state.each is not None:
        yield from _check_list(name, state, state.each, actions)
        return
    yield from _check_max_visits(name, state)
    if actions.none:
        yield from _check_without_action(name, state)
    elif ALWAYS in next_of(state):
        message = "the output has an `action`, and this edge would be taken whatever it is"
        yield Finding("unconditional", _next(name), message, "write one edge for each action: `next: {WORD: STATE}`")
    else:
        yield from _check_actions(name, state, actions)


def _check_without_action(name: str, state: doc.Ask) -> Iterator[Finding]:
    edges = next_of(state)
    if words := [word for word in edges if word not in (ALWAYS, EXHAUSTED)]:
        message = f"the output has no `action`, so it can never be {_quoted(words)}"
        remedy = "add a required `action` with an enum to the output, or write `next: STATE`"
        yield Finding("no_action", _next(name), message, remedy)
    elif ALWAYS not in edges:
        yield _missing(name, "an accepted answer", f"write `next: STATE`, or `{ALWAYS}: STATE` beside `{EXHAUSTED}`")


def _check_actions(name: str, state: doc.Ask, actions: Actions) -> Iterator[Finding]:
    edges, output = next_of(state), pointer(("states", name, "output"))
    if actions.absent:
        yield _optional_action(output)
    for word in actions.words:
        if word in MACHINE_WORDS:
            yield Finding("reserved_action", output, f"the action `{word}` is reserved for the machine", RENAME)
        elif word not in edges:
            message = f"the action `{word}` has no edge, and would fail the job as transition_denied"
            remedy = f"add `{word}: STATE`, or remove the action from the output"
            yield Finding("word_without_edge", _next(name), message, remedy, Severity.WARNING)
    for word in edges:
        if word != EXHAUSTED and not actions.open and word not in actions.words:
            remedy = f"its actions are {_quoted(actions.words)}"
            yield _impossible(name, word, f"the output can never have the action `{word}`", remedy)


def _check_list(name: str, state: doc.Ask, each: doc.Each, actions: Actions) -> Iterator[Finding]:
    """A turn with ``each`` has one edge for its complete list, and ``exhausted`` where it may stop before that."""
    edges = next_of(state)
    wanted = [ALWAYS if each.until is None else each.until]
    if each.until is not None or state.max_visits is not None:
        wanted.append(EXHAUSTED)
    if each.until is not None:
        yield from _check_until(name, each.until, actions)
    for word in wanted:
        if word not in edges:
            remedy = f"add `{word}: STATE`" if len(wanted) > 1 else "write `next: STATE`"
            yield _missing(name, f"a list that ends with `{word}`", remedy)
    for word in edges:
        if word not in wanted:
            message = f"a list never ends with `{word}`: any other answer is an element"
            remedy = f"it ends with {' or '.join(f'`{one}`' for one in wanted)}"
            where = _next(name) if isinstance(state.next, str) else _next(name, word)
            yield Finding("impossible_word", where, message, remedy)


def _check_until(name: str, until: str, actions: Actions) -> Iterator[Finding]:
    where = pointer(("states", name, "each", "until"))
    if until in MACHINE_WORDS:
        yield Finding("reserved_action", where, f"the action `{until}` is reserved for the machine", RENAME)
    elif not actions.open and until not in actions.words:
        remedy = f"its actions are {_quoted(actions.words)}; add `{until}` to the enum of `action`"
        yield Finding("impossible_word", where, f"the output can never have the action `{until}`", remedy)
    elif actions.absent:
        yield _optional_action(pointer(("states", name, "output")))


def check_call(name: str, state: doc.Call | doc.ChildWorkflow) -> Iterator[Finding]:
    """A tool needs an edge for its result; a call of another workflow one for success and one for failure."""
    yield from _check_max_visits(name, state)
    if isinstance(state, doc.Call):
        kind, required = "tool", {OK: "a result"}
    else:
        kind, required = "call", {OK: "child jobs that succeeded", ERROR: "a child job that failed"}
    for word, after in required.items():
        if word not in state.next:
            yield _missing(name, after, f"add `{word}: STATE`")
    for word in state.next:
        if word not in (OK, ERROR, EXHAUSTED):
            yield _impossible(name, word, f"a {kind} never ends with `{word}`", f"it ends with `{OK}` or `{ERROR}`")


def check_wait(name: str, state: doc.Wait, actions: Actions) -> Iterator[Finding]:
    """``actions`` are those that the signal's schema allows."""
    wait = state.wait
    if wait.signal in MACHINE_SIGNALS:
        message = f"the signal `{wait.signal}` is reserved for the machine, {MACHINE_SIGNALS[wait.signal]}"
        yield Finding("reserved_signal", pointer(("states", name, "wait", "signal")), message, RENAME)
    if wait.timeout_s is not None and TIMEOUT not in state.next:
        yield _missing(name, "the timeout that `timeout_s` sets", f"add `{TIMEOUT}: STATE`")
    if wait.timeout_s is None and TIMEOUT in state.next:
        message = "this edge is never taken: the wait has no `timeout_s`"
        yield _impossible(name, TIMEOUT, message, "add `timeout_s` to the wait, or remove the edge")
    words = [word for word in state.next if word != TIMEOUT]
    if not words:
        yield _missing(name, "a signal", "add one for each action of the signal")
    for word in words:
        if word in MACHINE_WORDS:
            yield Finding("reserved_action", _next(name, word), f"`{word}` is reserved for the machine", RENAME)
        elif wait.schema_ is not None and not actions.open and word not in actions.words:
            allowed = f"its schema allows {_quoted(actions.words)}"
            remedy = allowed if actions.words else "add a required `action` to its schema"
            yield _impossible(name, word, f"the signal can never have the action `{word}`", remedy)


def _check_max_visits(name: str, state: doc.Ask | doc.Call | doc.ChildWorkflow) -> Iterator[Finding]:
    has_edge = not isinstance(state.next, str) and EXHAUSTED in state.next
    if state.max_visits is not None and not has_edge:
        yield _missing(name, "a visit beyond `max_visits`", f"add `{EXHAUSTED}: STATE`")
    if state.max_visits is None and has_edge:
        message = "this edge is never taken: the state has no `max_visits`"
        yield _impossible(name, EXHAUSTED, message, "add `max_visits: N`, or remove the edge")


def _next(name: str, *word: str) -> str:
    return pointer(("states", name, "next", *word))


def _missing(name: str, after: str, remedy: str) -> Finding:
    return Finding("no_edge", _next(name), f"there is no edge for {after}", remedy)


def _impossible(name: str, word: str, message: str, remedy: str) -> Finding:
    return Finding("impossible_word", _next(name, word), message, remedy)


def _optional_action(output: str) -> Finding:
    message = "`action` may be missing from the output or not be a string, and then no edge can be taken"
    return Finding("optional_action", output, message, "add `action` to `required`, with an enum of words")


def _quoted(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words) or "none"
