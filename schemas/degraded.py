"""The degraded result of a failed turn. It is not an output: the machine never reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stepladder.schemas.outcomes import Outcome  # noqa: TC001 -- pydantic reads it, in the API's models


@dataclass(frozen=True, slots=True)
class Loss:
    """One thing that is lost or unsure: where in the answer (a JSON pointer), and why."""

    pointer: str
    reason: str


@dataclass(frozen=True, slots=True)
class Degraded:
    """The salvaged ``value``, everything that is ``lost``, and the attempt that it comes from.

    ``attempt`` is that attempt's ordinal in the turn, ``outcome`` its outcome: never ``valid``.
    """

    value: Any
    lost: tuple[Loss, ...]
    attempt: int
    outcome: Outcome
