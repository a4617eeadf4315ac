"""What JSON values mean to a rule: arithmetic, equality and order.

A JSON number has no type: 36, 36.0 and 3.6e1 are one number. So integral operands are computed as integers, exactly,
and the rest as IEEE doubles, the exact result rounded once. ``true`` is not a number, though Python thinks so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

# Four times what a document can hold (308 digits are 1,024 bits): products fit, and towers of squares do not.
MAX_INTEGER_BITS = 4_096

# Up to here a double holds every integer, so that turning one into a double loses nothing.
_EXACT_DOUBLE = 2**53

# Room for the digits of the largest and of the smallest double side by side, and of the largest integer.
_DECIMAL_DIGITS = 2_000

_ORDERED: tuple[Any, ...] = (str, bool, datetime, timedelta)


class EvaluationError(Exception):
    """Why an evaluation has no value. ``Expression.evaluate`` catches it. ``where`` is the failing subexpression."""

    def __init__(self, reason: str, missing: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.missing = missing
        self.where = ""


class MissingError(EvaluationError):
    """A name, a member or an item does not exist; ``missing`` is its dotted name if that begins with a root name."""


# These are asked of every value that a rule touches. Nearly always the exact type answers, ten times faster than an
# abstract class does.


def is_number(value: Any) -> TypeGuard[int | float]:
    exact = type(value)
    return exact is int or exact is float or (isinstance(value, int | float) and exact is not bool)


def is_map(value: Any) -> TypeGuard[Mapping[str, Any]]:
    return type(value) is dict or isinstance(value, Mapping)


def is_list(value: Any) -> TypeGuard[Sequence[Any]]:
    return type(value) is list or (isinstance(value, Sequence) and not isinstance(value, str | bytes))


def kind(value: Any) -> str:
    """The word for a value's type in messages."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case Mapping():
            return "a map"
        case datetime():
            return "a timestamp"
        case timedelta():
            return "a duration"
        case _:
            return "a list"


def whole(value: Any) -> int | None:
    """The integer that a number is, whichever way it was written; None for everything else."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def checked(value: int | float) -> int | float:
    """The number, if it is finite and within the bound."""
    if isinstance(value, int):
        if value.bit_length() > MAX_INTEGER_BITS:
            raise EvaluationError(f"the result has more than {MAX_INTEGER_BITS:,} bits")
    elif not math.isfinite(value):
        raise EvaluationError("the result is not a finite number")
    return value


def _arithmetic(symbol: str, exact: Callable[[Any, Any], Any]) -> Callable[[Any, Any], int | float]:
    def apply(left: Any, right: Any) -> int | float:
        if type(left) is int and type(right) is int:
            return checked(exact(left, right))
        if not (is_number(left) and is_number(right)):
            raise EvaluationError(f"{symbol} does not apply to {kind(left)} and {kind(right)}")
        a, b = whole(left), whole(right)
        if a is not None and b is not None:
            return checked(exact(a, b))
        if (a is None or abs(a) <= _EXACT_DOUBLE) and (b is None or abs(b) <= _EXACT_DOUBLE):
            return checked(exact(left, right))
        return _rounded_once(exact(_fraction(left), _fraction(right)))

    return apply


def _fraction(value: int | float) -> Fraction:
    return Fraction(checked(value))


def _rounded_once(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        raise EvaluationError("the result is not a finite number") from None


add = _arithmetic("+", lambda a, b: a + b)
subtract = _arithmetic("-", lambda a, b: a - b)
multiply = _arithmetic("*", lambda a, b: a * b)


def _quotient(a: Any, b: Any) -> Any:
    if b == 0:
        raise EvaluationError("division by zero")
    if isinstance(a, int) and isinstance(b, int):
        return a // b if a % b == 0 else _rounded_once(Fraction(a, b))
    return a / b


divide = _arithmetic("/", _quotient)


def modulo(left: Any, right: Any) -> int:
    """The remainder with the sign of ``left``, as CEL has it."""
    a, b = whole(left), whole(right)
    if a is None or b is None:
        raise EvaluationError("% takes whole numbers")
    if b == 0:
        raise EvaluationError("remainder of a division by zero")
    return abs(a) % abs(b) * (-1 if a < 0 else 1)


def negate(value: Any) -> int | float:
    if not is_number(value):
        raise EvaluationError(f"- takes a number, not {kind(value)}")
    return -value


def total(values: Iterable[Any]) -> int | float:
    """The sum, exact for whole numbers and otherwise the exact sum rounded once: ten times 0.1 is 1."""
    numbers = list(values)
    for value in numbers:
        if not is_number(value):
            raise EvaluationError(f"sum takes a list of numbers, and one item is {kind(value)}")
    integers = [whole(number) for number in numbers]
    if None not in integers:
        return checked(sum(filter(None, integers)))
    if any(integer is not None and abs(integer) > _EXACT_DOUBLE for integer in integers):
        return _rounded_once(sum((_fraction(number) for number in numbers), Fraction()))
    return checked(math.fsum(numbers))


def rounded(value: Any, digits: Any = 0) -> int | float:
    """Half away from zero, on the decimal digits that one sees: ``rounded(2.675, 2)`` is 2.68."""
    places = whole(digits)
    if not is_number(value) or places is None or abs(places) > 308:
        raise EvaluationError("round takes a number, and a whole number of digits between -308 and 308")
    checked(value)
    if isinstance(value, int) and places >= 0:
        return value
    shown = Decimal(value) if isinstance(value, int) else Decimal(repr(value))
    result = shown.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP, Context(prec=_DECIMAL_DIGITS))
    return int(result) if places <= 0 else checked(float(result))


def equal(left: Any, right: Any, spend: Callable[[int], None]) -> bool:
    """JSON equality; values of different types are unequal, never an error. ``spend`` counts the steps."""
    if isinstance(left, str):
        if isinstance(right, str) and len(left) == len(right):
            spend(len(left) // 100)
            return left == right
        return False
    if isinstance(left, bool) or isinstance(right, bool) or left is None or right is None:
        return left is right
    if is_number(left):
        return is_number(right) and left == right
    if isinstance(left, datetime | timedelta):
        return type(left) is type(right) and bool(left == right)
    if is_map(left):
        if not is_map(right) or len(left) != len(right):
            return False
        spend(len(left))
        return all(name in right and equal(item, right[name], spend) for name, item in left.items())
    if not is_list(left) or not is_list(right) or len(left) != len(right):
        return False
    spend(len(left))
    return all(equal(a, b, spend) for a, b in zip(left, right, strict=True))


def less(left: Any, right: Any, spend: Callable[[int], None]) -> bool:
    """The order of numbers, strings (by code point), booleans, timestamps and durations, each among themselves."""
    if is_number(left) and is_number(right):
        return left < right
    for family in _ORDERED:
        if isinstance(left, family) and isinstance(right, family):
            if isinstance(left, str):
                spend(len(left) // 100)
            return bool(left < right)
    raise EvaluationError(f"{kind(left)} and {kind(right)} have no order")
