"""What every part of the ladder says when an answer falls: what became of it, why, and in which words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepladder.schemas.outcomes import Cause, Outcome


@dataclass(frozen=True, slots=True)
class Failing:
    """One outcome with its cause (None for outcomes that have none) and a sentence about this very answer."""

    outcome: Outcome
    cause: Cause | None
    reason: str
