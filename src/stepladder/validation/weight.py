"""How much it would cost to say where a value breaks its schema.

The validator answers whether a value fits in microseconds, however large it is. It is the list of all faults that is
dear: each carries its whole path, and each form of an ``anyOf`` has a list of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stepladder.validation.subschemas import Subschemas

MOST_VALUES = 5_000
"""Values of which all faults are listed. As many wrong ones take about 0.1 s; 300,000 would take 18 s."""
MOST_PATHS = 1_000_000
"""Characters in the paths to all those values together."""


def is_heavy(value: Any) -> bool:
    """Whether a value is too large for a list of all its faults."""
    count = length = 0
    waiting: list[tuple[int, Any]] = [(0, value)]
    while waiting:
        above, at = waiting.pop()
        count += 1
        length += above
        if count > MOST_VALUES or length > MOST_PATHS:
            return True
        match at:
            case str():
                pass
            case Mapping():
                waiting.extend((above + len(name) + 1, item) for name, item in at.items())
            case Sequence():
                if len(at) > MOST_VALUES:
                    return True
                waiting.extend((above + 6, item) for item in at)
    return False


def branches(subschemas: Subschemas) -> str | None:
    """The keyword by which a schema offers several forms, if it has one anywhere."""
    found = [part for part in subschemas.by_path.values() if isinstance(part, Mapping)]
    return next((word for word in ("anyOf", "oneOf") for part in found if word in part), None)
