"""What checking a value may cost: no schema, pattern or value keeps a worker busy.

Nearly every pattern is matched in time linear in the text. One with a lookaround or a backreference is matched by
backtracking, where each step may read the whole text again: there both steps and characters are bounded. Whether a
value fits is known in microseconds, however large it is; the list of everything that is wrong with it is expensive,
since each error carries its whole path, and each branch of an ``anyOf`` has its own list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jsonschema_rs

from stepladder.validation.subschemas import patterns

if TYPE_CHECKING:
    from stepladder.validation.subschemas import Subschemas

MAX_STEPS = 20_000
"""Backtracking steps in one match; the library's own bound is a million, which is seconds on 3,000 characters."""
MAX_CHARACTERS = 10_000
"""Characters in all names and strings of a value. With both bounds the worst known pattern takes 0.9 s."""
MAX_VALUES = 5_000
"""Values of which all errors are listed. If all are wrong that takes about 0.1 s; 300,000 would take 18 s."""
MAX_PATHS = 1_000_000
"""Characters in the paths to all those values together."""

OPTIONS = jsonschema_rs.FancyRegexOptions(backtrack_limit=MAX_STEPS)


def backtracks(subschemas: Subschemas) -> bool:
    """Whether a schema has a pattern with a lookaround or a backreference. All its patterns must be valid."""
    return not all(_is_linear(text) for _, _, text in patterns(subschemas))


def _is_linear(pattern: str) -> bool:
    try:
        jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=jsonschema_rs.RegexOptions())
    except ValueError:
        return False
    return True


def characters(value: Any) -> int:
    """The number of characters in all names and strings of a value."""
    count = 0
    waiting = [value]
    while waiting:
        match waiting.pop():
            case str(text):
                count += len(text)
            case Mapping() as named:
                waiting.extend(named)
                waiting.extend(named.values())
            case Sequence() as items:
                waiting.extend(items)
    return count


def is_heavy(value: Any) -> bool:
    """Whether a value is too large for a list of all its errors."""
    count = length = 0
    waiting: list[tuple[int, Any]] = [(0, value)]
    while waiting:
        above, at = waiting.pop()
        count += 1
        length += above
        if count > MAX_VALUES or length > MAX_PATHS:
            return True
        match at:
            case str():
                pass
            case Mapping():
                waiting.extend((above + len(name) + 1, item) for name, item in at.items())
            case Sequence():
                if len(at) > MAX_VALUES:
                    return True
                waiting.extend((above + 6, item) for item in at)
    return False


def alternatives(subschemas: Subschemas) -> str | None:
    """The keyword, ``anyOf`` or ``oneOf``, that a schema uses anywhere; None if it uses neither."""
    found = [part for part in subschemas.by_path.values() if isinstance(part, Mapping)]
    return next((word for word in ("anyOf", "oneOf") for part in found if word in part), None)
