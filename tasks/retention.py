"""Retention in every worker: what is older than the settings say goes, a little at a time."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import structlog

from stepladder.models.retention import retain
from stepladder.schemas.errors import UnreachableError

if TYPE_CHECKING:
    from stepladder.models.database import Database
    from stepladder.models.retention import Ages

log = structlog.get_logger("stepladder.retention")

EVERY_S = 30.0
AGAIN_S = 1.0
WITHIN_S = 2.0


async def keep_retaining(database: Database, ages: Ages, *, every_s: float = EVERY_S) -> None:
    """Goes on until it is cancelled; where everything is kept for ever it has nothing to do."""
    pause_s = every_s
    while not ages.endless:
        await asyncio.sleep(pause_s * random.uniform(0.8, 1.0))  # noqa: S311 -- no secret
        pause_s = every_s
        try:
            removed = await retain(database, ages, within_s=WITHIN_S)
        except UnreachableError:
            continue  # the sweep says so
        except Exception:
            log.exception("retention failed")  # a bug: the worker's own jobs go on
            continue
        if removed.more:
            pause_s = min(every_s, AGAIN_S)
        if removed.raw_jobs or removed.event_jobs:
            log.info("retention", attempts=removed.attempts, events=removed.events, more=removed.more)
