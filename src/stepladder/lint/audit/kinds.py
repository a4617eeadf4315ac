"""The kinds that a value can have, wherever in its schema that is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from stepladder.lint.audit.vocabulary import TEXT
from stepladder.validation.subschemas import Subschemas, children, references

if TYPE_CHECKING:
    from stepladder.lint.audit.vocabulary import Kinds
    from stepladder.schemas.jsontypes import Json
    from stepladder.schemas.pointer import Path

IN_PLACE = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"})
"""Keywords whose schemas are about the same value as the schema around them."""
DEEPEST = 200  # references and branches inside each other, of Python's 1,000 frames; people nest three or four


def own_kinds(schema: Json) -> Kinds:
    """The kinds in ``type``; empty without it."""
    named = schema.get("type") if isinstance(schema, Mapping) else None
    if isinstance(named, str):
        return frozenset({named})
    return frozenset(kind for kind in named if isinstance(kind, str)) if isinstance(named, list) else frozenset()


def kind_of(value: Any) -> str:
    """The narrowest kind of a JSON value."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "integer" if value.is_integer() else "number"
        case str():
            return "string"
        case Mapping():
            return "object"
        case _:
            return "array"


def values_of(schema: Json) -> list[Any] | None:
    """The values in ``const`` or ``enum``, or None."""
    if not isinstance(schema, Mapping):
        return None
    if "const" in schema:
        return [schema["const"]]
    listed = schema.get("enum")
    return listed if isinstance(listed, list) else None


@dataclass
class KindReader:
    """Reads the kinds of every schema in ``subschemas``; None where any kind is possible."""

    subschemas: Subschemas
    _known: dict[Path, Kinds | None] = field(default_factory=dict)
    _wide: dict[Path, Kinds | None] = field(default_factory=dict)

    def of(self, path: Path, depth: int = 0) -> Kinds | None:
        """From the schema itself, what it refers to, or the schemas around it that are about the same value."""
        if path not in self._wide:
            self._wide[path] = None  # for a reference that comes back to itself
            self._wide[path] = self._own(path, 0) or (self._around(path, depth) if depth < DEEPEST else None)
        return self._wide[path]

    def _around(self, path: Path, depth: int) -> Kinds | None:
        if path and path[-1] == "propertyNames" and path[:-1] in self.subschemas.by_path:
            return TEXT
        above = self._parent(path)
        around = self._referring.get(path, []) if above is None else [above]
        kinds = [self.of(one, depth + 1) for one in around]
        known = [one for one in kinds if one is not None]
        return frozenset().union(*known) if known and len(known) == len(kinds) else None

    @cached_property
    def _referring(self) -> dict[Path, list[Path]]:
        """The schemas that refer to each schema."""
        found: dict[Path, list[Path]] = {}
        for path, schema in self.subschemas.objects.items():
            for reference in references(schema).values():
                if (target := self.subschemas.target(reference)) is not None:
                    found.setdefault(target, []).append(path)
        return found

    def _parent(self, path: Path) -> Path | None:
        """The path of the schema around this one that is about the same value."""
        for length in (1, 2):
            step, parent = path[-length:], path[:-length]
            if len(step) == length and step[0] in IN_PLACE and parent in self.subschemas.by_path:
                return parent
        return None

    def _own(self, path: Path, depth: int) -> Kinds | None:
        if path not in self._known:
            self._known[path] = None  # for a reference that comes back to itself
            self._known[path] = self._read(path, depth) if depth < DEEPEST else None
        return self._known[path]

    def _read(self, path: Path, depth: int) -> Kinds | None:
        schema = self.subschemas.by_path.get(path)
        if not isinstance(schema, Mapping):
            return None
        if own := own_kinds(schema):
            return own
        if (values := values_of(schema)) is not None:
            return frozenset(map(kind_of, values))
        held = [step for step, _ in children(schema)]
        targets = [self.subschemas.target(reference) for reference in references(schema).values()]
        together = [target for target in targets if target is not None]
        together += [path + step for step in held if step[0] == "allOf"]
        said = [kinds for one in together if (kinds := self._own(one, depth + 1)) is not None]
        for keyword in ("anyOf", "oneOf"):
            branches = [self._own(path + step, depth + 1) for step in held if step[0] == keyword]
            known = [kinds for kinds in branches if kinds is not None]
            if known and len(known) == len(branches):
                said.append(frozenset().union(*known))
        return frozenset.intersection(*said) if said else None
