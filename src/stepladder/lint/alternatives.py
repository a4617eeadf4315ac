"""A schema taken apart: each way in which a value can fit it, as one schema without references and branches.

``$ref``, ``allOf``, ``anyOf``, ``oneOf`` and ``if`` are followed and merged, where merging is simple. ``not`` and what
lies deeper is passed over: whoever makes a value of this checks it against the whole schema.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stepladder.schemas.pointer import value_at
from stepladder.validation.subschemas import REFERENCES, Subschemas, references

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MOST = 64
"""Ways that are looked at of one schema, of which a union of two unions has the product."""
TYPES = ("object", "array", "string", "number", "boolean", "null")
_DEEPEST = 40
_BRANCHING = (*REFERENCES, "$defs", "definitions", "allOf", "anyOf", "oneOf", "if", "then", "else")
_HIGHEST = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains")
_LOWEST = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains")
_NESTED = ("items", "additionalProperties", "propertyNames", "contains", "unevaluatedProperties", "unevaluatedItems")
_HINTS = {
    "object": ("properties", "required", "additionalProperties", "patternProperties", "minProperties"),
    "array": ("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"),
    "string": ("pattern", "format", "minLength", "maxLength"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}


@dataclass(frozen=True, slots=True)
class Way:
    """``schema`` holds for the value in its own right; ``trail`` are the references that led to it, oldest first."""

    schema: Mapping[str, Any]
    trail: tuple[str, ...] = ()


class Alternatives:
    """The ways of one schema document's parts. ``spend`` is told of every schema that is looked at."""

    def __init__(self, root: Any, spend: Callable[[int], None]) -> None:
        self._subschemas = Subschemas(root)
        self._spend = spend

    def of(self, schema: Any, trail: tuple[str, ...] = (), recursions: int = 1) -> list[Way]:
        """At most ``MOST`` ways. A reference that already stands ``recursions`` times on the trail leads nowhere."""
        return [Way(way.schema, (*trail, *way.trail)) for way in self._ways(schema, trail, recursions, 0)]

    def _ways(self, schema: Any, trail: tuple[str, ...], recursions: int, depth: int) -> list[Way]:
        self._spend(1)
        if not isinstance(schema, Mapping):
            return [] if schema is False else [Way({})]
        if depth > _DEEPEST:
            return []
        ways = [Way({name: value for name, value in schema.items() if name not in _BRANCHING})]
        for target in references(schema).values():
            path = self._subschemas.target(target)
            if path is None or trail.count(target) >= recursions:
                return []
            inner = self._ways(value_at(self._subschemas.root, path), (*trail, target), recursions, depth + 1)
            ways = self._both(ways, [Way(way.schema, (target, *way.trail)) for way in inner])
        for branch in schema.get("allOf", ()):
            ways = self._both(ways, self._ways(branch, trail, recursions, depth + 1))
        for word in ("anyOf", "oneOf"):
            if word in schema:
                each = [self._ways(branch, trail, recursions, depth + 1) for branch in schema[word][:MOST]]
                ways = self._both(ways, list(_in_turn(each)))
        if "if" in schema:
            then = {"allOf": [schema["if"], schema.get("then", True)]}
            each = [self._ways(one, trail, recursions, depth + 1) for one in (then, schema.get("else", True))]
            ways = self._both(ways, list(_in_turn(each)))
        return ways

    def _both(self, ones: Sequence[Way], others: Sequence[Way]) -> list[Way]:
        found: list[Way] = []
        for one in ones:
            for other in others:
                self._spend(1 + (len(one.schema) + len(other.schema)) // 4)
                merged = _merged(one.schema, other.schema)
                if merged is not None:
                    found.append(Way(merged, (*one.trail, *other.trail)))
                if len(found) >= MOST:
                    return found
        return found


def _in_turn(each: Sequence[Sequence[Way]]) -> Iterator[Way]:
    """The first of each branch, then the second of each: a bound leaves out no branch before another's last way."""
    for index in range(max(map(len, each), default=0)):
        yield from (ways[index] for ways in each if index < len(ways))


def types_of(schema: Mapping[str, Any]) -> list[str]:
    """The types that a value can have, the likeliest first."""
    named = schema.get("type")
    if isinstance(named, str):
        return [named]
    if named is not None:
        return [word for word in (*TYPES, "integer") if word in named]
    return sorted(TYPES, key=lambda word: not any(hint in schema for hint in _HINTS.get(word, ())))


def _merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """One schema that says what both say; None where nothing can fit both."""
    if not one or not other:
        return one or other
    merged = dict(one)
    for word, value in other.items():
        if word not in merged:
            merged[word] = value
            continue
        mine = merged[word]
        if word in ("properties", "patternProperties"):
            merged[word] = dict(mine) | {
                name: {"allOf": [mine[name], part]} if name in mine else part for name, part in value.items()
            }
        elif word == "required":
            merged[word] = list(dict.fromkeys([*mine, *value]))
        elif word == "enum":
            merged[word] = [item for item in mine if item in value]
        elif word == "type":
            merged[word] = _common(mine, value)
        elif word in _HIGHEST:
            merged[word] = max(mine, value)
        elif word in _LOWEST:
            merged[word] = min(mine, value)
        elif word in _NESTED:
            merged[word] = {"allOf": [mine, value]}
        elif word == "uniqueItems":
            merged[word] = mine or value
        elif word == "const" and mine != value:
            return None
    return None if merged.get("type") == [] or merged.get("enum") == [] else merged


def _common(one: str | Sequence[str], other: str | Sequence[str]) -> list[str]:
    ones = [one] if isinstance(one, str) else one
    others = [other] if isinstance(other, str) else other
    common = [word for word in ones if word in others]
    if "integer" not in common and "number" not in common and {"integer", "number"} <= {*ones, *others}:
        common.append("integer")
    return common
