"""What the pages work with, and who asks for them."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from stepladder.api.access import Principal, Scope
from stepladder.api.problems import ProblemError, not_found
from stepladder.schemas.job import JobStatus

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Mapping

    from starlette.requests import Request

    from stepladder.api.dependencies import Services
    from stepladder.dashboard.sessions import Session, Sessions
    from stepladder.models.counts import Tallies, Tally
    from stepladder.schemas.responses import Job

FRESH_S = 1.0
"""However many look, the jobs are counted once in this time."""

FIGURES_S = 5.0
"""The same for rates over time, which read every attempt of a day or a month."""

CHECKS_S = 600.0
"""The same for what the checks say of a published version, which never changes while this process runs."""

T = TypeVar("T")


class Fresh:
    """What costs more to read than to show, read once for all who look at it within some seconds."""

    def __init__(self, lasts_s: float) -> None:
        self._lasts_s = lasts_s
        self._lock = asyncio.Lock()
        self._kept: dict[Hashable, tuple[float, Any]] = {}

    async def read(self, key: Hashable, make: Callable[[], Awaitable[T]]) -> T:
        """What ``make`` gives, or gave a moment ago for the same key. What it raises is not kept."""
        async with self._lock:
            now = time.monotonic()
            self._kept = {one: kept for one, kept in self._kept.items() if now - kept[0] <= self._lasts_s}
            if key not in self._kept:
                self._kept[key] = (now, await make())
            value: T = self._kept[key][1]
            return value


class Counts:
    """How many jobs there are, by status, and how the queue stands."""

    def __init__(self, tallies: Tallies) -> None:
        self._tallies = tallies
        self._fresh = Fresh(FRESH_S)

    async def tally(self) -> Tally:
        """Raises ``UnreachableError`` when the database breaks."""
        return await self._fresh.read("tally", self._tallies.read)

    async def read(self) -> Mapping[JobStatus, int]:
        """Of every status, 0 included. Raises ``UnreachableError`` when the database breaks."""
        tally = await self.tally()
        counts = dict.fromkeys(JobStatus, 0)
        for word, number in tally.live.items():
            counts[JobStatus(word)] += number
        for row in tally.ended:
            counts[JobStatus(row["status"])] += row["jobs"]
        return counts


@dataclass(frozen=True, slots=True)
class Desk:
    """Everything that a page may use. One for each dashboard."""

    parts: Services
    counts: Counts
    sessions: Sessions
    figures: Fresh = field(default_factory=lambda: Fresh(FIGURES_S))
    engine: Fresh = field(default_factory=lambda: Fresh(FIGURES_S))
    checks: Fresh = field(default_factory=lambda: Fresh(CHECKS_S))


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
    def may_publish(self) -> bool:
        return self.principal.may(Scope.PUBLISH)

    @property
    def may_signal(self) -> bool:
        return self.principal.may(Scope.SIGNAL)

    @property
    def may_settle(self) -> bool:
        return self.principal.may(Scope.SETTLE)


def desk_of(request: Request) -> Desk:
    desk: Desk = request.state.desk
    return desk


def guest_of(request: Request) -> Guest:
    guest: Guest = request.state.guest
    return guest


def demand(request: Request, scope: Scope) -> None:
    """Raises ``ProblemError`` for whom lacks the scope."""
    principal = guest_of(request).principal
    if not principal.may(scope):
        detail = f"the key {principal.name!r} lacks the scope {scope}"
        raise ProblemError(403, "forbidden", detail, remedy=f"log in with a key that has {scope}")


def form_of(request: Request) -> Mapping[str, str]:
    """The fields of a form whose token was right."""
    form: Mapping[str, str] = request.state.form
    return form


async def job_of(request: Request) -> Job:
    """The job that the path names. Raises ``ProblemError`` where there is none."""
    text = request.path_params["job_id"]
    try:
        found = await desk_of(request).parts.reads.job(UUID(text))
    except ValueError:
        found = None
    if found is None:
        raise not_found(f"job {text[:100]}", "look for it in the list of jobs; its id may be cut off")
    return found
