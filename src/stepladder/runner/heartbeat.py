"""Leases kept alive while their jobs run, by a thread that neither the event loop nor its connections can delay."""

from __future__ import annotations

import asyncio
import threading
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import structlog

from stepladder.models.leases import LeaseConnection
from stepladder.models.records import LeaseStatus
from stepladder.schemas.errors import UnreachableError
from stepladder.workflows.events import Cancelled

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
    from uuid import UUID

    from stepladder.models.leases import Renewed
    from stepladder.models.records import Claim
    from stepladder.models.store import Store

T = TypeVar("T")

log = structlog.get_logger("stepladder.runner")

BEATS_PER_LEASE = 3  # two may be late before the lease ends
SOON = 15
"""Beats per lease while some row is locked, or the database does not answer."""

STALLED_S = 60.0
"""A loop that has run nothing for this long renews no lease: its jobs go to other workers."""


class LeaseLostError(Exception):
    """The lease ended, or another worker has the job: write nothing more."""


class Lease:
    """A lease that its ``Heartbeat`` renews. ``timer`` cancels the work under it when it runs out."""

    def __init__(self, claim: Claim, timer: asyncio.Timeout) -> None:
        self.claim = claim
        self._timer = timer
        self._releasing = self._released = False
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

    @contextmanager
    def releasing(self) -> Iterator[None]:
        """While a statement may release the job, no heartbeat can tell that from a loss; the statement itself does."""
        self._releasing = True
        try:
            yield
        finally:
            self._releasing = self._released

    def end(self) -> None:
        """The job was released: there is nothing left to lose."""
        self._releasing = self._released = True

    def update(self, status: LeaseStatus, until: float | None = None) -> None:
        """Takes in what a heartbeat or a commit found; a lease that was renewed is good ``until`` then."""
        if self.lost:
            return
        if status is LeaseStatus.LOST:
            if not self._releasing:
                self._timer.reschedule(0)
            return
        if until is not None:
            self._timer.reschedule(max(self.until, until))
        if status is LeaseStatus.CANCELLING and not self.cancelling:
            self._cancelling.set_result(None)


class Heartbeat:
    """Renews all leases that one process holds, three times a lease, for as long as it holds any.

    A loop that is busy for seconds loses no lease.
    """

    def __init__(self, store: Store, lease_s: float) -> None:
        self._url = store.database.url
        self._lease_s = lease_s
        self._leases: dict[tuple[UUID, int], Lease] = {}
        self._thread: _Thread | None = None

    @property
    def held(self) -> list[UUID]:
        """The jobs that this process runs."""
        return [job_id for job_id, _ in self._leases]

    @asynccontextmanager
    async def keep(self, claim: Claim) -> AsyncIterator[Lease]:
        """Renews the lease of ``claim`` until the block is left.

        Once the lease is lost the block is cancelled, and ``LeaseLostError`` raised in place of the cancellation. A
        database that does not answer is asked again while the lease lasts.
        """
        timer = asyncio.timeout_at(claim.asked_at + self._lease_s)
        key = (claim.job.id, claim.fence)
        try:
            async with timer:
                lease = Lease(claim, timer)
                self._leases[key] = lease
                if self._thread is None:
                    self._thread = _Thread(self._url, self._lease_s, self._leases)
                try:
                    yield lease
                finally:
                    del self._leases[key]
                    if not self._leases and self._thread is not None:
                        thread, self._thread = self._thread, None
                        thread.stop()
        except TimeoutError:
            if not timer.expired():
                raise
            raise LeaseLostError from None


class _Thread:
    """Renews the leases of one loop until it is stopped, and tells the loop what it found."""

    def __init__(self, url: str, lease_s: float, leases: dict[tuple[UUID, int], Lease]) -> None:
        self._connection = LeaseConnection(url)
        self._lease_s = lease_s
        self._leases = leases
        self._loop = asyncio.get_running_loop()
        self._told_at = self._loop.time()
        self._stopped = threading.Event()
        threading.Thread(target=self._run, name="heartbeat", daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()

    def _run(self) -> None:
        pause_s = self._lease_s / BEATS_PER_LEASE
        while not self._stopped.wait(pause_s):
            pause_s = self._lease_s / (BEATS_PER_LEASE if self._beat() else SOON)
        self._connection.close()

    def _beat(self) -> bool:
        """Whether every lease was renewed."""
        sent = self._loop.time()
        if sent - self._told_at > STALLED_S:
            log.error("the event loop stalls; its leases are not renewed", for_s=round(sent - self._told_at))
            return True
        leases = list(self._leases.values())
        try:
            found = self._connection.renew([lease.claim for lease in leases], self._lease_s)
            self._loop.call_soon_threadsafe(self._tell, leases, found, sent + self._lease_s)
        except UnreachableError:
            return False
        except Exception:
            if not self._loop.is_closed():
                log.exception("heartbeat failed")  # a bug: the next one may do better
            return False
        return all(one.in_time for one in found.values())

    def _tell(self, leases: Sequence[Lease], found: dict[UUID, Renewed], until: float) -> None:
        self._told_at = self._loop.time()
        for lease in leases:
            if (one := found.get(lease.claim.job.id)) is None:
                lease.update(LeaseStatus.LOST)
            else:
                lease.update(one.status, until if one.in_time else None)
