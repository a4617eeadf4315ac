"""Numbers that fit a schema: its bounds, what stands between them, and what is odd about JSON's numbers."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_HUGE = 10**20  # beyond what 64 bits and what a double hold exactly
_SPLIT = Fraction(7_310_585_786_300_049, 10**16)  # part of the way between two bounds: a number of many digits


def bounded(schema: Mapping[str, Any]) -> bool:
    """Whether there is a least and a greatest number, and so a greatest number of digits before the point."""
    return any(name in schema for name in ("minimum", "exclusiveMinimum")) and any(
        name in schema for name in ("maximum", "exclusiveMaximum")
    )


def numbers(schema: Mapping[str, Any], *, integer: bool) -> list[int | float]:
    """Numbers within the bounds, a usual one first: the bounds themselves, 36.0 for 36, fractions, a huge integer.

    Of those that have a fraction some may miss the step of a ``multipleOf`` by a rounding error.
    """
    low, high = _low(schema), _high(schema)
    if low is not None and high is not None and low > high:
        return []
    usual = _usual(low, high)
    if "multipleOf" in schema or integer:
        step = _exact(schema.get("multipleOf", 1))
        wanted = _steps(usual, low, high, step * step.denominator if integer else step)
    else:
        near, far = (usual - 1000 if low is None else low), (usual + 1000 if high is None else high)
        wanted = [usual, near, far, *map(Fraction, (0, 36, -1, _HUGE)), Fraction(1, 2)]
        wanted += [near + (far - near) * part for part in (Fraction(1, 4), _SPLIT)]
    fitting = [value for value in wanted if _fits(schema, value)]
    written = [_number(value) for value in fitting]
    written += [float(value) for value in fitting[:2] if value.denominator == 1 and abs(value) < 2**53]
    return list({repr(value): value for value in written if math.isfinite(value)}.values())


def _steps(usual: Fraction, low: Fraction | None, high: Fraction | None, step: Fraction) -> list[Fraction]:
    """Multiples of ``step``: around the usual number, and the first and the last within the bounds."""
    middle = usual // step
    counts = [middle, middle + 1, 0, 1, -1, 36, _HUGE]
    if low is not None:
        counts += [-(-low // step), low // step + 1]
    if high is not None:
        counts += [high // step, -(-high // step) - 1]
    return [count * step for count in counts]


def _exact(value: float) -> Fraction:
    """The number as it is written: 0.01 is a hundredth."""
    return Fraction(repr(value))


def _low(schema: Mapping[str, Any]) -> Fraction | None:
    return max((_exact(schema[name]) for name in ("minimum", "exclusiveMinimum") if name in schema), default=None)


def _high(schema: Mapping[str, Any]) -> Fraction | None:
    return min((_exact(schema[name]) for name in ("maximum", "exclusiveMaximum") if name in schema), default=None)


def _fits(schema: Mapping[str, Any], value: Fraction) -> bool:
    return (
        ("minimum" not in schema or value >= _exact(schema["minimum"]))
        and ("maximum" not in schema or value <= _exact(schema["maximum"]))
        and ("exclusiveMinimum" not in schema or value > _exact(schema["exclusiveMinimum"]))
        and ("exclusiveMaximum" not in schema or value < _exact(schema["exclusiveMaximum"]))
    )


def _usual(low: Fraction | None, high: Fraction | None) -> Fraction:
    """Half-way between the bounds, as a whole number where there is one; else 36, or what is nearest to it."""
    if low is not None and high is not None:
        middle = (low + high) / 2
        return Fraction(round(middle)) if low <= round(middle) <= high else middle
    usual = Fraction(36)
    if low is not None and low >= usual:
        usual = low + 36
    if high is not None and high <= usual:
        usual = high - 36
    return usual


def _number(value: Fraction) -> int | float:
    if value.denominator == 1 and abs(value) <= _HUGE:
        return value.numerator
    try:
        return float(value)
    except OverflowError:
        return math.inf
