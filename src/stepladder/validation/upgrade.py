"""A schema of any draft, as one in the latest draft whose references are all of the form ``#/...``.

The validator keeps to the schema as it was written. The prompt, the decoder and the linter read this form: engines know
the words of the latest draft alone, whatever ``$schema`` says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from stepladder.schemas.pointer import Path, pointer, value_at
from stepladder.validation.drafts import LATEST
from stepladder.validation.parts import CONTAINERS, REFERENCES, Part, Parts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepladder.schemas.jsontypes import Json

NOTES = ("title", "description", "default", "examples", "$comment")
_NAMES = ("$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary")


class Ignored(NamedTuple):
    """A keyword that has no effect in its draft; ``known`` if it has one elsewhere in the same draft."""

    path: Path
    why: str
    known: bool


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
        for word, now, value in self._renamed(part, old):
            if word in REFERENCES:
                self.references.append((found, now, self.parts.targets[*old, word]))
            if word != now:
                self.origins[*new, now] = (*old, word)
            found[now] = self._built(value, (*old, word), (*new, now))
        return found

    def _renamed(self, part: Part, old: Path) -> Iterator[tuple[str, str, Any]]:
        """Each keyword, its name in the latest draft, and its value there."""
        schema, number = part.schema, part.draft.number
        listed = isinstance(schema.get("items"), list) and number < LATEST.number
        for word, value in schema.items():
            if word in _NAMES and (word != "id" or number == 4):
                continue
            if number < LATEST.number and (why := _without_effect(part, word, listed=listed)):
                self.ignored.append(Ignored((*old, word), why, known=part.draft.has(word)))
                continue
            match word:
                case "items" if listed:
                    if value:
                        yield word, "prefixItems", value
                case "additionalItems" if listed:
                    yield word, "items", value
                case "$defs" if number <= 7:  # to which the draft's metaschema says nothing
                    schemas = value.items() if isinstance(value, Mapping) else ()
                    yield word, word, {name: one for name, one in schemas if isinstance(one, Mapping | bool)}
                case "dependencies" if number <= 7:
                    cases = value.items() if isinstance(value, Mapping) else ()
                    for name, kind in (("dependentRequired", list), ("dependentSchemas", (Mapping, bool))):
                        if held := {key: case for key, case in cases if isinstance(case, kind)}:
                            yield word, name, held
                case "minimum" | "maximum" if number == 4 and schema.get(_exclusive(word)) is True:
                    yield word, _exclusive(word), value
                case "exclusiveMinimum" | "exclusiveMaximum" if number == 4:
                    pass
                case "$ref" | "$dynamicRef" | "$recursiveRef" if self._leads_out(old, word, value):
                    pass  # the decoder gets a looser schema, and the validator has the rest
                case "$dynamicRef" | "$recursiveRef" if "$ref" not in schema:
                    yield word, "$ref", value
                case _:
                    yield word, word, value

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


def _without_effect(part: Part, word: str, *, listed: bool) -> str | None:
    if word in (*CONTAINERS, *NOTES):
        return None
    if not part.draft.has(word):
        return f"{part.draft.name} has no keyword `{word}`"
    if part.alone and word != "$ref":
        return f"{part.draft.name} ignores `{word}` next to `$ref`"
    if word == "additionalItems" and not listed:
        return "`additionalItems` only applies next to a list of `items`"
    return None


def _exclusive(word: str) -> str:
    return f"exclusiveM{word[1:]}"


def encoded(reference: str) -> str:
    """With the characters escaped that a URI cannot have, such as those of ``Page<Order>``."""
    return quote(reference, safe="%/~!$&'()*+,;=:@?#")
