"""The sweep: looks every second for jobs that are due and that nobody was told of, or that nobody heard of."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import structlog

from stepladder.models.children import cancel_orphans
from stepladder.models.due import take_due
from stepladder.schemas.errors import UnreachableError

if TYPE_CHECKING:
    from stepladder.models.store import Store
    from stepladder.tasks.notifier import Notifier

log = structlog.get_logger("stepladder.sweep")

EVERY_S = 1.0


async def sweep(store: Store, notifier: Notifier, *, every_s: float = EVERY_S) -> None:
    """Sweeps until it is cancelled. It runs in every worker; each due job is announced by one of them."""
    silent = False
    while True:
        # Up to a fifth less, so that workers that were started together do not sweep together for ever.
        await asyncio.sleep(every_s * random.uniform(0.8, 1.0))  # noqa: S311 -- no secret
        try:
            await sweep_once(store, notifier)
            silent = False
        except UnreachableError as error:
            if not silent:
                log.warning("database cannot be reached; the sweep goes on once it is back", reason=str(error))
            silent = True
        except Exception:
            log.exception("sweep failed")  # a bug: other jobs must not wait for ever because of it


async def sweep_once(store: Store, notifier: Notifier) -> int:
    """Announces due jobs that have no message, and returns their number; nothing while the broker is unreachable.

    Children whose parent has ended are asked to end first, where its worker died before it did so.
    """
    orphans = await cancel_orphans(store)
    if orphans:
        log.info("children of ended jobs asked to end", jobs=orphans)
    waiting = await notifier.queue_length()
    if waiting is None:
        return 0
    due = await take_due(store, queue_empty=waiting == 0)
    if not due:
        return 0
    await notifier.notify(due)
    log.info("due jobs announced", jobs=len(due), waiting=waiting)
    return len(due)
