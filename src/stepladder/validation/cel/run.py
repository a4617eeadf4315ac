"""One evaluation of an expression: what it reads, and the steps that it has left."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stepladder.validation.jsonmath import EvaluationError, kind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# About 0.1 s of one core at the worst. A turn's answer has a few hundred values, and a rule visits each a few times.
MAX_STEPS = 100_000


class ExhaustedError(Exception):
    """No steps are left. Unlike an ``EvaluationError``, ``||`` and ``&&`` do not absorb it."""


@dataclass(slots=True)
class Run:
    """One evaluation: the root names, the macros' variables, and the steps that are left."""

    names: Mapping[str, Any]
    slots: list[Any]
    left: int = MAX_STEPS
    patterns: dict[str, Any] = field(default_factory=dict)

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise ExhaustedError


@dataclass(frozen=True, slots=True)
class Function:
    """``call`` takes the run and then between ``least`` and ``most`` values."""

    call: Callable[..., Any]
    least: int
    most: int


def unfit(function: str, wants: str, *values: Any) -> EvaluationError:
    return EvaluationError(f"{function} takes {wants}, not {' and '.join(kind(value) for value in values)}")
