"""Claims kept alive while their worker works, all of them by one statement, and the work stopped once one is lost."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

import structlog

from stepladder.models.records import LeaseStatus
from stepladder.schemas.errors import UnreachableError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Sequence

    from stepladder.models.records import Claim
    from stepladder.models.store import Store

T = TypeVar("T")

log = structlog.get_logger("stepladder.runner")

BEATS_PER_LEASE = 3  # two may be late before the lease is over

MOST = 500
"""Leases renewed by one statement: whoever commits a step of one of these jobs waits for it, some 5 ms."""


class Lease:
    """``during`` runs a piece of work for as long as the claim holds and nobody asks for the job to end."""

    def __init__(self, claim: Claim, until: float) -> None:
        self.claim = claim
        self._loop = asyncio.get_running_loop()
        self._lost: asyncio.Future[None] = self._loop.create_future()
        self._cancelling: asyncio.Future[None] = self._loop.create_future()
        self.alone: asyncio.Task[None] | None = None
        """A heartbeat for this claim by itself."""
        self._until = until
        self._timer = self._loop.call_at(until, self._check)

    async def during(self, work: Coroutine[None, None, T], *, to_its_end: bool = False) -> T | LeaseStatus:
        """What the work gives; or the status that stopped it, in which case the work was cancelled and has ended.

        Work ``to_its_end`` is stopped by a lost claim alone, and not by a request to cancel.
        """
        stops = (self._lost,) if to_its_end else (self._lost, self._cancelling)
        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait((task, *stops), return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            return LeaseStatus.LOST if self._lost.done() else LeaseStatus.CANCELLING
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait((task,))

    @property
    def lost(self) -> bool:
        return self._lost.done()

    @property
    def cancelling(self) -> bool:
        return self._cancelling.done()

    @property
    def until(self) -> float:
        """When it is lost unless it is renewed before, by the loop's clock."""
        return self._until

    def update(self, status: LeaseStatus, until: float) -> None:
        """Takes in what a heartbeat found; a lease that is held is good ``until`` then."""
        if status is LeaseStatus.LOST:
            self._lose()
            return
        self._until = max(self._until, until)
        if status is LeaseStatus.CANCELLING and not self._cancelling.done():
            self._cancelling.set_result(None)

    def end(self) -> None:
        self._timer.cancel()
        if self.alone is not None:
            self.alone.cancel()

    def _check(self) -> None:
        if self._loop.time() < self._until:
            self._timer = self._loop.call_at(self._until, self._check)
        else:
            self._lose()

    def _lose(self) -> None:
        if not self._lost.done():
            self._lost.set_result(None)


class Heartbeat:
    """Beats for all claims that one process holds, three times a lease, for as long as it holds any."""

    def __init__(self, store: Store, lease_s: float) -> None:
        self._store = store
        self._lease_s = lease_s
        self._leases: set[Lease] = set()
        self._beating: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def keeps(self, claim: Claim, since: float) -> AsyncIterator[Lease]:
        """Renews the lease of ``claim``, asked for at ``since`` by the loop's clock, until the block is left.

        A database that does not answer is asked again while the lease lasts.
        """
        lease = Lease(claim, since + self._lease_s)
        self._leases.add(lease)
        if self._beating is None:
            self._beating = asyncio.ensure_future(self._beat())
        try:
            yield lease
        finally:
            lease.end()
            self._leases.remove(lease)
            if not self._leases and self._beating is not None:
                beating, self._beating = self._beating, None
                beating.cancel()
                await asyncio.wait((beating,))

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._lease_s / BEATS_PER_LEASE)
            leases = [lease for lease in self._leases if not lease.lost]
            for some in (leases[at : at + MOST] for at in range(0, len(leases), MOST)):
                try:
                    await self._renew(some)
                except Exception:
                    log.exception("heartbeat failed")  # a bug: the next one may do better

    async def _renew(self, leases: Sequence[Lease]) -> None:
        loop = asyncio.get_running_loop()
        sent = loop.time()
        try:
            async with asyncio.timeout_at(max(lease.until for lease in leases)):
                found = await self._store.heartbeats([lease.claim for lease in leases], self._lease_s)
        except (UnreachableError, TimeoutError):
            return
        for lease in leases:
            status = found.get(lease.claim.job.id)
            if status is not None:
                lease.update(status, sent + self._lease_s)
            elif lease.alone is None or lease.alone.done():  # one that waits for a lock makes nobody else wait
                lease.alone = asyncio.ensure_future(self._renew_alone(lease))

    async def _renew_alone(self, lease: Lease) -> None:
        """For a job that is lost, or that somebody else wrote to when its turn was."""
        sent = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout_at(lease.until):
                lease.update(await self._store.heartbeat(lease.claim, self._lease_s), sent + self._lease_s)
        except (UnreachableError, TimeoutError):
            return
