"""Orders of many replays, handed out a few at a time, as fast as those that are there end; and shadows."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import structlog

from stepladder.schemas.errors import UnreachableError
from stepladder.services.bulks import hand_out
from stepladder.services.experiments import hand_out_shadows
from stepladder.services.replays import Replays

if TYPE_CHECKING:
    from stepladder.models.store import Store
    from stepladder.runner.machines import Machines
    from stepladder.tasks.notifier import Notifier

log = structlog.get_logger("stepladder.bulks")

EVERY_S = 1.0


async def hand_out_bulks(store: Store, machines: Machines, notifier: Notifier, *, every_s: float = EVERY_S) -> None:
    """Looks until it is cancelled. It runs in every worker; what one has in hand, the others leave alone."""
    replays = Replays(store.database, store, machines)
    while True:
        await asyncio.sleep(every_s * random.uniform(0.8, 1.0))  # noqa: S311 -- no secret
        try:
            due = [*await hand_out(store, replays), *await hand_out_shadows(store, replays)]
        except UnreachableError:
            continue  # the sweep says so
        except Exception:
            log.exception("replays cannot be handed out")  # a bug: the worker's own jobs go on
            continue
        if due:
            log.info("replays handed out", jobs=len(due))
            await notifier.notify(due)
