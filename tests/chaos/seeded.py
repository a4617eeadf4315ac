"""Random numbers that a seed reproduces."""

from __future__ import annotations

import random


def seeded_random(*words: object) -> random.Random:
    """A generator that yields the same numbers for the same words."""
    return random.Random(" ".join(map(str, words)))  # noqa: S311 -- no secret
