"""What the pages work with, and who asks for them."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

from stepladder.api.access import Principal, Scope
from stepladder.api.problems import not_found
from stepladder.schemas.job import JobStatus

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

    from stepladder.api.parts import Parts
    from stepladder.dashboard.sessions import Session, Sessions
    from stepladder.models.reads import Overview
    from stepladder.models.tally import Tallies
    from stepladder.models.visits import Visits

FRESH_S = 1.0
"""However many look, the jobs are counted once in this time."""


class Counts:
    """How many jobs there are, by status."""

    def __init__(self, tallies: Tallies) -> None:
        self._tallies = tallies
        self._lock = asyncio.Lock()
        self._read_at = float("-inf")
        self._counts: dict[JobStatus, int] = {}

    async def read(self) -> Mapping[JobStatus, int]:
        """Of every status, 0 included. Raises ``UnreachableError`` when the database breaks."""
        async with self._lock:
            if time.monotonic() - self._read_at > FRESH_S:
                tally = await self._tallies.read()
                counts = dict.fromkeys(JobStatus, 0)
                for word, number in tally.live.items():
                    counts[JobStatus(word)] += number
                for ended, number in tally.ended.items():
                    counts[JobStatus(ended.status)] += number
                self._counts, self._read_at = counts, time.monotonic()
            return self._counts


@dataclass(frozen=True, slots=True)
class Desk:
    """Everything that a page may use. One for each dashboard."""

    parts: Parts
    visits: Visits
    counts: Counts
    sessions: Sessions


@dataclass(frozen=True, slots=True)
class Guest:
    """Who asks. Every form of the session carries ``token``; ``logged_in`` says that there is something to log out."""

    session: Session
    principal: Principal
    token: str = field(repr=False)
    logged_in: bool = False

    @property
    def may_write(self) -> bool:
        return self.principal.may(Scope.WRITE)

    @property
    def may_signal(self) -> bool:
        return self.principal.may(Scope.SIGNAL)


def desk_of(request: Request) -> Desk:
    desk: Desk = request.state.desk
    return desk


def guest_of(request: Request) -> Guest:
    guest: Guest = request.state.guest
    return guest


def form_of(request: Request) -> Mapping[str, str]:
    """The fields of a form whose token was right."""
    form: Mapping[str, str] = request.state.form
    return form


async def job_of(request: Request) -> Overview:
    """The job that the path names. Raises ``ProblemError`` where there is none."""
    text = request.path_params["job_id"]
    try:
        found = await desk_of(request).parts.reads.overview(UUID(text))
    except ValueError:
        found = None
    if found is None:
        raise not_found(f"job {text[:100]}", "look for it in the list of jobs; its id may be cut off")
    return found
