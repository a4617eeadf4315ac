"""What the pages work with, and what they read of a request."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from stepladder.api.problems import ProblemError, not_found
from stepladder.schemas.job import JobStatus

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Mapping

    from starlette.requests import Request

    from stepladder.api.access import Scope
    from stepladder.api.dependencies import Services
    from stepladder.dashboard.sessions import Session, Sessions
    from stepladder.queries.counts import Tallies, Tally
    from stepladder.schemas.responses import Job

COUNTS_S = 1.0
RATES_S = 5.0
"""Rates read every attempt of a day or a month."""
CHECKS_S = 600.0
"""A published version never changes while this process runs."""

T = TypeVar("T")


class Cache:
    """Values that are expensive to read, cached for some seconds for all users."""

    def __init__(self, keep_s: float) -> None:
        self._keep_s = keep_s
        self._lock = asyncio.Lock()
        self._kept: dict[Hashable, tuple[float, Any]] = {}

    async def get(self, key: Hashable, read: Callable[[], Awaitable[T]]) -> T:
        """The cached value, or what ``read`` returns. Exceptions are not cached."""
        async with self._lock:
            now = time.monotonic()
            self._kept = {one: kept for one, kept in self._kept.items() if now - kept[0] <= self._keep_s}
            if key not in self._kept:
                self._kept[key] = (now, await read())
            value: T = self._kept[key][1]
            return value


@dataclass(frozen=True, slots=True)
class Context:
    """Everything that a page may use. One for each dashboard."""

    services: Services
    tallies: Tallies
    sessions: Sessions
    counts: Cache = field(default_factory=lambda: Cache(COUNTS_S))
    rates: Cache = field(default_factory=lambda: Cache(RATES_S))
    engine: Cache = field(default_factory=lambda: Cache(RATES_S))
    checks: Cache = field(default_factory=lambda: Cache(CHECKS_S))

    async def tally(self) -> tuple[Tally, Mapping[JobStatus, int]]:
        """The queue, and the jobs by status. Raises ``UnreachableError``."""
        tally = await self.counts.get("tally", self.tallies.read)
        counts = dict.fromkeys(JobStatus, 0)
        for word, number in tally.live.items():
            counts[JobStatus(word)] += number
        for row in tally.ended:
            counts[JobStatus(row["status"])] += row["jobs"]
        return tally, counts


def context_of(request: Request) -> Context:
    context: Context = request.state.context
    return context


def session_of(request: Request) -> Session:
    session: Session = request.state.session
    return session


def form_of(request: Request) -> Mapping[str, str]:
    """The fields of a form whose token was verified."""
    form: Mapping[str, str] = request.state.form
    return form


def require(request: Request, scope: Scope) -> None:
    """Raises ``ProblemError`` if the principal lacks the scope."""
    principal = session_of(request).principal
    if not principal.may(scope):
        detail = f"the key {principal.name!r} lacks the scope {scope}"
        raise ProblemError(403, "forbidden", detail, remedy=f"log in with a key that has {scope}")


async def job_of(request: Request, name: str = "job_id") -> Job:
    """The job that the path names. Raises ``ProblemError`` if there is none."""
    text = request.path_params[name]
    try:
        found = await context_of(request).services.reads.job(UUID(text))
    except ValueError:
        found = None
    if found is None:
        raise not_found(f"job {text[:100]}", "look for it in the list of jobs; the id may be cut off")
    return found
