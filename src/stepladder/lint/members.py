"""Whether valid values can have a member, such as ``team`` under ``{"properties": {"team": ...}}``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from stepladder.lint.values import MOST, Part, SpentError, Value, Values, Work

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepladder.schemas.jsontypes import Json

_WORK = 10_000  # schemas visited for one name


class Presence(IntEnum):
    """IMPOSSIBLE: no valid value has it. OPEN: the schema names other members only, and allows more. NAMED: the schema
    names it. UNDESCRIBED: the schema names no members at all, or is too large to tell."""

    IMPOSSIBLE = 0
    OPEN = 1
    NAMED = 2
    UNDESCRIBED = 3


@dataclass(frozen=True, slots=True)
class Member:
    """``beside`` are the names that the schema has in the same place."""

    presence: Presence
    beside: tuple[str, ...] = ()


def member(schema: Json, path: Sequence[str]) -> Member:
    """What ``schema`` says about the member at ``path``, by its most favourable alternative."""
    try:
        return _member(Values(schema, Work(_WORK).spend), path)
    except SpentError:
        return Member(Presence.UNDESCRIBED)


def _member(values: Values, path: Sequence[str]) -> Member:
    places: list[list[Part]] = [[values.root]]
    found = Member(Presence.NAMED)
    for depth, step in enumerate(path, 1):
        ones = [one for place in places for one in values.of(place)]
        each = [_in(one, step) for one in ones[:MOST]]
        found_here = max((has for has, _ in each), default=Presence.IMPOSSIBLE if ones else Presence.UNDESCRIBED)
        if len(ones) >= MOST and found_here is Presence.IMPOSSIBLE:  # one that was cut off might have it
            found_here = Presence.UNDESCRIBED
        beside = dict.fromkeys(name for one in ones for name in one.members) if depth == len(path) else ()
        found = Member(found_here, tuple(beside))
        if found_here is not Presence.NAMED:
            break
        places = [parts for has, parts in each if has is Presence.NAMED]
    return found


def _in(value: Value, name: str) -> tuple[Presence, list[Part]]:
    if value.listed is not None:
        held = [one[name] for one in value.listed if isinstance(one, Mapping) and name in one]
        return (Presence.NAMED, [((), {"enum": held})]) if held else (Presence.IMPOSSIBLE, [])
    if "object" not in value.likely_types:
        return Presence.IMPOSSIBLE, []
    parts = value.member(name)
    closed = any(schema is False for _, schema in parts)
    if name in value.members:
        return (Presence.IMPOSSIBLE, []) if closed else (Presence.NAMED, parts)
    if closed and not value.has("patternProperties"):
        return Presence.IMPOSSIBLE, []
    return (Presence.OPEN if value.members else Presence.UNDESCRIBED), []
