"""Waiting for jobs to progress, for any number of clients, with no database connection held meanwhile."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import structlog

from stepladder.schemas.errors import UnreachableError

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from stepladder.queries.reads import Progress, Reads

log = structlog.get_logger("stepladder.api")

EVERY_S = 0.2

Wanted: TypeAlias = "Callable[[Progress], bool]"


@dataclass(frozen=True, slots=True, eq=False)
class _Watcher:
    job_id: UUID
    wanted: Wanted
    seen: asyncio.Future[bool]


class Watch:
    """One query every ``every_s`` seconds serves all waiters; without waiters there is none.

    NOTIFY would be sooner, but all commits that notify wait for one lock.
    """

    def __init__(self, reads: Reads, *, every_s: float = EVERY_S) -> None:
        self._reads = reads
        self._every_s = every_s
        self._watchers: set[_Watcher] = set()
        self._looking: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def closed(self) -> bool:
        return self._closed

    async def until(self, job_id: UUID, wanted: Wanted, within_s: float) -> bool:
        """Waits until the job's progress is as wanted, or the job does not exist. False once the seconds have passed.

        False at once when the watch is closed.
        """
        if self._closed:
            return False
        watcher = _Watcher(job_id, wanted, asyncio.get_running_loop().create_future())
        self._watchers.add(watcher)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        try:
            async with asyncio.timeout(within_s):
                return await watcher.seen
        except TimeoutError:
            return False
        finally:
            self._watchers.discard(watcher)

    def close(self) -> None:
        """Wakes all waiters, so that the server can end."""
        self._closed = True
        for watcher in self._watchers:
            _tell(watcher, seen=False)

    async def _look(self) -> None:
        while self._watchers:
            try:
                found = await self._reads.progress({watcher.job_id for watcher in self._watchers})
            except Exception as error:
                if isinstance(error, UnreachableError):
                    log.warning("database unreachable", reason=str(error))
                else:
                    log.exception("watch failed")
                for watcher in self._watchers:  # each queries for itself, and reports what it finds
                    _tell(watcher, seen=True)
                return
            for watcher in self._watchers:
                progress = found.get(watcher.job_id)
                if progress is None or watcher.wanted(progress):
                    _tell(watcher, seen=True)
            await asyncio.sleep(self._every_s)


def _tell(watcher: _Watcher, *, seen: bool) -> None:
    if not watcher.seen.done():
        watcher.seen.set_result(seen)
