"""What a command works with: an open database and the broker, as the HTTP API's services use them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from stepladder.schemas.errors import BadInputError
from stepladder.wiring import servers
from stepladder.wiring.logs import configure_logs
from stepladder.wiring.stores import open_store

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from uuid import UUID

    from stepladder.models.store import Store
    from stepladder.queries.reads import Reads
    from stepladder.schemas.responses import Job
    from stepladder.schemas.tool import Kit
    from stepladder.services.replays import Replays
    from stepladder.wiring.settings import Settings

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Session:
    """An open database, and the jobs to announce to workers."""

    store: Store
    reads: Reads
    due: list[UUID] = field(default_factory=list)

    async def job(self, job_id: UUID) -> Job:
        """Raises ``BadInputError`` if there is no such job."""
        found = await self.reads.job(job_id)
        if found is None:
            raise BadInputError(f"there is no job {job_id}", remedy="list the jobs with `stepladder jobs`")
        return found

    def replays(self, kit: Kit) -> Replays:
        from stepladder.runner.machines import Machines
        from stepladder.services.replays import Replays

        return Replays(self.store.database, self.store, Machines(self.store, kit), self.notify)

    def notify(self, jobs: Sequence[UUID]) -> None:
        """Announce due jobs once the work is done. If a message is lost, the workers' sweep finds the job."""
        self.due.extend(jobs)


def in_session(settings: Settings, work: Callable[[Session], Awaitable[T]]) -> T:
    """Run ``work`` on the configured database; an embedded one that is not running is started for that long."""
    configure_logs(settings.log_level or "warning")
    with servers.database(settings, lambda _: None) as url:
        return asyncio.run(_run(url, servers.running_broker(settings), work))


async def _run(url: str, broker_url: str | None, work: Callable[[Session], Awaitable[T]]) -> T:
    async with open_store(url) as (store, reads):
        session = Session(store, reads)
        done = await work(session)
    if session.due and broker_url is not None:
        from stepladder.tasks.app import make_app  # Celery, which most commands do without
        from stepladder.tasks.notifier import Notifier

        async with Notifier(make_app(broker_url)) as notifier:
            await notifier.notify(session.due)
    return done
