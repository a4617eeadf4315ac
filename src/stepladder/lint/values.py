"""Every value that a schema allows, each with all the schemas that apply to it together.

A bound may be beside the type, behind a reference, in an ``allOf`` or around an ``anyOf``: it applies in all of them.
``not`` and ``dependentSchemas`` are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

from stepladder.lint.audit.kinds import values_of
from stepladder.lint.audit.vocabulary import properties_of, required_of
from stepladder.schemas.pointer import Path, value_at
from stepladder.validation.subschemas import Subschemas, children, references

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stepladder.lint.audit.vocabulary import Kinds
    from stepladder.schemas.jsontypes import Json

MOST = 2_000
"""Alternatives of one value; those of an ``allOf`` of unions multiply."""
TYPES = ("object", "array", "string", "number", "boolean", "null")
_HINTS = {
    "object": ("properties", "required", "additionalProperties", "patternProperties", "minProperties"),
    "array": ("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"),
    "string": ("pattern", "format", "minLength", "maxLength"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}

Part: TypeAlias = tuple[Path, Any]
"""A schema and its path."""
_Choice: TypeAlias = list[list[Part]]


class SpentError(Exception):
    """The allowed work is used up without a result."""


@dataclass(slots=True)
class Work:
    """The work that is left: about one for each schema visited."""

    left: int

    def spend(self, amount: int = 1) -> None:
        self.left -= amount
        if self.left < 0:
            raise SpentError


@dataclass(frozen=True)
class Value:
    """``parts`` are the schemas that apply at once; ``trail`` has the targets of the references that led to them."""

    parts: tuple[tuple[Path, Mapping[str, Any]], ...]
    trail: frozenset[Path] = frozenset()

    @property
    def path(self) -> Path:
        """The path of the last schema with a ``type``, or else of the last one."""
        typed = [path for path, schema in self.parts if "type" in schema]
        return typed[-1] if typed else self.parts[-1][0]

    @cached_property
    def types(self) -> list[str] | None:
        """What every ``type`` allows; None without one."""
        said = [[one] if isinstance(one, str) else one for one in self.all("type") if isinstance(one, str | list)]
        found = None if not said else [word for word in said[0] if isinstance(word, str)]
        for other in said[1:]:
            integer = ["integer"] if {"integer", "number"} <= {*(found or ()), *map(str, other)} else []
            found = list(dict.fromkeys([*(word for word in found or () if word in other), *integer]))
        return found

    @property
    def kinds(self) -> Kinds:
        """Empty if no schema has a ``type``."""
        return frozenset(self.types or ())

    @property
    def likely_types(self) -> list[str]:
        """The types that a value can have, the likeliest first."""
        if self.types is None:
            return sorted(TYPES, key=lambda word: not self.has(*_HINTS.get(word, ())))
        return self.types

    @cached_property
    def listed(self) -> list[Any] | None:
        """The values that every ``const`` and ``enum`` allows; None without one."""
        lists = [listed for _, schema in self.parts if (listed := values_of(schema)) is not None]
        return [one for one in lists[0] if all(one in other for other in lists[1:])] if lists else None

    def has(self, *keywords: str) -> bool:
        """Whether any of the schemas has any of the keywords."""
        return any(keyword in schema for _, schema in self.parts for keyword in keywords)

    def all(self, keyword: str) -> list[Any]:
        """The values of this keyword."""
        return [schema[keyword] for _, schema in self.parts if keyword in schema]

    @cached_property
    def members(self) -> dict[str, list[Part]]:
        """The schemas of every named member."""
        names = dict.fromkeys(name for _, schema in self.parts for name in properties_of(schema))
        return {name: self.member(name) for name in names}

    def member(self, name: str) -> list[Part]:
        """The schemas of a member, apart from ``patternProperties``."""
        found = [
            ((*path, "properties", name), schema["properties"][name])
            for path, schema in self.parts
            if name in properties_of(schema)
        ]
        words = ("additionalProperties",) if found else ("additionalProperties", "unevaluatedProperties")
        return found + [
            ((*path, word), schema[word])
            for path, schema in self.parts
            if name not in properties_of(schema)
            for word in words
            if word in schema
        ]

    @property
    def required(self) -> list[str]:
        return list(dict.fromkeys(name for _, schema in self.parts for name in required_of(schema)))

    @property
    def prefix(self) -> int:
        """The number of items with schemas of their own."""
        return max((len(items) for items in self.all("prefixItems") if isinstance(items, list)), default=0)

    def item(self, index: int) -> list[Part]:
        """The schemas of an item, apart from ``contains``."""
        found: list[Part] = []
        for path, schema in self.parts:
            first = schema.get("prefixItems")
            if isinstance(first, list) and index < len(first):
                found.append(((*path, "prefixItems", index), first[index]))
            else:
                found += [((*path, word), schema[word]) for word in ("items", "unevaluatedItems") if word in schema]
        return found


class Values:
    """The values of one schema document. ``spend`` is called with the work done."""

    def __init__(self, root: Json, spend: Callable[[int], None]) -> None:
        self.root: Part = ((), root)
        self._subschemas = Subschemas(root)
        self._spend = spend

    def of(self, parts: Sequence[Part], trail: frozenset[Path] = frozenset()) -> list[Value]:
        """The alternatives of a value to which all ``parts`` apply, at most ``MOST``. A reference that is already on
        the trail is not followed again: such an alternative is left out."""
        return list(islice(self._of(parts, trail), MOST))

    def _of(self, parts: Sequence[Part], trail: frozenset[Path]) -> Iterator[Value]:
        # The schemas of an alternative, those to add to it, and the choices that it still has.
        waiting: list[tuple[dict[Path, Any], list[Part], list[_Choice]]] = [({}, [*parts], [])]
        while waiting:
            known, more, choices = waiting.pop()
            self._spend(1 + len(known))
            if not self._gather(known, more, choices, trail):
                continue
            if choices:
                waiting += [(dict(known), [*branch], choices[1:]) for branch in reversed(choices[0])]
                continue
            followed = {target for schema in known.values() for target in self._targets(schema)}
            value = Value(tuple(known.items()), trail | followed)
            if value.types != [] and value.listed != []:
                yield value

    def _gather(self, known: dict[Path, Any], more: list[Part], choices: list[_Choice], trail: frozenset[Path]) -> bool:
        """Adds to ``known`` all that applies together; False if no value can fit."""
        while more:
            path, schema = more.pop(0)
            if schema is False:
                return False
            if path in known or not isinstance(schema, Mapping):
                continue
            self._spend(1)
            known[path] = schema
            targets = self._targets(schema)
            if len(targets) < len(references(schema)) or not trail.isdisjoint(targets):
                return False
            more += [(target, value_at(self.root[1], target)) for target in targets]
            held = [(step[0], (path + step, child)) for step, child in children(schema)]
            more += [part for word, part in held if word == "allOf"]
            choices += [found for word in ("anyOf", "oneOf") if (found := [[part] for w, part in held if w == word])]
            if "if" in schema:
                one, then, other = ([part for w, part in held if w == word] for word in ("if", "then", "else"))
                choices.append([one + then, other])
        return True

    def _targets(self, schema: Json) -> list[Path]:
        found = [self._subschemas.target(reference) for reference in references(schema).values()]
        return [target for target in found if target is not None]

    def everywhere(self) -> Iterator[Value]:
        """Each value that a document can contain, outermost first, until the work is used up."""
        waiting: list[Sequence[Part]] = [[self.root]]
        seen: set[tuple[Path, ...]] = set()
        try:
            while waiting:
                parts = waiting.pop()
                key = tuple(path for path, _ in parts)
                if key in seen:
                    continue
                seen.add(key)
                for value in islice(self._of(parts, frozenset()), MOST):
                    if value.parts:
                        yield value
                    self._spend(len(value.parts) * len(value.members))
                    waiting += _inside(value)
        except SpentError:
            return


def _inside(value: Value) -> Iterator[Sequence[Part]]:
    yield from value.members.values()
    yield from (value.item(index) for index in range(value.prefix + 1))
    for path, schema in value.parts:
        if isinstance(named := schema.get("patternProperties"), Mapping):
            yield from ([((*path, "patternProperties", name), child)] for name, child in named.items())
        for word in ("additionalProperties", "unevaluatedProperties"):
            if word in schema:
                yield [((*path, word), schema[word])]
