"""Sample values that fit a JSON Schema: the smallest, the largest, a usual one, and some that vary everything.

No chance is in it, so that the same schema gives the same samples, and whatever is found with them is found again.
(The libraries that make samples draw them at random, for tests.) Every sample has passed the schema's own validator;
where a part of a schema is too odd to be met, such as a pattern with look-around, there is no sample with that part.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepladder.lint.maker import Maker, Plan, Size, SpentError, Where, Work

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepladder.schemas.jsontypes import Json
    from stepladder.validation.schema import Schema

MOST = 48
WORK = 20_000
"""For the samples of one schema; a unit takes up to 10 µs."""
LARGE_WORK = 50_000
LARGE_ROOM = 100_000
"""Characters of the largest sample: some 25,000 tokens, for which a fast model takes minutes."""

_ROUNDS = 24
_MIXED_ROUNDS = 16
_LEFT_OUT = 24


@dataclass(frozen=True, slots=True)
class Sample:
    """A value, which may be null."""

    value: Json


@dataclass(frozen=True, slots=True)
class Extent:
    """How long an answer may be. ``usual`` is half-way between all bounds, with every member.

    ``largest`` is None where there is no end, and ``endless`` then says where and why: ``("/text", "it has no
    `maxLength`")``, a pointer into the answer with ``*`` for any item. It is also None where no sample was found.
    """

    usual: Sample | None
    largest: Sample | None
    endless: tuple[tuple[str, str], ...] = ()


def instances(schema: Schema, most: int = MOST, work: int = WORK) -> tuple[Json, ...]:
    """At most ``most`` samples, each another, the usual one first. Empty where none is found. Raises nothing.

    Each word of an enum, each branch, each bound, each optional member left out alone stands in at least one of them,
    as far as ``most`` and ``work`` reach. Strings and arrays are kept short.
    """
    found: dict[str, Json] = {}
    maker = Maker(schema.schema, Work(work))
    for plan in _plans(maker):
        if len(found) >= most:
            break
        sample = _sample(schema, maker, plan)
        if sample is not None:
            found.setdefault(json.dumps(sample.value), sample.value)
        if maker.work.left < 0:
            break
    return tuple(found.values())


def smallest(schema: Schema) -> Sample | None:
    """The sample that is shortest as JSON, or None where none is found."""
    return _sample(schema, Maker(schema.schema, Work(WORK)), Plan(Size.SMALLEST))


def extent(schema: Schema) -> Extent:
    """How long the answers may be that fit."""
    usual = _sample(schema, Maker(schema.schema, Work(LARGE_WORK)), Plan(room=LARGE_ROOM))
    maker = Maker(schema.schema, Work(LARGE_WORK))
    largest = _sample(schema, maker, Plan(Size.LARGEST, room=LARGE_ROOM))
    endless = tuple(("".join(f"/{step}" for step in where), why) for where, why in maker.endless.items())
    return Extent(usual, None if endless else largest, endless)


def _plans(maker: Maker) -> Iterator[Plan]:
    """What the maker learns of the schema by the first plans says how many more there are to be."""
    yield Plan()
    yield Plan(Size.SMALLEST)
    yield Plan(Size.LARGEST)
    done: set[Where] = set()
    for number in range(1, _ROUNDS):
        if number < max(maker.choices.values(), default=1):
            yield Plan(round=number)
        for where in list(maker.optional)[:_LEFT_OUT]:
            if where not in done:
                done.add(where)
                yield Plan(without=where)
    yield from (Plan(round=number, mixed=True) for number in range(_MIXED_ROUNDS))


def _sample(schema: Schema, maker: Maker, plan: Plan) -> Sample | None:
    try:
        made = maker.make(plan)
    except SpentError:
        return None
    if made is None or schema.violations(made.value):
        return None
    return Sample(made.value)
