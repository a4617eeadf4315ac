"""A schema of any draft, as one in the latest draft whose references are all of the form ``#/...``.

The validator keeps to the schema as it was written. The prompt, the decoder and the linter read this form: engines know
the words of the latest draft alone, whatever ``$schema`` says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, unquote, urljoin

from stepladder.schemas.pointer import Path, pointer, resolve, value_at
from stepladder.validation.drafts import LATEST, Draft, draft_named
from stepladder.validation.subschemas import children

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepladder.schemas.jsontypes import Json

REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
CONTAINERS = ("definitions", "$defs")
NOTES = ("title", "description", "default", "examples", "$comment")
_NAMES = ("$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary")
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


class Ignored(NamedTuple):
    """A keyword that has no effect in its draft; ``known`` if it has one elsewhere in the same draft."""

    path: Path
    why: str
    known: bool


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


def encoded(reference: str) -> str:
    """With the characters escaped that a URI cannot have, such as those of ``Page<Order>``."""
    return quote(reference, safe="%/~!$&'()*+,;=:@?#")


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


@dataclass(frozen=True)
class Upgraded:
    """``schema`` is in the latest draft; ``origins`` has the former places of what moved."""

    schema: Json
    origins: Mapping[Path, Path] = field(default_factory=dict)
    ignored: tuple[Ignored, ...] = ()

    def origin(self, path: Path) -> Path:
        """Where the place ``path`` of ``schema`` is in the schema as it was written."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.origins:
                return self.origins[path[:length]] + path[length:]
        return path


def upgrade(parts: Parts) -> Upgraded:
    """``parts`` must satisfy the metaschemas of their drafts. A schema that needs no change is returned as it is."""
    local = all(str(value_at(parts.root, at)).startswith("#") for at in parts.targets) and not parts.outside
    if parts.draft is LATEST and parts.resources == 1 and local:
        return Upgraded(parts.root)
    return _Upgrade(parts).upgraded()


class _Upgrade:
    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.origins: dict[Path, Path] = {}
        self.places: dict[Path, Path] = {}
        self.ignored: list[Ignored] = []
        self.references: list[tuple[dict[str, Any], str, Path]] = []

    def upgraded(self) -> Upgraded:
        root = self._built(self.parts.root, (), ())
        lost = [target for target in self.parts.targets.values() if target not in self.places]
        for number, old in enumerate(dict.fromkeys(lost)):  # inside of what its draft ignores
            new = ("$defs", f"ignored{number}")
            self.origins[new] = old
            root.setdefault("$defs", {})[new[1]] = self._built(value_at(self.parts.root, old), old, new)
        for schema, keyword, target in self.references:
            schema[keyword] = "#" + encoded(pointer(self.places[target]).replace("%", "%25"))
        return Upgraded(root, self.origins, tuple(self.ignored))

    def _built(self, value: Any, old: Path, new: Path) -> Any:
        part = self.parts.parts.get(old)
        if part is not None:
            self.places.setdefault(old, new)
        if isinstance(value, Mapping):
            if part is not None:
                return self._schema(part, old, new)
            return {name: self._built(item, (*old, name), (*new, name)) for name, item in value.items()}
        if isinstance(value, Sequence) and not isinstance(value, str):
            return [self._built(item, (*old, index), (*new, index)) for index, item in enumerate(value)]
        return value

    def _schema(self, part: Part, old: Path, new: Path) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for was, now, value in self._renamed(part, old):
            target = self.parts.targets.get((*old, was[0]))
            if target is not None and was[0] in REFERENCES:
                self.references.append((found, now, target))
            if was != (now,):
                self.origins[*new, now] = old + was
            found[now] = self._built(value, old + was, (*new, now))
        return found

    def _renamed(self, part: Part, old: Path) -> Iterator[tuple[Path, str, Any]]:
        """Each keyword: the steps to it, its name in the latest draft, and its value there."""
        schema, number = part.schema, part.draft.number
        listed = isinstance(schema.get("items"), list) and number < LATEST.number
        for word, value in schema.items():
            if word in ("$defs", "dependencies") and not isinstance(value, Mapping):
                continue
            if word in _NAMES and (word != "id" or number == 4):
                continue
            if number < LATEST.number and (why := self._without_effect(part, word, listed=listed)):
                self.ignored.append(Ignored((*old, word), why, known=part.draft.has(word)))
                continue
            match word:
                case "items" if listed:
                    if value:
                        yield ("items",), "prefixItems", value
                case "additionalItems" if listed:
                    yield (word,), "items", value
                case "$defs" if number <= 7:  # to which the draft's metaschema says nothing
                    yield (word,), word, {name: one for name, one in value.items() if isinstance(one, Mapping | bool)}
                case "dependencies" if number <= 7:
                    for name, kind in (("dependentRequired", list), ("dependentSchemas", (Mapping, bool))):
                        if cases := {key: case for key, case in value.items() if isinstance(case, kind)}:
                            yield (word,), name, cases
                case "minimum" | "maximum" if number == 4 and schema.get(_exclusive(word)) is True:
                    yield (word,), _exclusive(word), value
                case "exclusiveMinimum" | "exclusiveMaximum" if number == 4:
                    pass
                case "$ref" | "$dynamicRef" | "$recursiveRef" if self._leads_out(old, word, value):
                    pass  # the decoder gets a looser schema, and the validator has the rest
                case "$dynamicRef" | "$recursiveRef" if "$ref" not in schema:
                    yield (word,), "$ref", value
                case _:
                    yield (word,), word, value

    def _leads_out(self, path: Path, keyword: str, reference: str) -> bool:
        """Whether no local ``$ref`` says the same: it leads to the metaschema, or where depends on the way there."""
        if (*path, keyword) not in self.parts.targets:
            return True
        if keyword == "$ref":
            return False
        if keyword == "$recursiveRef":
            return self.parts.resources > 1
        name = reference.partition("#")[2]
        return sum(name == other for _, other in self.parts.anchors) > 1

    @staticmethod
    def _without_effect(part: Part, word: str, *, listed: bool) -> str | None:
        if word in (*CONTAINERS, *NOTES):
            return None
        if not part.draft.has(word):
            return f"{part.draft.name} has no keyword `{word}`"
        if part.alone and word != "$ref":
            return f"{part.draft.name} ignores `{word}` next to `$ref`"
        return (
            "`additionalItems` only applies next to a list of `items`"
            if word == "additionalItems" and not listed
            else None
        )


def _exclusive(word: str) -> str:
    return f"exclusiveM{word[1:]}"
