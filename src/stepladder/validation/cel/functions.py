"""The functions of the expression language. ``value.name(x)`` and ``name(value, x)`` are the same call."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from string import ascii_lowercase, ascii_uppercase
from typing import TYPE_CHECKING, Any

import re2

from stepladder.schemas.canonical import identity
from stepladder.validation import jsonmath
from stepladder.validation.cel.run import Function, Run, unfit
from stepladder.validation.cel.times import EPOCH, TIME_FUNCTIONS, spelled
from stepladder.validation.jsonmath import EvaluationError, is_list, is_number, kind, whole

if TYPE_CHECKING:
    from collections.abc import Callable

# As much as a whole request body may hold; no rule needs to build more than it was given.
MAX_STRING = 1_000_000

# An RE2 program takes memory and time by its size: this fails patterns such as `\pL{1000}` and no honest one.
MAX_PATTERN = 1_000
MAX_PATTERN_MEMORY = 1 << 20

# A new pattern compiles in up to 10 ms, so that one evaluation may make a hundred of them.
_PATTERN_STEPS = 1_000

_TO_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)
_TO_UPPER = str.maketrans(ascii_lowercase, ascii_uppercase)
_INTEGER = re.compile(r"-?\d{1,308}", re.ASCII)
_NUMBER = re.compile(r"-?\d{1,308}(?:\.\d{1,400})?(?:[eE][+-]?\d{1,4})?", re.ASCII)


def join(run: Run, left: Any, right: Any) -> Any:
    """``+``: numbers add, strings and lists join, times move."""
    if is_number(left):
        return jsonmath.add(left, right)
    if isinstance(left, str) and isinstance(right, str):
        if len(left) + len(right) > MAX_STRING:
            raise EvaluationError(f"the string would have more than {MAX_STRING:,} characters")
        run.spend((len(left) + len(right)) // 100)
        return left + right
    if is_list(left) and is_list(right):
        run.spend(len(left) + len(right))
        return [*left, *right]
    times = (left, right)
    if any(isinstance(time, timedelta) for time in times) and all(isinstance(t, datetime | timedelta) for t in times):
        return left + right
    raise EvaluationError(f"+ does not apply to {kind(left)} and {kind(right)}")


def subtract(_: Run, left: Any, right: Any) -> Any:
    """``-``: numbers, and times apart."""
    if isinstance(left, datetime) and isinstance(right, datetime | timedelta):
        return left - right
    if isinstance(left, timedelta) and isinstance(right, timedelta):
        return left - right
    return jsonmath.subtract(left, right)


def contained(run: Run, item: Any, container: Any) -> bool:
    """``in``: a key of a map, an item of a list."""
    if isinstance(container, Mapping):
        return isinstance(item, str) and item in container
    if not is_list(container):
        raise EvaluationError(f"in takes a list or a map, not {kind(container)}")
    run.spend(len(container))
    return any(jsonmath.equal(item, other, run.spend) for other in container)


def _size(_: Run, value: Any) -> int:
    if isinstance(value, str | Mapping) or is_list(value):
        return len(value)
    raise unfit("size", "a string, a list or a map", value)


def _items(run: Run, function: str, values: tuple[Any, ...]) -> Any:
    items = values[0] if len(values) == 1 else values
    if not is_list(items):
        raise unfit(function, "a list", items)
    run.spend(len(items))
    return items


def _extreme(name: str, *, largest: bool) -> Callable[..., Any]:
    def pick(run: Run, *values: Any) -> Any:
        items = _items(run, name, values)
        if not items:
            raise EvaluationError(f"{name} of an empty list")
        best = items[0]
        for item in items:
            lower, higher = (best, item) if largest else (item, best)
            if jsonmath.less(lower, higher, run.spend):
                best = item
        return best

    return pick


def _unique(run: Run, values: Any) -> bool:
    items = _items(run, "unique", (values,))
    return len({identity(item, run.spend) for item in items}) == len(items)


def _abs(_: Run, value: Any) -> Any:
    if not is_number(value):
        raise unfit("abs", "a number", value)
    return abs(value)


def _text(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """A function of strings alone, paid for by their length."""

    def apply(run: Run, *values: Any) -> Any:
        if not all(isinstance(value, str) for value in values):
            raise unfit(name, "strings", *values)
        run.spend(sum(map(len, values)) // 100)
        return call(*values)

    return apply


def _split(run: Run, value: Any, separator: Any) -> list[str]:
    if not isinstance(value, str) or not isinstance(separator, str) or not separator:
        raise EvaluationError("split takes a string and a separator that is not empty")
    parts = value.split(separator)
    run.spend(len(parts) + len(value) // 100)
    return parts


def _join(run: Run, values: Any, separator: Any = "") -> str:
    items = _items(run, "join", (values,))
    if not isinstance(separator, str) or not all(isinstance(item, str) for item in items):
        raise EvaluationError("join takes a list of strings, and a separator string")
    length = sum(map(len, items)) + len(separator) * len(items)
    if length > MAX_STRING:
        raise EvaluationError(f"the string would have more than {MAX_STRING:,} characters")
    run.spend(length // 100)
    return separator.join(items)


def compile_pattern(pattern: str) -> Any:
    """RE2, whose time is linear in the text. Raises ``EvaluationError``."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_PATTERN_MEMORY
    if len(pattern) > MAX_PATTERN:
        raise EvaluationError(f"the pattern has more than {MAX_PATTERN:,} characters")
    try:
        return re2.compile(pattern, options)
    except UnicodeEncodeError:
        raise EvaluationError("the pattern holds half of a surrogate pair") from None
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        said = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise EvaluationError(f"not a valid RE2 pattern: {said}") from None


def _matches(run: Run, text: Any, pattern: Any) -> bool:
    if not isinstance(text, str) or not isinstance(pattern, str):
        raise unfit("matches", "two strings", text, pattern)
    if pattern not in run.patterns:
        run.spend(_PATTERN_STEPS)
        run.patterns[pattern] = compile_pattern(pattern)
    compiled = run.patterns[pattern]
    # RE2 visits, at the worst, each instruction at each character: some 4 ns apiece, where a step is some 0.5 us.
    run.spend(len(text) * compiled.programsize // 100)
    return compiled.search(text) is not None


def _int(_: Run, value: Any) -> int:
    if isinstance(value, datetime):
        return (value - EPOCH) // timedelta(seconds=1)
    if is_number(value) and math.isfinite(value):
        return int(value)
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        return int(value)
    raise EvaluationError(f"int takes a number or a string of digits, not {kind(value)}")


def _double(_: Run, value: Any) -> int | float:
    if is_number(value) or (isinstance(value, str) and _NUMBER.fullmatch(value)):
        return jsonmath.checked(float(value))
    raise EvaluationError(f"double takes a number or a string that spells one, not {kind(value)}")


def _bool(_: Run, value: Any) -> bool:
    if isinstance(value, bool) or value in ("true", "false"):
        return value in (True, "true")
    raise EvaluationError('bool takes true, false, "true" or "false"')


def _string(_: Run, value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime | timedelta):
        return spelled(value)
    if not is_number(value):
        raise unfit("string", "a scalar", value)
    integer = whole(jsonmath.checked(value))
    return repr(value) if integer is None else str(integer)


FUNCTIONS: Mapping[str, Function] = {
    **TIME_FUNCTIONS,
    "abs": Function(_abs, 1, 1),
    "bool": Function(_bool, 1, 1),
    "contains": Function(_text("contains", lambda text, piece: piece in text), 2, 2),
    "double": Function(_double, 1, 1),
    "dyn": Function(lambda _, value: value, 1, 1),
    "endsWith": Function(_text("endsWith", str.endswith), 2, 2),
    "int": Function(_int, 1, 1),
    "join": Function(_join, 1, 2),
    "lowerAscii": Function(_text("lowerAscii", lambda text: text.translate(_TO_LOWER)), 1, 1),
    "matches": Function(_matches, 2, 2),
    "max": Function(_extreme("max", largest=True), 1, 16),
    "min": Function(_extreme("min", largest=False), 1, 16),
    "round": Function(lambda _, value, digits=0: jsonmath.rounded(value, digits), 1, 2),
    "size": Function(_size, 1, 1),
    "split": Function(_split, 2, 2),
    "startsWith": Function(_text("startsWith", str.startswith), 2, 2),
    "string": Function(_string, 1, 1),
    "sum": Function(lambda run, values: jsonmath.total(_items(run, "sum", (values,))), 1, 1),
    "trim": Function(_text("trim", str.strip), 1, 1),
    "unique": Function(_unique, 1, 1),
    "upperAscii": Function(_text("upperAscii", lambda text: text.translate(_TO_UPPER)), 1, 1),
}
