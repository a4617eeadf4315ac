"""Calls timed against each other in one process, so that what slows the machine down slows all of them."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from time import process_time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

BATCH_S = 0.005
"""CPU seconds that one batch of calls takes at the least: far above the clock's steps, far below a change of load."""


@dataclass(frozen=True, slots=True)
class Times:
    """CPU microseconds of one call: one figure a round, the rounds of all calls side by side."""

    rounds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.rounds)

    def over(self, other: Times) -> float:
        """How many times as long as ``other``: the median of the rounds' own ratios."""
        return statistics.median(a / b for a, b in zip(self.rounds, other.rounds, strict=True))


def measured(calls: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, Times]:
    """Each call in batches, a batch of every one in turn, ``rounds`` times over."""
    sizes = {name: _size(call) for name, call in calls.items()}
    found: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            found[name].append(_batch(call, sizes[name]) / sizes[name] * 1e6)
    return {name: Times(tuple(figures)) for name, figures in found.items()}


def _size(call: Callable[[], object]) -> int:
    size = 1
    while _batch(call, size) < BATCH_S:
        size *= 2
    return size


def _batch(call: Callable[[], object], size: int) -> float:
    began = process_time()
    for _ in range(size):
        call()
    return process_time() - began
