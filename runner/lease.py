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
        """Renews the lease until it is lost."""
        while not self._lost.done():
            await asyncio.sleep(claim.lease_s / BEATS_PER_LEASE)
            try:
                pulse = await store.heartbeat(claim)
            except UnreachableError:  # nobody knows who has the job now; the database will tell the one who asks next
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
