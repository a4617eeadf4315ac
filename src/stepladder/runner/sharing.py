"""This process's share of an engine that several processes use, renewed for as long as it runs."""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import structlog

from stepladder.engine.limiter import ConcurrencyLimiter
from stepladder.models.ids import uuid7
from stepladder.models.shares import leave_engine, renew_share
from stepladder.schemas.errors import UnreachableError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from uuid import UUID

    from stepladder.models.database import Database

log = structlog.get_logger("stepladder.runner")

LEASE_S = 3.0
EARLY_S = 0.25
"""A share ends here this long before it lapses in the database: cancelling requests takes a moment."""

EVERY_S = 1.0
SOON_S = 0.2
"""The pause between two renewals while turns wait for more, or while there is some to give back."""


@asynccontextmanager
async def shared_limiter(database: Database, engine: str, bound: int | None) -> AsyncIterator[ConcurrencyLimiter]:
    """A limiter that follows this process's share of ``bound`` at an engine, named by its URL. None: no limit.

    At first the share is 0. While the database cannot be reached it lasts no longer than its lease.
    """
    if bound is None:
        yield ConcurrencyLimiter()
        return
    limiter, worker = ConcurrencyLimiter(0), uuid7()
    renewing = asyncio.ensure_future(_keep_renewing(database, engine, bound, worker, limiter))
    try:
        yield limiter
    finally:
        renewing.cancel()
        await asyncio.wait((renewing,))
        with contextlib.suppress(UnreachableError):  # then it lapses
            await leave_engine(database, engine, worker)


async def _keep_renewing(
    database: Database, engine: str, bound: int, worker: UUID, limiter: ConcurrencyLimiter
) -> None:
    is_down, is_settled = False, True
    while True:
        try:
            is_settled = await _renew(database, engine, bound, worker, limiter)
            is_down = False
        except (UnreachableError, TimeoutError) as error:
            if not is_down:
                log.warning("share of the engine not renewed", reason=str(error) or "no answer in time")
            is_down = True
        except Exception:
            log.exception("share of the engine not renewed")  # a bug: the next time may do better
        await asyncio.sleep(SOON_S)
        if is_settled:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(limiter.wanted.wait(), EVERY_S - SOON_S)


async def _renew(database: Database, engine: str, bound: int, worker: UUID, limiter: ConcurrencyLimiter) -> bool:
    """Whether there is nothing to give back. Turns that wait for more set ``wanted`` themselves."""
    sent = asyncio.get_running_loop().time()
    limiter.wanted.clear()
    async with asyncio.timeout(LEASE_S):
        found = await renew_share(
            database,
            engine,
            worker,
            bound,
            keep=max(limiter.limit or 0, limiter.in_use),
            in_use=limiter.in_use,
            wanted=limiter.in_use + limiter.waiting,
            lease_s=LEASE_S,
        )
    limiter.allow(min(found.share, found.due), sent + LEASE_S - EARLY_S)
    if limiter.waiting:
        limiter.wanted.set()
    return found.due >= found.share
