"""Why an answer is not valid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepladder.schemas.answer import Violation

if TYPE_CHECKING:
    from stepladder.schemas.outcomes import Cause, Outcome


@dataclass(frozen=True, slots=True)
class Rejection:
    """``cause`` is a ``Cause``, a keyword or a rule's id, by outcome; None for outcomes that have no causes."""

    outcome: Outcome
    cause: str | None
    errors: tuple[Violation, ...]

    @classmethod
    def of(cls, outcome: Outcome, cause: Cause | None, reason: str) -> Rejection:
        """A rejection of the answer as a whole."""
        return cls(outcome, cause, (Violation("", reason),))

    @property
    def reason(self) -> str:
        return self.errors[0].reason
