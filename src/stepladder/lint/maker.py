"""One value that fits a schema, made by a plan: which branch, how many items, how long, with or without."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from stepladder.lint import numbers, texts
from stepladder.lint.alternatives import Alternatives, Way, types_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from stepladder.schemas.jsontypes import Json

MAX_DEPTH = 50
"""Objects and arrays inside each other; each takes some frames of Python's thousand."""
_DIFFERENT = 8  # items of a long array that are made one by one; after them the array repeats itself
_MOST_NAMES = 100  # that are made up for an object which must have so many
_ANY_ITEM = {"type": ["string", "number"], "maxLength": 24}
_MIXED = 0x9E3779B97F4A7C15  # a multiplier whose products look like no pattern: chance without any

Where = tuple[str, ...]


class Size(StrEnum):
    """Which of the candidates at every choice: the shortest or the longest in JSON, or the one that the plan names."""

    SMALLEST = "smallest"
    LARGEST = "largest"
    CHOSEN = "chosen"


@dataclass(frozen=True, slots=True)
class Plan:
    """Round 0 takes the first candidate everywhere, the usual one. Round N takes the Nth, and where it is ``mixed``
    another at every place. The optional member at ``without`` is left out, and of a mixed round every other one."""

    size: Size = Size.CHOSEN
    round: int = 0
    mixed: bool = False
    without: Where | None = None
    room: int = 2_000

    def index(self, ordinal: int, count: int, stride: int) -> int:
        """``stride`` is how many branches there are around the choice: each of them sees all of its candidates."""
        return self._mix(ordinal) % count if self.mixed else self.round // stride % count

    def keeps(self, where: Where, ordinal: int) -> bool:
        if self.size is Size.SMALLEST:
            return False
        return where != self.without and not (self.mixed and self._mix(ordinal) % 2)

    def _mix(self, ordinal: int) -> int:
        mixed = (self.round << 20) + ordinal + 1
        for _ in range(2):
            mixed = mixed * _MIXED & 0xFFFF_FFFF_FFFF_FFFF
            mixed ^= mixed >> 29
        return mixed >> 8


class Made(NamedTuple):
    """A value and how many characters it takes as JSON."""

    value: Json
    width: int


class SpentError(Exception):
    """The work that was allowed is done, and there is no value."""


@dataclass
class Work:
    """What may still be spent: about one for each schema that is looked at, each value and each 50 characters."""

    left: int

    def spend(self, amount: int) -> None:
        self.left -= amount
        if self.left < 0:
            raise SpentError


@dataclass
class Maker:
    """Makes values of ``root``. What it learns stays: ``choices`` counts the rounds by place, ``optional`` are the
    members that may be missing, ``endless`` are the places where the schema, or ``room``, sets no end."""

    root: Json
    work: Work
    choices: dict[Where, int] = field(default_factory=dict)
    optional: dict[Where, None] = field(default_factory=dict)
    endless: dict[Where, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._alternatives = Alternatives(self.root, self.work.spend)
        self._plan = Plan()
        self._ordinals: dict[Where, int] = {}
        self._stride = 1
        self._unlike = 0  # how many arrays around this place want their items unlike each other

    def make(self, plan: Plan) -> Made | None:
        """None where nothing is found that fits. Raises ``SpentError``."""
        self._plan, self._stride, self._unlike = plan, 1, 0
        return self._make(self.root, (), (), 0)

    def _make(self, schema: Any, where: Where, trail: tuple[str, ...], variant: int) -> Made | None:
        self.work.spend(1)
        if len(where) > MAX_DEPTH:
            return None
        chosen = self._plan.size is Size.CHOSEN
        ways = self._alternatives.of(schema, trail, 2 if chosen else 1)
        if trail and not ways:
            self._no_end(where, "it holds others of its own kind")
        branches = [(way, kind) for way in ways for kind in self._kinds(way.schema)]
        if chosen:
            return self._first_of(branches, where, variant)
        found = [self._of_kind(kind, way, where, variant) for way, kind in branches]
        return self._picked([made for made in found if made is not None], where)

    def _kinds(self, schema: Mapping[str, Any]) -> list[str]:
        return ["listed"] if "const" in schema or "enum" in schema else types_of(schema)

    def _first_of(self, branches: Sequence[tuple[Way, str]], where: Where, variant: int) -> Made | None:
        """The branch that the plan names; if nothing fits that one, the next."""
        if not branches:
            return None
        start = self._index(where, len(branches), variant)
        self._stride *= len(branches)
        found = (self._of_kind(kind, way, where, variant) for way, kind in (*branches[start:], *branches[:start]))
        made = next((made for made in found if made is not None), None)
        self._stride //= len(branches)
        return made

    def _of_kind(self, kind: str, way: Way, where: Where, variant: int) -> Made | None:
        schema = way.schema
        if "type" not in schema and kind != "listed":
            self._no_end(where, "it has no `type`")
        match kind:
            case "listed":
                return self._leaf([schema["const"]] if "const" in schema else schema["enum"], where, variant)
            case "null":
                return Made(None, 4)
            case "boolean":
                return self._leaf([True, False], where, variant)
            case "integer" | "number":
                if not numbers.bounded(schema):
                    self._no_end(where, "it has no `minimum` and `maximum`")
                found = numbers.numbers(schema, integer=kind == "integer")
                if kind == "integer" and self._plan.size is not Size.CHOSEN:
                    found = [number for number in found if isinstance(number, int)] or found
                return self._leaf(found, where, variant)
            case "string":
                if not texts.bounded(schema):
                    self._no_end(where, "it has no `maxLength`")
                elif int(schema.get("maxLength", 0)) > self._plan.room:
                    self._no_end(where, f"it may be longer than {self._plan.room:,} characters")
                return self._leaf(texts.texts(schema, self._plan.room, variant), where, variant)
            case "array":
                return self._array(way, where, variant)
            case _:
                return self._object(way, where, variant)

    def _leaf(self, values: Iterable[Json], where: Where, variant: int) -> Made | None:
        found = [Made(value, len(json.dumps(value, ensure_ascii=False))) for value in values]
        self.work.spend(len(found) + sum(made.width for made in found) // 50)
        return self._picked(found, (*where, "="), variant)

    def _picked(self, found: Sequence[Made], where: Where, variant: int = 0) -> Made | None:
        if not found:
            return None
        match self._plan.size:
            case Size.CHOSEN:
                return found[self._index(where, len(found), variant)]
            case size:
                by_width = sorted(found, key=lambda made: made.width, reverse=size is Size.LARGEST)
                return by_width[variant % len(found) if self._unlike else 0]

    def _index(self, where: Where, count: int, variant: int) -> int:
        self.choices[where] = max(count * self._stride, self.choices.get(where, 0))
        return (self._plan.index(self._ordinal(where), count, self._stride) + variant) % count

    def _ordinal(self, where: Where) -> int:
        return self._ordinals.setdefault(where, len(self._ordinals))

    def _no_end(self, where: Where, why: str) -> None:
        if self._plan.size is Size.LARGEST:
            self.endless.setdefault(where, why)

    def _array(self, way: Way, where: Where, variant: int) -> Made | None:
        schema = way.schema
        prefix: Sequence[Any] = schema.get("prefixItems", ())
        rest = schema.get("items", schema.get("unevaluatedItems", True))
        if rest is True or rest == {}:
            rest = _ANY_ITEM
        if "contains" in schema and int(schema.get("minContains", 1)) > 0:
            prefix = [*prefix, {"allOf": [rest, schema["contains"]]}]
        least = max(int(schema.get("minItems", 0)), len(prefix) if "contains" in schema else 0)
        most = int(schema["maxItems"]) if "maxItems" in schema else None
        if rest is False:
            most = len(prefix) if most is None else min(most, len(prefix))
        if most is None:
            self._no_end(where, "it has no `maxItems`")
        elif rest is _ANY_ITEM and most > len(prefix):
            self._no_end((*where, "*"), "it has no `type`")
        if least > self._plan.room // 2:
            return None
        count = self._length(least, most, where)
        unlike = bool(schema.get("uniqueItems"))
        self._unlike += unlike
        values: list[Json] = []
        width = 0
        for item in self._items(prefix, rest, count, (*where, "*"), way.trail, variant, unlike=unlike):
            if width + item.width > self._plan.room and len(values) >= least:
                self._no_end(where, f"it may be longer than {self._plan.room:,} characters")
                break
            values.append(item.value)
            width += item.width + 2  # ", ", and the brackets in place of the last one
        self._unlike -= unlike
        return None if len(values) < least else Made(values, max(width, 2))

    def _items(
        self,
        prefix: Sequence[Any],
        rest: Any,
        count: int,
        place: Where,
        trail: tuple[str, ...],
        variant: int,
        *,
        unlike: bool,
    ) -> Iterator[Made]:
        """At most ``count`` items. It ends where one cannot be made, and where all that are unlike have been."""
        made: list[Made] = []
        seen: set[str] = set()
        for index in range(min(count, self._plan.room // 2)):
            self.work.spend(1)
            part = prefix[index] if index < len(prefix) else rest
            if len(made) >= len(prefix) + _DIFFERENT and not unlike:
                yield made[len(prefix) + index % _DIFFERENT]
                continue
            item = self._make(part, place, trail, variant + index)
            if item is None:
                return
            if unlike:
                text = json.dumps(item.value, sort_keys=True)
                if text in seen:
                    continue
                seen.add(text)
            made.append(item)
            yield item

    def _length(self, least: int, most: int | None, where: Where) -> int:
        """How many items: as few or as many as may be, or between."""
        top = max(least, 3) if most is None else most
        match self._plan.size:
            case Size.SMALLEST:
                return least
            case Size.LARGEST:
                return top
            case _:
                usual = max((least + top) // 2, min(1, top))
                candidates = list(dict.fromkeys((usual, least, min(top, least + 3))))
                return candidates[self._index((*where, "#"), len(candidates), 0)]

    def _object(self, way: Way, where: Where, variant: int) -> Made | None:
        schema = way.schema
        members = dict(schema.get("properties", {}))
        required = set(schema.get("required", ()))
        for name in schema.get("required", ()):
            if name not in members:
                members[name] = self._open(schema)
        self.work.spend(len(members))
        least, most = int(schema.get("minProperties", 0)), schema.get("maxProperties")
        for name, part in self._more(way, members, least, where, variant):
            members[name] = part
            if len(members) <= max(least, 1):
                required.add(name)
        found: dict[str, Made] = {}
        left_out: list[str] = []
        for name, part in members.items():
            place = (*where, name)
            if name not in required:
                self.optional.setdefault(place)
                if not self._plan.keeps(place, self._ordinal(place)) or (most is not None and len(found) >= int(most)):
                    left_out.append(name)
                    continue
            made = self._make(part, place, way.trail, variant)
            if made is not None:
                found[name] = made
            elif name in required:
                return None
        needed = {name for one in found for name in schema.get("dependentRequired", {}).get(one, ())}
        for name in left_out:
            if name in needed or len(found) < least:
                made = self._make(members[name], (*where, name), way.trail, variant)
                if made is not None:
                    found[name] = made
        if len(found) < least:
            return None
        width = sum(made.width + len(json.dumps(name)) + 4 for name, made in found.items())
        return Made({name: found[name].value for name in members if name in found}, max(width, 2))

    def _open(self, schema: Mapping[str, Any]) -> Any:
        """The schema of a member that is not among the properties."""
        return schema.get("additionalProperties", schema.get("unevaluatedProperties", True))

    def _more(
        self, way: Way, members: Mapping[str, Any], least: int, where: Where, variant: int
    ) -> list[tuple[str, Any]]:
        """Members of a map, whose names are data: one where none has a name in the schema, more where more must be."""
        schema = way.schema
        patterned: Mapping[str, Any] = schema.get("patternProperties", {})
        other = self._open(schema)
        spoken_of = bool(patterned) or ("additionalProperties" in schema and other is not False)
        if spoken_of:
            self._no_end((*where, "*"), "its members may have any name")
        wanted = max(least - len(members), 1 if spoken_of and not members else 0)
        found: dict[str, Any] = {}
        for index in range(wanted if wanted <= _MOST_NAMES else 0):
            if patterned:
                pattern, part = list(patterned.items())[index % len(patterned)]
                named = self._names({"pattern": pattern}, way, where, variant + index)
            else:
                part, named = other, self._names(schema.get("propertyNames", True), way, where, variant + index)
            if named is not None and named not in members:
                found[named] = part
        return list(found.items())

    def _names(self, schema: Any, way: Way, where: Where, variant: int) -> str | None:
        if schema is True:
            return f"name{variant + 1}"
        made = self._make({"allOf": [{"type": "string"}, schema]}, (*where, "~"), way.trail, variant)
        return made.value if made is not None and isinstance(made.value, str) else None
