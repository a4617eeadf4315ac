"""The largest valid answer to a schema.

The same schema always has the same answer, and it has passed the validator. There is no answer where a part cannot be
built, such as a string for a pattern with a look-around.
"""

from __future__ import annotations

import json
import operator
import re
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from stepladder.lint.audit.regex import longest
from stepladder.lint.audit.vocabulary import BOUNDED_FORMATS
from stepladder.lint.patterns import read_pattern
from stepladder.lint.values import SpentError, Value, Values, Work

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from stepladder.lint.values import Part
    from stepladder.schemas.jsontypes import Json
    from stepladder.schemas.pointer import Path
    from stepladder.validation.schema import Schema

WORK = 50_000
ROOM = 100_000
"""Maximum characters of the largest answer: some 25,000 tokens, for which a fast model takes minutes."""
MAX_DEPTH = 50
"""Nested objects and arrays; each takes some of Python's 1,000 frames."""
_MOST_NAMES = 100  # invented for an object with `minProperties`
_ANY_ITEM = {"type": ["string", "number"], "maxLength": 24}
_MANY_DIGITS = Fraction(7_310_585_786_300_049, 10**16)  # of the distance between two bounds
_FORMATS: Mapping[str, tuple[str, str]] = {
    "date": ("2026-01-31", "2026-01-31"),
    "date-time": ("2026-01-31T12:00:00Z", "2024-02-29T23:59:59.999999+02:00"),
    "time": ("12:00:00Z", "23:59:59.999999+02:00"),
    "duration": ("P1D", "P1Y2M3DT4H5M6S"),
    **dict.fromkeys(("email", "idn-email"), ("ann@example.org", "ann.lee+orders@mail.example.org")),
    **dict.fromkeys(("hostname", "idn-hostname"), ("example.org", "gpu-1.mail.example.org")),
    "ipv4": ("10.0.0.1", "255.255.255.255"),
    "ipv6": ("::1", "2001:0db8:85a3:0000:0000:8a2e:0370:7334"),
    "uuid": ("01234567-89ab-4def-8123-456789abcdef", "01234567-89ab-4def-8123-456789abcdef"),
    "json-pointer": ("", "/records/0/item"),
    "relative-json-pointer": ("0", "1/records/0"),
    "regex": ("a", "^[A-Z]+[0-9]{4}$"),
    **dict.fromkeys(("uri", "iri"), ("https://example.org/a", "https://example.org/orders/4711?item=chair&count=12")),
    **dict.fromkeys(("uri-reference", "iri-reference", "uri-template"), ("/a", "/orders/4711?item=chair&count=12")),
}
"""A short and a long string of each format."""
# Four characters a token, as in prose, with names, numbers and signs, as in real answers.
_PROSE = (
    "The team asked for 12 chairs and 3 desks on Monday; the invoice of Harrow & Sons (no. 4711) came late, "
    "and 1,284.50 euros were refunded to customer A-2093. Nobody objected: the warehouse in Leeds had two left. "
)
_STARTS = [0, *(found.end() for found in re.finditer(" (?=.)", _PROSE))]

Where = tuple[str, ...]
_LOWER, _UPPER = ("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")
_BOUNDS = {
    "minimum": operator.ge,
    "maximum": operator.le,
    "exclusiveMinimum": operator.gt,
    "exclusiveMaximum": operator.lt,
}


class Answer(NamedTuple):
    """A value, which may be null, and how many characters it takes as JSON."""

    value: Json
    width: int


@dataclass(frozen=True, slots=True)
class Extent:
    """``largest`` has everything at its upper bound, with every member.

    It is None if there is no limit, and ``endless`` then has the places and reasons: ``("/text", "it has no
    `maxLength`")``, a pointer into the answer with ``*`` for any item. It is also None if no answer was found.
    """

    largest: Answer | None
    endless: tuple[tuple[str, str], ...] = ()


def extent(schema: Schema) -> Extent:
    """Never raises."""
    builder = _Builder(schema.schema)
    try:
        answer = builder.build([((), schema.schema)], (), frozenset(), 0)
    except SpentError:
        answer = None
    endless = tuple(("".join(f"/{step}" for step in where), why) for where, why in builder.endless.items())
    return Extent(None if endless or answer is None or schema.violations(answer.value) else answer, endless)


@dataclass
class _Builder:
    """Builds one answer. Different values of ``variant`` give different items, for ``uniqueItems``."""

    root: Json
    work: Work = field(default_factory=lambda: Work(WORK))
    endless: dict[Where, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._values = Values(self.root, self.work.spend)

    def build(self, parts: Sequence[Part], where: Where, trail: frozenset[Path], variant: int) -> Answer | None:
        """None if no valid value is found. Raises ``SpentError``."""
        self.work.spend(1)
        if len(where) > MAX_DEPTH:
            return None
        values = self._values.of(parts, trail)
        if trail and not values:
            self._no_end(where, "it contains values of its own kind")
        kinds = [(one, kind) for one in values for kind in (one.likely_types if one.listed is None else ["listed"])]
        built = (self._of_kind(kind, one, where, variant) for one, kind in kinds)
        return max((one for one in built if one is not None), key=lambda answer: answer.width, default=None)

    def _of_kind(self, kind: str, one: Value, where: Where, variant: int) -> Answer | None:
        if one.types is None and kind != "listed":
            self._no_end(where, "it has no `type`")
        match kind:
            case "listed":
                return self._leaf(one.listed or (), variant)
            case "null":
                return Answer(None, 4)
            case "boolean":
                return self._leaf([True, False], variant)
            case "integer" | "number":
                if not (one.has(*_LOWER) and one.has(*_UPPER)):
                    self._no_end(where, "it has no `minimum` and `maximum`")
                return self._leaf(_numbers(one, integer=kind == "integer"), variant)
            case "string":
                return self._text(one, where, variant)
            case "array":
                return self._array(one, where, variant)
            case _:
                return self._object(one, where, variant)

    def _leaf(self, values: Iterable[Json], variant: int) -> Answer | None:
        found = [Answer(value, _width(value)) for value in values]
        self.work.spend(len(found) + sum(answer.width for answer in found) // 50)
        found.sort(key=lambda answer: -answer.width)
        return found[variant % len(found)] if found else None

    def _no_end(self, where: Where, why: str) -> None:
        self.endless.setdefault(where, why)

    def _text(self, one: Value, where: Where, variant: int) -> Answer | None:
        least = int(max(one.all("minLength"), default=0))
        name, pattern = (next(iter(one.all(word)), None) for word in ("format", "pattern"))
        matched = longest(str(pattern or ""))
        most = int(min(one.all("maxLength"), default=max(least, 80) if matched is None else matched))
        if not one.has("maxLength") and name not in BOUNDED_FORMATS and matched is None:
            self._no_end(where, "it has no `maxLength`")
        elif most > ROOM:
            self._no_end(where, f"it may be longer than {ROOM:,} characters")
        most = min(most, ROOM)
        if most < least:
            return None
        if name in _FORMATS:
            return self._leaf([text for text in _FORMATS[str(name)] if least <= len(text) <= most], 0)
        if pattern is None:
            start = _STARTS[variant % len(_STARTS)]
            return self._leaf([(_PROSE[start:] + _PROSE * (most // len(_PROSE) + 1))[:most]], 0)
        read = read_pattern(str(pattern))
        text = None if read is None or read.shortest > most else read.text(most)
        return None if text is None else self._leaf([text], 0)

    def _array(self, one: Value, where: Where, variant: int) -> Answer | None:
        contained = [((*path, "contains"), schema["contains"]) for path, schema in one.parts if "contains" in schema]
        if max(one.all("minContains"), default=1) <= 0:
            contained = []
        first = [one.item(index) for index in range(one.prefix)]
        rest = [part for part in one.item(one.prefix) if part[1] not in (True, {})] or [((), _ANY_ITEM)]
        if contained:
            first.append([*rest, *contained])
        least = int(max([*one.all("minItems"), len(first) if contained else 0]))
        most = int(min(one.all("maxItems"))) if one.has("maxItems") else None
        if any(schema is False for _, schema in rest):
            most = len(first) if most is None else min(most, len(first))
        if most is None:
            self._no_end(where, "it has no `maxItems`")
        elif rest[0][1] is _ANY_ITEM and most > len(first):
            self._no_end((*where, "*"), "it has no `type`")
        count = max(least, 1) if most is None else most
        items: list[Answer] = []
        seen: set[str] = set()
        unlike = any(one.all("uniqueItems"))
        width = 0
        while len(items) < count and width <= ROOM:
            self.work.spend(1)
            if len(items) > len(first) and not unlike:
                item: Answer | None = items[-1]  # all further items are alike
            else:
                part = first[len(items)] if len(items) < len(first) else rest
                item = self.build(part, (*where, "*"), one.trail, variant + len(items) if unlike else variant)
            if item is None:
                break
            if unlike:
                text = json.dumps(item.value, sort_keys=True)
                if text in seen:
                    break
                seen.add(text)
            items.append(item)
            width += item.width + 2
        if width > ROOM:
            self._no_end(where, f"it may be longer than {ROOM:,} characters")
        return None if len(items) < least else Answer([item.value for item in items], max(2, width))

    def _object(self, one: Value, where: Where, variant: int) -> Answer | None:
        required = one.required
        members = one.members | {name: one.member(name) for name in required if name not in one.members}
        least = int(max(one.all("minProperties"), default=0))
        others = one.all("additionalProperties")
        if any(one.all("patternProperties")) or (others and False not in others):
            self._no_end((*where, "*"), "its members may have any name")
            least = max(least, 1)
        if len(members) < least <= _MOST_NAMES:
            for path, schema in one.parts:
                for pattern, part in schema.get("patternProperties", {}).items():
                    named = read_pattern(pattern)
                    name = (named and named.text(0)) or pattern
                    members.setdefault(name, [((*path, "patternProperties", pattern), part)])
            for number in range(least - len(members)):
                members[f"name{number + 1}"] = one.member(f"name{number + 1}")
        self.work.spend(len(members))
        found: dict[str, Answer] = {}
        for name, part in members.items():
            answer = self.build(part, (*where, name), one.trail, variant)
            if answer is not None:
                found[name] = answer
            elif name in required:
                return None
        if len(found) < least:
            return None
        surplus = len(found) - int(min(one.all("maxProperties"), default=len(found)))
        optional = sorted((name for name in found if name not in required), key=lambda name: found[name].width)
        for name in optional[: max(0, surplus)]:
            del found[name]
        width = sum(answer.width + _width(name) + 4 for name, answer in found.items())
        return Answer({name: answer.value for name, answer in found.items()}, max(width, 2))


def _width(value: Json) -> int:
    return len(json.dumps(value, ensure_ascii=False))


def _numbers(one: Value, *, integer: bool) -> list[int | float]:
    """Candidates within the bounds: the bounds and a number with many digits."""
    low = max((_exact(bound) for word in _LOWER for bound in one.all(word)), default=None)
    high = min((_exact(bound) for word in _UPPER for bound in one.all(word)), default=None)
    least = low if low is not None else min(Fraction(0), high or Fraction(0))
    most = high if high is not None else max(Fraction(72), 2 * least)
    wanted = [least, most, least + (most - least) * _MANY_DIGITS]
    if integer or one.has("multipleOf"):
        step = _exact(next(iter(one.all("multipleOf")), 1))
        step = step * step.denominator if integer else step
        wanted = [(value // step + more) * step for value in wanted for more in (0, 1, -1)]
    within = (value for value in wanted if _is_within(one, value))
    return [number for value in within if (number := _number(value)) is not None]


def _exact(value: float) -> Fraction:
    """The number as written: 0.01 is a hundredth."""
    return Fraction(repr(value))


def _is_within(one: Value, value: Fraction) -> bool:
    return all(compare(value, _exact(bound)) for word, compare in _BOUNDS.items() for bound in one.all(word))


def _number(value: Fraction) -> int | float | None:
    """None if it is beyond a double."""
    if value.denominator == 1:
        return value.numerator
    try:
        return float(value)
    except OverflowError:
        return None
