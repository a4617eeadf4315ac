"""Whether valid values can have a member, such as ``team`` under ``{"properties": {"team": ...}}``."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from stepladder.lint.alternatives import MOST, Alternative, Alternatives, types_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stepladder.schemas.jsontypes import Json


class Presence(IntEnum):
    """IMPOSSIBLE: no valid value has it. OPEN: the schema names other members only, and allows more. NAMED: the schema
    names it. UNDESCRIBED: the schema names no members at all."""

    IMPOSSIBLE = 0
    OPEN = 1
    NAMED = 2
    UNDESCRIBED = 3


def presence(schema: Json, path: Sequence[str], spend: Callable[[int], None]) -> Presence:
    """By the most favourable alternative of the schema. ``spend`` is called with the work done."""
    alternatives = Alternatives(schema, spend)
    parts: list[Any] = [schema]
    found = Presence.NAMED
    for step in path:
        ones = [one for part in parts for one in alternatives.of(part)]
        each = [_member(one, step) for one in ones[:MOST]]
        # An alternative that was cut off might have it.
        found = max((has for has, _ in each), default=Presence.IMPOSSIBLE if ones else Presence.UNDESCRIBED)
        if len(ones) >= MOST and found is Presence.IMPOSSIBLE:
            return Presence.UNDESCRIBED
        if found is not Presence.NAMED:
            return found
        parts = [part for has, part in each if has is Presence.NAMED]
    return found


def names_beside(schema: Json, path: Sequence[str], spend: Callable[[int], None]) -> list[str]:
    """The members that the schema names beside the last one of ``path``, in its order."""
    alternatives = Alternatives(schema, spend)
    parts: list[Any] = [schema]
    for step in path[:-1]:
        ones = [one for part in parts for one in alternatives.of(part)]
        parts = [part for has, part in (_member(one, step) for one in ones[:MOST]) if has is Presence.NAMED]
    ones = [one for part in parts for one in alternatives.of(part)]
    return list(dict.fromkeys(name for one in ones for name in one.schema.get("properties", ())))


def _member(one: Alternative, name: str) -> tuple[Presence, Any]:
    schema = one.schema
    if "const" in schema or "enum" in schema:
        values = [schema["const"]] if "const" in schema else schema["enum"]
        held = [value[name] for value in values if isinstance(value, Mapping) and name in value]
        return (Presence.NAMED, {"enum": held}) if held else (Presence.IMPOSSIBLE, None)
    if "object" not in types_of(schema):
        return Presence.IMPOSSIBLE, None
    named: Mapping[str, Any] = schema.get("properties", {})
    if name in named:
        return (Presence.IMPOSSIBLE, None) if named[name] is False else (Presence.NAMED, named[name])
    other = schema.get("additionalProperties", schema.get("unevaluatedProperties", True))
    if not schema.get("patternProperties") and other is False:
        return Presence.IMPOSSIBLE, None
    return (Presence.OPEN if named else Presence.UNDESCRIBED), None
