"""Leases kept alive while their jobs run, all of a process by one statement; work stops once its lease is lost."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import structlog

from stepladder.models.records import LeaseStatus
from stepladder.schemas.errors import UnreachableError
from stepladder.workflows.events import Cancelled

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Sequence

    from stepladder.models.records import Claim
    from stepladder.models.store import Store

T = TypeVar("T")

log = structlog.get_logger("stepladder.runner")

BEATS_PER_LEASE = 3  # two may be late before the lease ends

BATCH = 500
"""Leases renewed by one statement: a commit for one of these jobs waits for it, some 5 ms."""


class LeaseLostError(Exception):
    """The lease ended, or another worker has the job: write nothing more."""


class Lease:
    """A lease that its ``Heartbeat`` renews. ``timer`` cancels the work under it when it runs out."""

    def __init__(self, claim: Claim, timer: asyncio.Timeout) -> None:
        self.claim = claim
        self.single: asyncio.Task[None] | None = None
        """A heartbeat for this lease alone."""
        self._timer = timer
        self._cancelling: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if claim.cancel_requested:
            self._cancelling.set_result(None)

    async def unless_cancelled(self, work: Coroutine[Any, Any, T]) -> T | Cancelled:
        """What ``work`` returns; or ``Cancelled``, with the work stopped, once the job's cancellation is requested."""
        if self.cancelling:
            work.close()
            return Cancelled()
        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait((task, self._cancelling), return_when=asyncio.FIRST_COMPLETED)
            return task.result() if task.done() else Cancelled()
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait((task,))

    @property
    def lost(self) -> bool:
        return self._timer.expired()

    @property
    def cancelling(self) -> bool:
        return self._cancelling.done()

    @property
    def until(self) -> float:
        """When it ends unless it is renewed, by the loop's clock."""
        return self._timer.when() or 0.0

    def update(self, status: LeaseStatus, until: float) -> None:
        """Takes in what a heartbeat found; a lease that is held is good ``until`` then."""
        if self.lost:
            return
        if status is LeaseStatus.LOST:
            self._timer.reschedule(0)
            return
        self._timer.reschedule(max(self.until, until))
        if status is LeaseStatus.CANCELLING and not self.cancelling:
            self._cancelling.set_result(None)


class Heartbeat:
    """Renews all leases that one process holds, three times a lease, for as long as it holds any."""

    def __init__(self, store: Store, lease_s: float) -> None:
        self._store = store
        self._lease_s = lease_s
        self._leases: set[Lease] = set()
        self._beating: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def keep(self, claim: Claim) -> AsyncIterator[Lease]:
        """Renews the lease of ``claim`` until the block is left.

        Once the lease is lost the block is cancelled, and ``LeaseLostError`` raised in place of the cancellation. A
        database that does not answer is asked again while the lease lasts.
        """
        timer = asyncio.timeout_at(claim.asked_at + self._lease_s)
        try:
            async with timer:
                lease = Lease(claim, timer)
                self._leases.add(lease)
                if self._beating is None:
                    self._beating = asyncio.ensure_future(self._beat())
                try:
                    yield lease
                finally:
                    await self._end(lease)
        except TimeoutError:
            if not timer.expired():
                raise
            raise LeaseLostError from None

    async def _end(self, lease: Lease) -> None:
        self._leases.remove(lease)
        if lease.single is not None:
            lease.single.cancel()
        if not self._leases and self._beating is not None:
            beating, self._beating = self._beating, None
            beating.cancel()
            await asyncio.wait((beating,))

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._lease_s / BEATS_PER_LEASE)
            leases = [lease for lease in self._leases if not lease.lost]
            for batch in (leases[at : at + BATCH] for at in range(0, len(leases), BATCH)):
                try:
                    await self._renew(batch)
                except Exception:
                    log.exception("heartbeat failed")  # a bug: the next one may do better

    async def _renew(self, leases: Sequence[Lease]) -> None:
        sent = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout_at(max(lease.until for lease in leases)):
                found = await self._store.heartbeats([lease.claim for lease in leases], self._lease_s)
        except (UnreachableError, TimeoutError):
            return
        for lease in self._leases.intersection(leases):  # others ended meanwhile
            status = found.get(lease.claim.job.id)
            if status is not None:
                lease.update(status, sent + self._lease_s)
            elif lease.single is None or lease.single.done():  # one that waits for a lock delays no other
                lease.single = asyncio.ensure_future(self._renew_single(lease))

    async def _renew_single(self, lease: Lease) -> None:
        """For a lease that is lost, or whose job another transaction was writing to."""
        sent = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout_at(lease.until):
                lease.update(await self._store.heartbeat(lease.claim, self._lease_s), sent + self._lease_s)
        except (UnreachableError, TimeoutError):
            return
