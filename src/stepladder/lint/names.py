"""The names that templates and expressions read, checked against the states and schemas of the document."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from stepladder.lint.graph import closure, edges_of, successors
from stepladder.lint.members import Presence, member
from stepladder.schemas import document as doc
from stepladder.schemas.finding import Finding, Severity
from stepladder.schemas.pointer import pointer
from stepladder.workflows.machine import ERROR, EXHAUSTED, OK, TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from stepladder.schemas.jsontypes import Json

Name: TypeAlias = tuple[str, ...]
"""``("input",)``, ``("output",)``, or a root and a state: ``("turns", "usage")``."""

KINDS_BY_ROOT: dict[str, tuple[type, ...]] = {
    "turns": (doc.Ask,),
    "lists": (doc.Ask,),
    "tools": (doc.Call,),
    "calls": (doc.ChildWorkflow,),
    "errors": (doc.Call, doc.ChildWorkflow),
    "signals": (doc.Wait,),
    "visits": (doc.Ask, doc.Call, doc.Wait, doc.ChildWorkflow),
}


@dataclass(frozen=True, slots=True)
class Read:
    """A dotted path that a template or an expression reads, and the keys that lead to it in the document."""

    path: tuple[str, ...]
    where: tuple[str | int, ...]


def unknown_names(
    reads: Iterable[Read], allowed: tuple[str, ...], states: Mapping[str, doc.State]
) -> Iterator[Finding]:
    """Reads of a root that is not ``allowed``, or under a root of a state that never has a value there."""
    for read in reads:
        root, place = read.path[0], pointer(read.where)
        if root not in allowed:
            remedy = f"the names are {', '.join(allowed)}"
            yield Finding("unknown_name", place, f"there is no name `{root}` here", remedy)
        elif root in KINDS_BY_ROOT and len(read.path) > 1:
            held = [name for name, state in states.items() if _is_under(root, state)]
            if read.path[1] not in held:
                message = f"`{root}.{read.path[1]}` can never exist: `{root}` holds {', '.join(held) or 'nothing'}"
                yield Finding("unknown_name", place, message)


def _is_under(root: str, state: doc.State) -> bool:
    if root == "lists" and isinstance(state, doc.Ask):
        return state.each is not None
    return isinstance(state, KINDS_BY_ROOT[root])


def unknown_members(reads: Iterable[Read], schemas: Mapping[Name, Json]) -> Iterator[Finding]:
    """Reads of a member that the schema rules out (an error), or that looks misspelt (a warning).

    ``schemas`` has the schema of each name that has exactly one: if a turn chose among several tools, any may have run.
    """
    for read in reads:
        name = read.path[:2] if read.path[0] in KINDS_BY_ROOT else read.path[:1]
        if name == ("output",):
            name = ("turns", str(read.where[1]))
        members = read.path[2:] if read.path[0] in KINDS_BY_ROOT else read.path[1:]
        if name in schemas and members:
            yield from _unknown_member(read, schemas[name], members)


def _unknown_member(read: Read, schema: Json, members: tuple[str, ...]) -> Iterator[Finding]:
    found, path = member(schema, members), ".".join(read.path)
    beside = [name for name in found.beside if name != members[-1]]
    close = difflib.get_close_matches(members[-1], beside, n=1, cutoff=0.7)
    if found.presence is Presence.IMPOSSIBLE:
        message = f"`{path}` can never exist: the schema has no such member"
        remedy = f"its members are {', '.join(found.beside)}" if found.beside else "fix the name, or the schema"
        yield Finding("unknown_name", pointer(read.where), message, f"did you mean `{close[0]}`?" if close else remedy)
    elif found.presence is Presence.OPEN and close:
        message = f"the schema does not name `{path}`, but has a similar name"
        yield Finding("unknown_name", pointer(read.where), message, f"did you mean `{close[0]}`?", Severity.WARNING)


def too_early(reads: Iterable[Read], states: Mapping[str, doc.State]) -> Iterator[Finding]:
    """Reads of a state's result where no path leads from that state."""
    following = successors(states)
    seen: dict[Name, set[str]] = {}
    for read in reads:
        name = read.path[:2]
        if name[0] not in KINDS_BY_ROOT or len(name) < 2 or name[1] not in states or read.where[0] != "states":
            continue
        if name not in seen:
            seen[name] = closure(_after(name[0], name[1], states[name[1]]), following)
        if read.where[1] not in seen[name]:
            message = f"`{'.'.join(name)}` cannot exist yet: no path leads from `{name[1]}` here"
            remedy = "read another name, or add an edge"
            yield Finding("too_early", pointer(read.where), message, remedy, Severity.WARNING)


def _after(root: str, name: str, state: doc.State) -> set[str]:
    """The states that may follow once ``root.name`` exists."""
    match state:
        case doc.Ask():
            without = {EXHAUSTED, *state.on_failure}
        case doc.Call():
            without = {EXHAUSTED, OK if root == "errors" else ERROR}
        case doc.Wait():
            without = {TIMEOUT}
        case _:
            without = {EXHAUSTED}
    next_element = {name} if isinstance(state, doc.Ask) and state.each is not None else set()
    return next_element | {target for word, target, _ in edges_of(name, state) if word not in without}
