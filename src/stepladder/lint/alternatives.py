"""The alternatives that a schema allows, each as one schema without references and branches.

``$ref``, ``allOf``, ``anyOf``, ``oneOf`` and ``if`` are followed and merged, where merging is simple. ``not`` and
deeper schemas are ignored: callers that build a value validate it against the whole schema.
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
"""The maximum for one schema; the alternatives of an ``allOf`` of unions multiply."""
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


class SpentError(Exception):
    """The allowed work is used up without a result."""


@dataclass(slots=True)
class Work:
    """The work that is left: about one for each schema visited."""

    left: int

    def spend(self, amount: int) -> None:
        self.left -= amount
        if self.left < 0:
            raise SpentError


@dataclass(frozen=True, slots=True)
class Alternative:
    """``trail`` holds the references that led to ``schema``, oldest first."""

    schema: Mapping[str, Any]
    trail: tuple[str, ...] = ()


class Alternatives:
    """The alternatives of each part of one schema document. ``spend`` is called for every schema visited."""

    def __init__(self, root: Any, spend: Callable[[int], None]) -> None:
        self._subschemas = Subschemas(root)
        self._spend = spend

    def of(self, schema: Any, trail: tuple[str, ...] = ()) -> list[Alternative]:
        """At most ``MOST``. A reference that is already on the trail is not followed again."""
        return [Alternative(one.schema, (*trail, *one.trail)) for one in self._of(schema, trail, 0)]

    def _of(self, schema: Any, trail: tuple[str, ...], depth: int) -> list[Alternative]:
        self._spend(1)
        if not isinstance(schema, Mapping):
            return [] if schema is False else [Alternative({})]
        if depth > _DEEPEST:
            return []
        found = [Alternative({name: value for name, value in schema.items() if name not in _BRANCHING})]
        for target in references(schema).values():
            path = self._subschemas.target(target)
            if path is None or target in trail:
                return []
            inner = self._of(value_at(self._subschemas.root, path), (*trail, target), depth + 1)
            found = self._both(found, [Alternative(one.schema, (target, *one.trail)) for one in inner])
        for branch in schema.get("allOf", ()):
            found = self._both(found, self._of(branch, trail, depth + 1))
        for word in ("anyOf", "oneOf"):
            if word in schema:
                each = [self._of(branch, trail, depth + 1) for branch in schema[word][:MOST]]
                found = self._both(found, list(_in_turn(each)))
        if "if" in schema:
            then = {"allOf": [schema["if"], schema.get("then", True)]}
            each = [self._of(one, trail, depth + 1) for one in (then, schema.get("else", True))]
            found = self._both(found, list(_in_turn(each)))
        return found

    def _both(self, ones: Sequence[Alternative], others: Sequence[Alternative]) -> list[Alternative]:
        found: list[Alternative] = []
        for one in ones:
            for other in others:
                self._spend(1 + (len(one.schema) + len(other.schema)) // 4)
                merged = _merged(one.schema, other.schema)
                if merged is not None:
                    found.append(Alternative(merged, (*one.trail, *other.trail)))
                if len(found) >= MOST:
                    return found
        return found


def _in_turn(each: Sequence[Sequence[Alternative]]) -> Iterator[Alternative]:
    """The first of each branch, then the second of each, so that ``MOST`` cuts off no whole branch."""
    for index in range(max(map(len, each), default=0)):
        yield from (found[index] for found in each if index < len(found))


def types_of(schema: Mapping[str, Any]) -> list[str]:
    """The types that a value can have, the likeliest first."""
    named = schema.get("type")
    if isinstance(named, str):
        return [named]
    if named is not None:
        return [word for word in (*TYPES, "integer") if word in named]
    return sorted(TYPES, key=lambda word: not any(hint in schema for hint in _HINTS.get(word, ())))


def _merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """One schema for what fits both; None if no value can."""
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
