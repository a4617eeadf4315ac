"""This process's share of an engine that all processes use together, kept up for as long as it runs."""

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
"""A share is let go of so much before it lapses: to break off a request takes a moment."""

EVERY_S = 1.0
SOON_S = 0.2
"""How soon a share is asked for again while turns wait for more, or while there is some to give back."""


@asynccontextmanager
async def shared_limiter(database: Database, engine: str, bound: int | None) -> AsyncIterator[ConcurrencyLimiter]:
    """The limiter that this process has at an engine, whose URL is its name. No ``bound``: as many as it likes.

    At first there are none. While the database cannot be reached a share holds no longer than its lease.
    """
    if bound is None:
        yield ConcurrencyLimiter()
        return
    limiter, worker = ConcurrencyLimiter(0), uuid7()
    keeping = asyncio.ensure_future(_keep(database, engine, bound, worker, limiter))
    try:
        yield limiter
    finally:
        keeping.cancel()
        await asyncio.wait((keeping,))
        with contextlib.suppress(UnreachableError):  # then it lapses
            await leave_engine(database, engine, worker)


async def _keep(database: Database, engine: str, bound: int, worker: UUID, limiter: ConcurrencyLimiter) -> None:
    silent, in_order = False, True
    while True:
        try:
            in_order = await _renew(database, engine, bound, worker, limiter)
            silent = False
        except (UnreachableError, TimeoutError) as error:
            if not silent:
                log.warning("share of the engine not renewed", reason=str(error) or "no answer in time")
            silent = True
        except Exception:
            log.exception("share of the engine not renewed")  # a bug: the next time may do better
        await asyncio.sleep(SOON_S)
        if in_order:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(limiter.wanted.wait(), EVERY_S - SOON_S)


async def _renew(database: Database, engine: str, bound: int, worker: UUID, limiter: ConcurrencyLimiter) -> bool:
    """Whether there is nothing to give back. Turns that wait for more say so by themselves."""
    sent = asyncio.get_running_loop().time()
    limiter.wanted.clear()
    keep = max(limiter.limit or 0, limiter.in_use)
    wanted = limiter.in_use + limiter.waiting
    async with asyncio.timeout(LEASE_S):
        found = await renew_share(
            database, engine, worker, bound, keep=keep, in_use=limiter.in_use, wanted=wanted, lease_s=LEASE_S
        )
    limiter.allow(min(found.share, found.due), sent + LEASE_S - EARLY_S)
    if limiter.waiting:
        limiter.wanted.set()
    return found.due >= found.share
