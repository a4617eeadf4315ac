"""Somebody who acts: who submits a job, sends a signal, or says whether a tool took effect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Actor:
    """A name, and what its bearer may use. ``scopes`` None means all."""

    name: str
    scopes: frozenset[str] | None = None

    def lacks(self, wanted: Iterable[str]) -> list[str]:
        """The scopes of ``wanted`` that are not there, in order."""
        return [] if self.scopes is None else [scope for scope in wanted if scope not in self.scopes]


LOCAL = Actor("local")
"""Whoever sits at this machine, or at the database."""
