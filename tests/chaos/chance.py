"""Chance that a seed can repeat."""

from __future__ import annotations

import random


def chance_of(*words: object) -> random.Random:
    """Always the same for the same words."""
    return random.Random(" ".join(map(str, words)))  # noqa: S311 -- no secret
