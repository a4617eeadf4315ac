"""What an experiment is for."""

from __future__ import annotations

from enum import StrEnum


class ExperimentKind(StrEnum):
    """Two variants on the same inputs, one job many times, or a variant beside a share of live jobs."""

    COMPARISON = "comparison"
    STABILITY = "stability"
    SHADOW = "shadow"
