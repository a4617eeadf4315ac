"""What a retry tells the model: where its last answer was wrong and why, and never the answer itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepladder.schemas.outcomes import Cause, Outcome

if TYPE_CHECKING:
    from stepladder.schemas.answer import Verdict

MOST_ERRORS = 10
LONGEST_REASON = 300


def note_on(verdict: Verdict) -> str:
    """The text that extends the question, from the verdict on the latest answer alone."""
    if verdict.outcome is Outcome.TRUNCATION and verdict.cause == Cause.RUNAWAY:
        lines = ["- the answer repeated itself without end: keep it short, and end it"]
    elif verdict.errors:
        lines = [f"- {error.pointer or 'the answer'}: {error.reason[:LONGEST_REASON]}" for error in verdict.errors]
    else:
        lines = [f"- the answer: {verdict.outcome.value.replace('_', ' ')}"]
    if len(lines) > MOST_ERRORS:
        lines = [*lines[:MOST_ERRORS], f"- and {len(lines) - MOST_ERRORS} more"]
    return "\n\nYour last answer was not accepted:\n" + "\n".join(lines)
