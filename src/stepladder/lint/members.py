"""What a schema says about a member of the values that fit it: ``team`` of ``{"properties": {"team": ...}}``."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from stepladder.lint.alternatives import MOST, Alternative, Alternatives, types_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stepladder.schemas.jsontypes import Json


class Standing(IntEnum):
    """IMPOSSIBLE: no value that fits has it. OPEN: the schema names other members and not this one, and forbids none.
    NAMED: it is among the members that may be there. UNDESCRIBED: the schema names no members at all."""

    IMPOSSIBLE = 0
    OPEN = 1
    NAMED = 2
    UNDESCRIBED = 3


def standing(schema: Json, path: Sequence[str], spend: Callable[[int], None]) -> Standing:
    """How a member stands, by the most favourable alternative of the schema. ``spend`` is called with the work done."""
    alternatives = Alternatives(schema, spend)
    parts: list[Any] = [schema]
    found = Standing.NAMED
    for step in path:
        ones = [one for part in parts for one in alternatives.of(part)]
        each = [_member(one, step) for one in ones[:MOST]]
        # Where alternatives were cut off, nothing can be called impossible.
        found = max((stands for stands, _ in each), default=Standing.IMPOSSIBLE if ones else Standing.UNDESCRIBED)
        if len(ones) >= MOST and found is Standing.IMPOSSIBLE:
            return Standing.UNDESCRIBED
        if found is not Standing.NAMED:
            return found
        parts = [part for stands, part in each if stands is Standing.NAMED]
    return found


def names_beside(schema: Json, path: Sequence[str], spend: Callable[[int], None]) -> list[str]:
    """The members that may stand where the last step of ``path`` looks, in the schema's order."""
    alternatives = Alternatives(schema, spend)
    parts: list[Any] = [schema]
    for step in path[:-1]:
        ones = [one for part in parts for one in alternatives.of(part)]
        parts = [part for stands, part in (_member(one, step) for one in ones[:MOST]) if stands is Standing.NAMED]
    ones = [one for part in parts for one in alternatives.of(part)]
    return list(dict.fromkeys(name for one in ones for name in one.schema.get("properties", ())))


def _member(one: Alternative, name: str) -> tuple[Standing, Any]:
    schema = one.schema
    if "const" in schema or "enum" in schema:
        values = [schema["const"]] if "const" in schema else schema["enum"]
        held = [value[name] for value in values if isinstance(value, Mapping) and name in value]
        return (Standing.NAMED, {"enum": held}) if held else (Standing.IMPOSSIBLE, None)
    if "object" not in types_of(schema):
        return Standing.IMPOSSIBLE, None
    named: Mapping[str, Any] = schema.get("properties", {})
    if name in named:
        return (Standing.IMPOSSIBLE, None) if named[name] is False else (Standing.NAMED, named[name])
    other = schema.get("additionalProperties", schema.get("unevaluatedProperties", True))
    if not schema.get("patternProperties") and other is False:
        return Standing.IMPOSSIBLE, None
    return (Standing.OPEN if named else Standing.UNDESCRIBED), None
