"""A retry's note to the model: where its last answer was wrong and why, and never the answer itself.

The ladder's reasons name fields, and contain no value of the answer. A reason from a rule in Python is up to its
author, and is truncated; what such a rule raises is only for people, since it may quote any value.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stepladder.schemas.outcomes import Cause, Outcome

if TYPE_CHECKING:
    from stepladder.schemas.answer import Verdict, Violation

MOST_ERRORS = 10
LONGEST_REASON = 300
LONGEST_POINTER = 200

_RAISED = re.compile(r"(could not be checked: \w+): .*", re.DOTALL)
_BREAKS = re.compile("[\x00-\x1f\x7f\x85\u2028\u2029]+")


def note_on(verdict: Verdict) -> str:
    """The text that extends the question, from the verdict on the latest answer alone."""
    if verdict.outcome is Outcome.TRUNCATION and verdict.cause == Cause.RUNAWAY:
        lines = ["- the answer repeated itself without end: keep it short, and end it"]
    elif verdict.errors:
        lines = [_line(error) for error in verdict.errors[:MOST_ERRORS]]
        if len(verdict.errors) > MOST_ERRORS:
            lines.append(f"- and {len(verdict.errors) - MOST_ERRORS} more")
    else:
        lines = [f"- the answer: {verdict.outcome.value.replace('_', ' ')}"]
    return "\n\nYour last answer was not accepted:\n" + "\n".join(lines)


def _line(error: Violation) -> str:
    where = error.pointer[:LONGEST_POINTER] or "the answer"
    why = _RAISED.sub(r"\1", error.reason)[:LONGEST_REASON]
    return _BREAKS.sub(" ", f"- {where}: {why}")
