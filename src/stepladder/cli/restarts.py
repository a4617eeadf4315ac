"""What follows when a process that should run has ended: pure, so that it can be read and tested as a table."""

from __future__ import annotations

from dataclasses import dataclass

FIRST_S = 0.5
LONGEST_S = 15.0
MOST_QUICK = 5
QUICK_S = 20.0
HOPELESS = 2
"""The exit code of bad usage or bad input, which will be as bad the next time."""


@dataclass(frozen=True, slots=True)
class Again:
    """Start it again after ``after_s`` seconds. ``quick`` ends in a row, this one included, came soon after a start."""

    after_s: float
    quick: int


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Starting it again would be in vain."""

    reason: str


def next_start(code: int, lived_s: float, quick: int) -> Again | GiveUp:
    """What follows an end with exit code ``code`` after ``lived_s`` seconds and ``quick`` quick ends in a row before.

    The first start comes after ``FIRST_S`` seconds, and the time doubles up to ``LONGEST_S``. A process that lived
    ``QUICK_S`` seconds has been of use: the count begins anew. The quick end after ``MOST_QUICK`` others is the last.
    """
    if code == HOPELESS:
        return GiveUp("its settings cannot be used")
    if lived_s >= QUICK_S:
        return Again(FIRST_S, 0)
    if quick >= MOST_QUICK:
        return GiveUp(f"it has ended {quick + 1} times in a row, each time within {QUICK_S:g} seconds")
    return Again(min(FIRST_S * 2**quick, LONGEST_S), quick + 1)


def ended_by(code: int) -> str:
    """An exit code as ``subprocess`` gives it, in words."""
    return f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
