"""What a command works with: an open database and the broker, as the HTTP API's services use them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from stepladder.schemas.errors import BadInputError
from stepladder.wiring import servers
from stepladder.wiring.logs import configure_logs
from stepladder.wiring.stores import open_store

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from uuid import UUID

    from stepladder.models.reads import Reads
    from stepladder.models.store import Store
    from stepladder.schemas.responses import Job
    from stepladder.wiring.settings import Settings

T = TypeVar("T")

PRINCIPAL = "local"


@dataclass(frozen=True, slots=True)
class Session:
    """An open database, and the URL of the broker if there is one."""

    store: Store
    reads: Reads
    broker_url: str | None

    async def job(self, job_id: UUID) -> Job:
        """Raises ``BadInputError`` if there is no such job."""
        found = await self.reads.job(job_id)
        if found is None:
            raise BadInputError(f"there is no job {job_id}", remedy="list the jobs with `stepladder jobs`")
        return found

    async def notify(self, job_id: UUID) -> None:
        """Tell the workers that a job is due. If the message is lost, their sweep finds the job within a second."""
        if self.broker_url is None:
            return
        from stepladder.tasks.app import make_app  # Celery, which most commands do without
        from stepladder.tasks.notifier import Notifier

        async with Notifier(make_app(self.broker_url)) as notifier:
            await notifier.notify([job_id])


def in_session(settings: Settings, work: Callable[[Session], Awaitable[T]]) -> T:
    """Run ``work`` on the configured database; an embedded one that is not running is started for that long."""
    configure_logs(settings.log_level or "warning")
    with servers.database(settings, lambda _: None) as url:
        return asyncio.run(_run(url, servers.running_broker(settings), work))


async def _run(url: str, broker_url: str | None, work: Callable[[Session], Awaitable[T]]) -> T:
    async with open_store(url) as (store, reads):
        return await work(Session(store, reads, broker_url))
