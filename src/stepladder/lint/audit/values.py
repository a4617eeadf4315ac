"""Every value that a document of a schema can contain, each with all the schemas that apply to it together.

A bound may be beside the type, behind a reference, in an ``allOf`` or around an ``anyOf``: it applies in all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stepladder.lint.audit.kinds import own_kinds, values_of
from stepladder.schemas.pointer import Path
from stepladder.validation.subschemas import Subschemas, children, references

if TYPE_CHECKING:
    from stepladder.lint.audit.vocabulary import Kinds

HELD = ("properties", "patternProperties", "additionalProperties", "unevaluatedProperties", "items", "prefixItems")
"""Keywords of the values inside a value; others (``not``, ``contains``) only constrain the value itself."""
MOST_STEPS = 100_000
"""Schemas visited in one audit, some 0.2 s. References into branches into references can multiply without
end; the rest is not visited."""

Part = tuple[Path, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Value:
    """One value: ``parts`` are the schemas that apply to it at once."""

    parts: tuple[Part, ...]

    @property
    def path(self) -> Path:
        """The path of the last schema with a ``type``, or else of the last one."""
        typed = [path for path, schema in self.parts if "type" in schema]
        return typed[-1] if typed else self.parts[-1][0]

    @property
    def kinds(self) -> Kinds:
        """Empty if no schema has a ``type``."""
        said = [kinds for _, schema in self.parts if (kinds := own_kinds(schema))]
        return frozenset.intersection(*said) if said else frozenset()

    @property
    def listed(self) -> bool:
        return any(values_of(schema) is not None for _, schema in self.parts)

    def has(self, *keywords: str) -> bool:
        """Whether any of the schemas has any of the keywords."""
        return any(keyword in schema for _, schema in self.parts for keyword in keywords)

    def all(self, keyword: str) -> list[Any]:
        """The values of this keyword."""
        return [schema[keyword] for _, schema in self.parts if keyword in schema]


def values(subschemas: Subschemas) -> Iterator[Value]:
    """Each value once for each combination of its branches with the schemas around them."""
    waiting: list[tuple[Path, tuple[Part, ...]]] = [((), ())]
    seen: set[tuple[Path, tuple[Path, ...]]] = set()
    steps = 0
    while waiting and steps < MOST_STEPS:
        path, around = waiting.pop()
        key = (path, tuple(part[0] for part in around))
        if key in seen:
            continue
        seen.add(key)
        here = _together(subschemas, path, MOST_STEPS - steps)
        steps += len(here) + len(around) + 1
        parts = (*around, *(part for part in here if part not in around)) if around else here
        branches: list[Path] = []
        for place, schema in here:
            for step, _ in children(schema):
                if step[0] in HELD:
                    waiting.append((place + step, ()))
                elif step[0] in ("anyOf", "oneOf"):
                    branches.append(place + step)
        if branches:
            waiting.extend((branch, parts) for branch in branches)
        elif parts:
            yield Value(parts)


def _together(subschemas: Subschemas, path: Path, most: int) -> tuple[Part, ...]:
    """The schema at ``path`` with everything that it refers to and its ``allOf``."""
    found: dict[Path, Mapping[str, Any]] = {}
    waiting = [path]
    while waiting and len(found) < most:
        place = waiting.pop()
        schema = subschemas.by_path.get(place)
        if place in found or not isinstance(schema, Mapping):
            continue
        found[place] = schema
        waiting.extend(place + step for step, _ in children(schema) if step[0] == "allOf")
        targets = [subschemas.target(reference) for reference in references(schema).values()]
        waiting.extend(target for target in targets if target is not None)
    return tuple(found.items())
