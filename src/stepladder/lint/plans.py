"""Checks of ``each`` and ``call`` beyond their shape, and the plans that the machine runs by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepladder.lint import graph
from stepladder.lint.alternatives import SpentError, Work
from stepladder.lint.members import Standing, names_beside, standing
from stepladder.schemas import document as doc
from stepladder.schemas.finding import Finding, Severity
from stepladder.schemas.pointer import pointer, pointer_steps
from stepladder.workflows.lists import UNIQUE
from stepladder.workflows.machine import ALWAYS, ERROR, EXHAUSTED, OK, ChildState, ListPlan
from stepladder.workflows.names import EACH, ROOTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stepladder.lint.pieces import Pieces
    from stepladder.schemas.jsontypes import Json
    from stepladder.workflows.actions import Actions

IN_LIST = ("index", "count", "item", "elements")
IN_CALL = ("index", "count", "item")


def list_plan(pieces: Pieces, name: str, state: doc.Ask, actions: Actions, root: Json) -> ListPlan | None:
    """The plan of a turn with ``each``, whose output has the schema ``root``; None without one."""
    each, where = state.each, ("states", name, "each")
    if each is None:
        return None
    if state.tools:
        message = "a turn that chooses a tool cannot build a list"
        remedy = "build the list first, and let another turn choose"
        pieces.find("each_with_tools", ("states", name, "tools"), message, remedy)
    most = pieces.document.limits.max_turns
    if each.at_most > most:
        message = f"a list of {each.at_most} elements takes as many turns, and limits.max_turns is {most}"
        place = pointer((*where, "at_most"))
        pieces.findings.append(
            Finding("list_beyond_max_turns", place, message, "raise limits.max_turns", Severity.WARNING)
        )
    if each.unique and any(rule.id == UNIQUE for rule in state.rules):
        message = f"the rule id `{UNIQUE}` is that of `each.unique`"
        pieces.find("rule_twice", ("states", name, "rules"), message, "give each its own")
    pieces.findings.extend(graph.check_failure_words(name, state))
    pieces.findings.extend(_list_words(name, state, each, actions))
    pieces.findings.extend(_members(name, each, root))
    return ListPlan(
        over=None if each.over is None else pieces.expression(each.over, (*where, "over")),
        count=None if each.count is None else pieces.expression(each.count, (*where, "count")),
        until=each.until,
        at_most=each.at_most,
        unique=tuple(each.unique),
    )


def list_roots(state: doc.Ask) -> tuple[str, ...]:
    """The names that the question and the rules of a turn may begin with."""
    return ROOTS if state.each is None else (*ROOTS, EACH)


def check_each_names(pieces: Pieces, state: str, spec: doc.Ask | doc.ChildWorkflow) -> None:
    """That ``each`` has what is read of it. An ``item`` exists only where the list is built over something."""
    if spec.each is None:
        return
    known: tuple[str, ...] = IN_CALL if isinstance(spec, doc.ChildWorkflow) else IN_LIST
    if spec.each.over is None:
        known = tuple(word for word in known if word != "item")
    for read in pieces.reads:
        if read.where[:2] == ("states", state) and read.path[0] == EACH and read.path[1:] and read.path[1] not in known:
            message = f"`{EACH}.{read.path[1]}` can never exist: `{EACH}` holds {', '.join(known)}"
            pieces.find("unknown_name", read.where, message)


def _list_words(name: str, state: doc.Ask, each: doc.Each, actions: Actions) -> Iterator[Finding]:
    where = pointer(("states", name, "next"))
    edges = {ALWAYS: state.next} if isinstance(state.next, str) else state.next
    ending = ALWAYS if each.until is None else each.until
    wanted = [ending] if each.until is None else [ending, EXHAUSTED]
    if each.until is not None:
        yield from _ending(name, each.until, actions)
    if state.max_visits is not None and EXHAUSTED not in wanted:
        wanted.append(EXHAUSTED)
    for word in wanted:
        if word not in edges:
            remedy = f"add `{word}: STATE`" if len(wanted) > 1 else "write `next: STATE`"
            yield Finding("no_edge", where, f"no edge says where a list goes that ends by `{word}`", remedy)
    for word in edges:
        if word not in wanted:
            message = f"a list is never left by `{word}`: its other answers are elements"
            remedy = f"it is left by {' and '.join(f'`{one}`' for one in wanted)}"
            place = where if isinstance(state.next, str) else where + pointer((word,))
            yield Finding("impossible_word", place, message, remedy)


def _ending(name: str, until: str, actions: Actions) -> Iterator[Finding]:
    place, output = pointer(("states", name, "each", "until")), pointer(("states", name, "output"))
    if until in graph.MACHINE_WORDS:
        yield Finding(
            "reserved_action", place, f"the action `{until}` is reserved for the machine", "call it something else"
        )
    elif not actions.open and until not in actions.words:
        said = ", ".join(f"`{word}`" for word in actions.words) or "no action at all"
        remedy = f"it can say {said}; add `{until}` to the enum of `action`"
        yield Finding("impossible_word", place, f"no output can have the action `{until}`", remedy)
    elif actions.absent:
        message = "`action` may be missing from the output or be no text, and then its meaning is unknown"
        yield Finding("optional_action", output, message, "add `action` to `required`, with an enum of words")


def _members(name: str, each: doc.Each, root: Json) -> Iterator[Finding]:
    for index, at in enumerate(each.unique):
        path = pointer_steps(at)
        if any(step.isdecimal() for step in path):
            continue  # of a list's own elements little is known
        try:
            impossible = standing(root, path, Work(1_000).spend) is Standing.IMPOSSIBLE
            beside = names_beside(root, path, Work(10_000).spend) if impossible else []
        except SpentError:
            continue
        if impossible:
            place = pointer(("states", name, "each", "unique", index))
            remedy = f"its members are {', '.join(beside)}" if beside else "fix the pointer, or the schema"
            yield Finding("unknown_member", place, f"no element can have `{at}`", remedy)


def child_state(pieces: Pieces, name: str, state: doc.ChildWorkflow) -> ChildState:
    """The state of a call. Whether its workflow is published is for the moment at which it starts."""
    where = ("states", name)
    pieces.findings.extend(_call_words(name, state))
    each = state.each
    roots = ROOTS if each is None else (*ROOTS, EACH)
    inputs = {} if state.input is None else pieces.shape(state.input, (*where, "input"), roots)
    over = None if each is None else pieces.expression(each.over, (*where, "each", "over"))
    check_each_names(pieces, name, state)
    return ChildState(
        name=name,
        workflow=state.call,
        version=state.version,
        inputs={} if inputs is None else inputs,
        over=over,
        at_most=1 if each is None else each.at_most,
        concurrency=1 if each is None else each.concurrency,
        collect=each is not None and each.failures == "collect",
        edges={word: target for word, target in state.next.items() if word != EXHAUSTED},
        max_visits=state.max_visits,
        exhausted=state.next.get(EXHAUSTED),
    )


def _call_words(name: str, state: doc.ChildWorkflow) -> Iterator[Finding]:
    yield from graph.check_exhausted(name, state)
    where = pointer(("states", name, "next"))
    for word, when in ((OK, "its children have succeeded"), (ERROR, "one has not")):
        if word not in state.next:
            yield Finding("no_edge", where, f"no edge leads on from the call when {when}", f"add `{word}: STATE`")
    yield from _strange(state.next, where)


def _strange(words: Iterable[str], where: str) -> Iterator[Finding]:
    for word in words:
        if word not in (OK, ERROR, EXHAUSTED):
            remedy = f"a call goes by `{OK}` and `{ERROR}`"
            yield Finding("impossible_word", where + pointer((word,)), f"no call ends with `{word}`", remedy)
