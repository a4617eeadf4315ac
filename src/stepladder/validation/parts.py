"""Every schema inside a schema, as its own draft sees it, and where references lead.

Drafts differ in their words, in what names a part (``id``, ``$id``, anchors), and in what counts beside a ``$ref``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urljoin

from stepladder.schemas.pointer import Path, pointer, resolve, value_at
from stepladder.validation.drafts import LATEST, Draft, draft_named
from stepladder.validation.subschemas import children

if TYPE_CHECKING:
    from collections.abc import Iterator

REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
CONTAINERS = ("definitions", "$defs")
_HERE = "file:///"
"""The base of a schema without an ``$id``."""


class Part(NamedTuple):
    """A schema inside another, the draft it is in, and the URI that its references start from."""

    schema: Any
    draft: Draft
    base: str

    @property
    def alone(self) -> bool:
        """Whether it is a reference of a draft that ignores all beside one."""
        return self.draft.number <= 7 and isinstance(self.schema, Mapping) and isinstance(self.schema.get("$ref"), str)


class Unresolved(NamedTuple):
    """A reference, at ``path``, that leads to nothing in the schema; ``remote`` if it leads out of it."""

    path: Path
    reference: str
    remote: bool


@dataclass
class Parts:
    """Every schema inside ``root`` by its path, as its own draft sees it. Takes any JSON."""

    root: Any
    parts: dict[Path, Part] = field(default_factory=dict)
    targets: dict[Path, Path] = field(default_factory=dict)
    """Where the reference at a path (of its keyword) leads."""
    unresolved: list[Unresolved] = field(default_factory=list)
    unknown: list[Path] = field(default_factory=list)
    """Where ``$schema`` names no draft that is known."""
    outside: bool = False
    """Whether a reference leads to the draft's metaschema, which the validator has."""
    ids: dict[str, Path] = field(default_factory=lambda: {_HERE: ()})
    anchors: dict[tuple[str, str], Path] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._walk((), Part(self.root, LATEST, _HERE))
        resolved: set[Path] = set()
        while waiting := [path for path in self.parts if path not in resolved]:
            for path in waiting:  # a reference may lead to a schema under a keyword of the author's own
                resolved.add(path)
                self._resolve(path, self.parts[path])

    @property
    def draft(self) -> Draft | None:
        """The one draft of it all; None if a part inside names its own."""
        return self.parts[()].draft if len(self._starts) == 1 else None

    @property
    def resources(self) -> int:
        """The schema itself, and each part with an ``$id`` of its own."""
        return len(set(self.ids.values()))

    @cached_property
    def _starts(self) -> set[Path]:
        return {()} | {
            path
            for path, part in self.parts.items()
            if isinstance(part.schema, Mapping) and isinstance(part.schema.get("$schema"), str)
        }

    @property
    def pieces(self) -> Iterator[tuple[Path, Draft, Any]]:
        """The schema in pieces of one draft each: of what is in another draft only ``true`` remains."""
        for path in sorted(self._starts, key=pointer):
            yield path, self.parts[path].draft, _without(self.parts[path].schema, path, self._starts - {path})

    def _walk(self, path: Path, part: Part) -> None:
        waiting = [(path, part)]
        while waiting:
            path, part = waiting.pop()
            if path not in self.parts:
                self.parts[path] = part = self._named(path, part)
                waiting += [(path + step, part._replace(schema=child)) for step, child in _children(part)]

    def _named(self, path: Path, part: Part) -> Part:
        """The part under its own ``$schema`` and ``$id``."""
        schema = part.schema
        if not isinstance(schema, Mapping):
            return part
        if isinstance(word := schema.get("$schema"), str):
            if (draft := draft_named(word)) is None:
                self.unknown.append((*path, "$schema"))
            part = part._replace(draft=draft or part.draft)
        if isinstance(name := schema.get(part.draft.id), str) and not part.alone:
            uri, _, fragment = _joined(part.base, name).partition("#")
            if not name.startswith("#"):
                part = part._replace(base=uri)
                self.ids.setdefault(uri, path)
            if fragment and part.draft.number <= 7:
                self.anchors.setdefault((part.base, fragment), path)
        for word in ("$anchor", "$dynamicAnchor"):
            if part.draft.has(word) and isinstance(name := schema.get(word), str):
                self.anchors.setdefault((part.base, name), path)
        return part

    def _resolve(self, path: Path, part: Part) -> None:
        if not isinstance(part.schema, Mapping):
            return
        for keyword in REFERENCES:
            reference = part.schema.get(keyword)
            if not isinstance(reference, str) or not part.draft.has(keyword):
                continue
            uri, _, fragment = _joined(part.base, reference).partition("#")
            resource, target = self.ids.get(uri), None
            if resource is not None:
                target = self._target(resource, unquote(fragment), uri)
            elif part.draft.is_own(uri):
                self.outside = True
                continue
            if target is None:
                self.unresolved.append(Unresolved((*path, keyword), reference, remote=resource is None))
                continue
            self.targets[*path, keyword] = target
            self._walk(target, Part(value_at(self.root, target), part.draft, uri))

    def _target(self, resource: Path, fragment: str, uri: str) -> Path | None:
        if fragment and not fragment.startswith("/"):
            return self.anchors.get((uri, fragment))
        inside = resolve(fragment, value_at(self.root, resource))
        return None if inside is None else resource + inside


def _joined(base: str, reference: str) -> str:
    """``urljoin`` knows no ``urn:``, and drops an empty fragment."""
    try:
        return base + reference if reference.startswith("#") else urljoin(base, reference)
    except ValueError:
        return reference


def _children(part: Part) -> Iterator[tuple[Path, Any]]:
    schema, draft = part.schema, part.draft
    if not isinstance(schema, Mapping):
        return
    if part.alone:
        schema = {keyword: schema[keyword] for keyword in CONTAINERS if keyword in schema}
    items = schema.get("items")
    for step, child in children(schema):
        if draft.has(str(step[0])) and not isinstance(child, list):
            yield step, child
    if draft is LATEST:
        return
    if isinstance(items, list):
        yield from ((("items", index), child) for index, child in enumerate(items))
        if "additionalItems" in schema:
            yield ("additionalItems",), schema["additionalItems"]
    if draft.number <= 7 and isinstance(cases := schema.get("dependencies"), Mapping):
        yield from ((("dependencies", name), case) for name, case in cases.items() if not isinstance(case, list))


def _without(value: Any, path: Path, others: set[Path]) -> Any:
    """A plain copy of ``value``, which is at ``path``, with ``true`` in the places ``others``."""
    if path in others:
        return True
    if isinstance(value, Mapping):
        return {name: _without(item, (*path, name), others) for name, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_without(item, (*path, index), others) for index, item in enumerate(value)]
    return value
