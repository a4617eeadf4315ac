"""What patterns may cost: no text and no pattern keeps a worker busy.

Nearly every pattern is matched in time linear in the text. One that looks around or back is matched by backtracking,
where each step may read the whole text once more: there both the steps and the characters are bounded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jsonschema_rs

from stepladder.validation.subschemas import patterns

if TYPE_CHECKING:
    from stepladder.validation.subschemas import Subschemas

MAX_STEPS = 20_000
"""Steps back in one match; the library's own bound is a million, which is seconds on 3,000 characters."""
MAX_CHARACTERS = 10_000
"""Characters in all names and texts of a value. With both bounds the worst pattern that was found takes 0.9 s."""

OPTIONS = jsonschema_rs.FancyRegexOptions(backtrack_limit=MAX_STEPS)


def backtracks(subschemas: Subschemas) -> bool:
    """Whether a schema whose patterns are sound has one that looks around or back."""
    return not all(_is_linear(text) for _, _, text in patterns(subschemas))


def _is_linear(pattern: str) -> bool:
    try:
        jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=jsonschema_rs.RegexOptions())
    except ValueError:
        return False
    return True


def characters(value: Any) -> int:
    """How many characters stand in all names and texts of a value."""
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
