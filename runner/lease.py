"""A claim kept alive while its worker works, and the work stopped once the claim is lost."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

from stepladder.models.records import Pulse
from stepladder.schemas.errors import UnreachableError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine

    from stepladder.models.records import Claim
    from stepladder.models.store import Store

T = TypeVar("T")

BEATS_PER_LEASE = 3  # two may be late before the lease is over


class Lease:
    """``during`` runs a piece of work for as long as the claim holds and nobody asks for the job to end."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._lost: asyncio.Future[None] = loop.create_future()
        self._cancelling: asyncio.Future[None] = loop.create_future()

    async def during(self, work: Coroutine[None, None, T], *, to_its_end: bool = False) -> T | Pulse:
        """What the work gives; or the pulse that stopped it, in which case the work was cancelled and has ended.

        Work ``to_its_end`` is stopped by a lost claim alone, and not by a request to cancel.
        """
        stops = (self._lost,) if to_its_end else (self._lost, self._cancelling)
        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait((task, *stops), return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            return Pulse.LOST if self._lost.done() else Pulse.CANCELLING
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait((task,))

    async def beat(self, store: Store, claim: Claim) -> None:
        """Renews the lease until it is lost. A database that does not answer is asked again while the lease lasts."""
        loop = asyncio.get_running_loop()
        held_until = loop.time() + claim.lease_s
        while not self._lost.done():
            await asyncio.sleep(claim.lease_s / BEATS_PER_LEASE)
            sent = loop.time()
            try:
                async with asyncio.timeout_at(held_until):
                    pulse = await store.heartbeat(claim)
                held_until = sent + claim.lease_s
            except UnreachableError:
                pulse = Pulse.HELD if loop.time() < held_until else Pulse.LOST
            except TimeoutError:
                pulse = Pulse.LOST
            if pulse is Pulse.LOST:
                self._lost.set_result(None)
            elif pulse is Pulse.CANCELLING and not self._cancelling.done():
                self._cancelling.set_result(None)


@asynccontextmanager
async def kept_alive(store: Store, claim: Claim) -> AsyncIterator[Lease]:
    """Renews the lease of ``claim`` until the block is left."""
    lease = Lease()
    beat = asyncio.ensure_future(lease.beat(store, claim))
    try:
        yield lease
    finally:
        beat.cancel()
        await asyncio.wait((beat,))
