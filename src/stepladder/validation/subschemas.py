"""Where a JSON Schema holds further schemas, and where its references lead.

Values of ``enum``, ``const``, ``default`` and ``examples`` are data: a ``$ref`` inside them refers to nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import unquote

from stepladder.schemas.pointer import Path, pointer, resolve, value_at

if TYPE_CHECKING:
    from stepladder.schemas.jsontypes import Json

MAPS = ("$defs", "definitions", "properties", "patternProperties", "dependentSchemas")
LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
SINGLES = (
    "additionalProperties",
    "items",
    "contains",
    "not",
    "if",
    "then",
    "else",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
)
REFERENCES = ("$ref", "$dynamicRef")
MAX_REFERENCES = 50  # one after the other


@dataclass(frozen=True)
class Subschemas:
    """Every schema inside ``root``, by its path, outermost first; ``root`` itself has the empty path."""

    root: Json

    @cached_property
    def by_path(self) -> dict[Path, Json]:
        found: dict[Path, Json] = {}
        waiting: list[tuple[Path, Json]] = [((), self.root)]
        while waiting:
            path, schema = waiting.pop()
            if path in found:
                continue
            found[path] = schema
            waiting.extend((path + step, child) for step, child in children(schema))
            waiting.extend(self._beside(schema))
        return dict(sorted(found.items(), key=lambda item: (len(item[0]), pointer(item[0]))))

    @cached_property
    def objects(self) -> dict[Path, Mapping[str, Json]]:
        """The schemas that have keywords: all but ``true`` and ``false``."""
        return {path: schema for path, schema in self.by_path.items() if isinstance(schema, Mapping)}

    @cached_property
    def anchors(self) -> dict[str, Path]:
        return {
            str(schema[keyword]): path
            for path, schema in self.objects.items()
            for keyword in ("$anchor", "$dynamicAnchor")
            if keyword in schema
        }

    def target(self, reference: str) -> Path | None:
        """Where a local reference (``#``, ``#/...`` or ``#anchor``) leads; None if nothing is there."""
        if reference not in self._targets:
            fragment = unquote(reference.removeprefix("#"))
            pointed = not fragment or fragment.startswith("/")
            self._targets[reference] = resolve(fragment, self.root) if pointed else self.anchors.get(fragment)
        return self._targets[reference]

    @cached_property
    def _targets(self) -> dict[str, Path | None]:
        return {}

    def followed(self, path: Path) -> tuple[Path, Mapping[str, Json]]:
        """The schema at ``path``, or where its ``$ref`` leads, with its path. Empty for what is no object."""
        for _ in range(MAX_REFERENCES):
            schema = self.objects.get(path, {})
            reference = schema.get("$ref")
            target = self.target(reference) if isinstance(reference, str) else None
            if target is None:
                return path, schema
            path = target
        return path, {}

    def _beside(self, schema: Json) -> Iterator[tuple[Path, Json]]:
        """Schemas that only a reference reaches, such as ``#/shared/team``."""
        for reference in references(schema).values():
            if reference.startswith("#/") and (path := resolve(unquote(reference[1:]), self.root)) is not None:
                yield path, value_at(self.root, path)


def children(schema: Json) -> Iterator[tuple[Path, Json]]:
    """The schemas directly inside this one, with the paths to them."""
    if not isinstance(schema, Mapping):
        return
    for keyword in MAPS:
        if isinstance(held := schema.get(keyword), Mapping):
            yield from (((keyword, name), child) for name, child in held.items())
    for keyword in LISTS:
        if isinstance(held := schema.get(keyword), Sequence) and not isinstance(held, str):
            yield from (((keyword, index), child) for index, child in enumerate(held))
    for keyword in SINGLES:
        if keyword in schema:
            yield (keyword,), schema[keyword]


def patterns(subschemas: Subschemas) -> Iterator[tuple[Path, str, str]]:
    """Every regular expression in a schema: the path of its schema, its keyword, its text."""
    for path, schema in subschemas.objects.items():
        if isinstance(text := schema.get("pattern"), str):
            yield path, "pattern", text
        if isinstance(named := schema.get("patternProperties"), Mapping):
            yield from ((path, "patternProperties", name) for name in named)


def references(schema: Json) -> dict[str, str]:
    """The references of this schema itself, by keyword."""
    if not isinstance(schema, Mapping):
        return {}
    return {keyword: target for keyword in REFERENCES if isinstance(target := schema.get(keyword), str)}
