"""Whether one value can fit two branches of a ``oneOf``, as far as their keywords show."""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from stepladder.lint.audit.kinds import values_of
from stepladder.lint.audit.vocabulary import properties_of, required_of
from stepladder.schemas.canonical import canonical

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stepladder.lint.audit.kinds import KindReader
    from stepladder.schemas.pointer import Path
    from stepladder.validation.subschemas import Subschemas

MAX_VALUES = 1000  # of two lists; longer ones are taken to differ
BOUNDS = (("minimum", "maximum"), ("minLength", "maxLength"), ("minItems", "maxItems"))


class Overlap(Enum):
    """Some engines refuse branches that only bounds tell apart."""

    EXCLUDED = auto()
    EXCLUDED_BY_BOUNDS = auto()
    POSSIBLE = auto()


def overlap(one: Path, other: Path, subschemas: Subschemas, kinds: KindReader) -> Overlap:
    """Whether a value may fit both schemas."""
    first, second = kinds.of(one), kinds.of(other)
    if first is not None and second is not None and not _with_integers(first) & _with_integers(second):
        return Overlap.EXCLUDED
    (one, left), (other, right) = subschemas.followed(one), subschemas.followed(other)
    if _values_differ(left, right) or _forbids(left, right):
        return Overlap.EXCLUDED
    both = {*required_of(left)} & {*required_of(right)} & {*properties_of(left)} & {*properties_of(right)}
    for name in both:
        ours, theirs = (subschemas.followed((*path, "properties", name))[1] for path in (one, other))
        if _values_differ(ours, theirs):
            return Overlap.EXCLUDED
    return Overlap.EXCLUDED_BY_BOUNDS if _bounds_differ(left, right) else Overlap.POSSIBLE


def _with_integers(kinds: frozenset[str]) -> frozenset[str]:
    return kinds | {"integer"} if "number" in kinds else kinds


def _values_differ(left: Any, right: Any) -> bool:
    ours, theirs = values_of(left), values_of(right)
    if ours is None or theirs is None:
        return False
    if len(ours) + len(theirs) > MAX_VALUES:
        return True
    try:
        return not {canonical(value) for value in ours} & {canonical(value) for value in theirs}
    except ValueError:
        return False


def _forbids(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    """A field that one requires and the other forbids."""
    return any(
        {*required_of(one)} - {*properties_of(closed)}
        and closed.get("additionalProperties") is False
        and "patternProperties" not in closed
        for one, closed in ((left, right), (right, left))
    )


def _bounds_differ(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    for low, high in BOUNDS:
        for above, below in ((left, right), (right, left)):
            least, most = above.get(low), below.get(high)
            if isinstance(least, int | float) and isinstance(most, int | float) and least > most:
                return True
    return False
