"""Two JSON values compared: what was added, removed and changed, each by its JSON pointer.

A number has no type in JSON: 36 and 36.0 are the same. Lists are aligned first, so that an inserted or removed item
does not change those after it. (jsonpatch aligns no lists, deepdiff has no JSON pointers, and both compare by Python's
types.)
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

from stepladder.schemas.canonical import identity
from stepladder.schemas.diff import Change
from stepladder.schemas.pointer import pointer

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from stepladder.schemas.jsontypes import Json

MAX_PAIRS = 250_000
"""Pairs of list items that are compared; longer lists are aligned by their indexes."""

Path = tuple[str | int, ...]


def difference(was: Json, now: Json) -> list[Change]:
    """Empty if the two are the same JSON value; the order of an object's names does not matter."""
    return list(_differ(was, now, (), ()))


def _differ(was: Any, now: Any, before: Path, after: Path) -> Iterator[Change]:
    if isinstance(was, Mapping) and isinstance(now, Mapping):
        pairs = [(name, name if name in now else None) for name in was]
        yield from _differ_items(was, now, [*pairs, *((None, name) for name in now if name not in was)], before, after)
    elif isinstance(was, list | tuple) and isinstance(now, list | tuple):
        indexes = _aligned([identity(item) for item in was], [identity(item) for item in now])
        yield from _differ_items(was, now, indexes, before, after)
    elif identity(was) != identity(now):
        yield Change(kind="changed", pointer=pointer(after), was=was, now=now)


def _differ_items(was: Any, now: Any, pairs: Any, before: Path, after: Path) -> Iterator[Change]:
    """``pairs`` are names or indexes that belong together, None for the side that lacks one."""
    for here, there in pairs:
        if there is None:
            yield Change(kind="removed", pointer=pointer((*before, here)), was=was[here])
        elif here is None:
            yield Change(kind="added", pointer=pointer((*after, there)), now=now[there])
        else:
            yield from _differ(was[here], now[there], (*before, here), (*after, there))


def _aligned(was: Sequence[Hashable], now: Sequence[Hashable]) -> Iterator[tuple[int | None, int | None]]:
    blocks = [("replace", 0, len(was), 0, len(now))]
    if len(was) != len(now) and len(was) * len(now) <= MAX_PAIRS:
        blocks = list(SequenceMatcher(None, was, now, autojunk=False).get_opcodes())
    for _, here, here_end, there, there_end in blocks:
        both = min(here_end - here, there_end - there)
        yield from ((here + step, there + step) for step in range(both))
        yield from ((left, None) for left in range(here + both, here_end))
        yield from ((None, right) for right in range(there + both, there_end))
