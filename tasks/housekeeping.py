"""What every worker does besides running jobs: announces due jobs, starts bulk replays, removes old records."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import structlog

from stepladder.models.child_jobs import cancel_orphans
from stepladder.models.due import take_due
from stepladder.models.retention import retain
from stepladder.schemas.errors import UnreachableError
from stepladder.services.bulks import hand_out
from stepladder.services.experiments import hand_out_shadows

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from stepladder.models.database import Database
    from stepladder.models.retention import Ages
    from stepladder.models.store import Store
    from stepladder.services.replays import Replays
    from stepladder.tasks.notifier import Notifier

log = structlog.get_logger("stepladder.housekeeping")

SWEEP_S = 1.0
REPLAYS_S = 1.0
RETENTION_S = 30.0
RETENTION_AGAIN_S = 1.0
RETENTION_WITHIN_S = 2.0


async def repeat(chore: Callable[[], Awaitable[float | None]], every_s: float, name: str) -> None:
    """Does a chore every ``every_s`` seconds, or as soon as it returns, until cancelled.

    An error is logged and does not end it: jobs must not wait forever because of a bug.
    """
    pause_s, is_down = every_s, False
    while True:
        # Up to a fifth less, so that workers that were started together do not stay in step.
        await asyncio.sleep(pause_s * random.uniform(0.8, 1.0))  # noqa: S311 -- no secret
        pause_s = every_s
        try:
            pause_s = await chore() or every_s
            is_down = False
        except UnreachableError as error:
            if not is_down:
                log.warning(f"{name} paused until the database is back", reason=str(error))
            is_down = True
        except Exception:
            log.exception(f"{name} failed")


async def sweep(store: Store, notifier: Notifier) -> int:
    """Announces due jobs that have no message, and returns their number; nothing while the broker is unreachable.

    Children whose parent has ended, but whose worker died before it cancelled them, are cancelled first.
    """
    orphans = await cancel_orphans(store)
    if orphans:
        log.info("cancellation requested for children of ended jobs", jobs=orphans)
    waiting = await notifier.queue_length()
    due = [] if waiting is None else await take_due(store, queue_empty=waiting == 0)
    if due:
        await notifier.notify(due)
        log.info("due jobs announced", jobs=len(due), waiting=waiting)
    return len(due)


async def start_replays(store: Store, replays: Replays, notifier: Notifier) -> None:
    """Starts replays of bulk orders, as fast as earlier ones end, and shadows of live jobs."""
    due = [*await hand_out(store, replays), *await hand_out_shadows(store, replays)]
    if due:
        log.info("replays started", jobs=len(due))
        await notifier.notify(due)


async def remove_old(database: Database, ages: Ages) -> float | None:
    """Removes some of what is older than ``ages``. Returns a short pause in seconds if there is more."""
    removed = await retain(database, ages, within_s=RETENTION_WITHIN_S)
    if removed.raw_jobs or removed.event_jobs:
        log.info("old records removed", attempts=removed.attempts, events=removed.events, more=removed.more)
    return RETENTION_AGAIN_S if removed.more else None
