"""Who acts: who submits a job, sends a signal, or settles whether a tool took effect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Actor:
    """A name and its permissions. ``scopes`` None means all."""

    name: str
    scopes: frozenset[str] | None = None

    def lacks(self, wanted: Iterable[str]) -> list[str]:
        """The missing scopes of ``wanted``, in order."""
        return [] if self.scopes is None else [scope for scope in wanted if scope not in self.scopes]


LOCAL = Actor("local")
"""Loopback clients when no keys are configured, and all users with database access."""
