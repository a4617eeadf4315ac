"""Two JSON values side by side: what was added, removed and changed, each by its JSON pointer.

A number has no type in JSON: 36 and 36.0 are the same. A list in which something was put in or taken out is laid
beside the other one first, so that what follows is no change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from stepladder.schemas.canonical import identity
from stepladder.schemas.pointer import pointer

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from stepladder.schemas.jsontypes import Json, JsonObject
    from stepladder.schemas.pointer import Path

MOST_PAIRS = 250_000
"""Pairs of items of two lists that are looked at; lists of more are laid beside each other by their indexes."""


class Kind(StrEnum):
    """What became of a value."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class Change:
    """One place. ``pointer`` leads into the first value for what was removed, and into the second for the rest."""

    kind: Kind
    pointer: str
    was: Json = None
    now: Json = None

    def as_json(self) -> JsonObject:
        """In the words of the HTTP API: ``was`` where something was removed, ``now`` where something was added."""
        sides: dict[str, Json] = {}
        if self.kind is not Kind.ADDED:
            sides["was"] = self.was
        if self.kind is not Kind.REMOVED:
            sides["now"] = self.now
        return {"kind": self.kind.value, "pointer": self.pointer, **sides}


def difference(was: Json, now: Json) -> tuple[Change, ...]:
    """Empty where the two are the same JSON value; the order of an object's names counts for nothing."""
    return tuple(_differ(was, now, (), ()))


def _differ(was: Any, now: Any, before: Path, after: Path) -> Iterator[Change]:
    if isinstance(was, Mapping) and isinstance(now, Mapping):
        for name, item in was.items():
            if name in now:
                yield from _differ(item, now[name], (*before, name), (*after, name))
            else:
                yield Change(Kind.REMOVED, pointer((*before, name)), was=item)
        for name, item in now.items():
            if name not in was:
                yield Change(Kind.ADDED, pointer((*after, name)), now=item)
    elif isinstance(was, list | tuple) and isinstance(now, list | tuple):
        yield from _differ_lists(was, now, before, after)
    elif identity(was) != identity(now):
        yield Change(Kind.CHANGED, pointer(after), was, now)


def _differ_lists(was: Sequence[Any], now: Sequence[Any], before: Path, after: Path) -> Iterator[Change]:
    for here, there in _beside([identity(item) for item in was], [identity(item) for item in now]):
        if there is None:
            yield Change(Kind.REMOVED, pointer((*before, here or 0)), was=was[here or 0])
        elif here is None:
            yield Change(Kind.ADDED, pointer((*after, there)), now=now[there])
        else:
            yield from _differ(was[here], now[there], (*before, here), (*after, there))


def _beside(was: Sequence[Hashable], now: Sequence[Hashable]) -> Iterator[tuple[int | None, int | None]]:
    """The indexes that belong together; None is on the side that has nothing there."""
    blocks = [("replace", 0, len(was), 0, len(now))]
    if len(was) != len(now) and len(was) * len(now) <= MOST_PAIRS:
        blocks = list(SequenceMatcher(None, was, now, autojunk=False).get_opcodes())
    for _, here, here_end, there, there_end in blocks:
        both = min(here_end - here, there_end - there)
        yield from ((here + step, there + step) for step in range(both))
        yield from ((left, None) for left in range(here + both, here_end))
        yield from ((None, right) for right in range(there + both, there_end))
