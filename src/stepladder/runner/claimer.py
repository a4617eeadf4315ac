"""Claims on due jobs for one process: callers that ask at the same time are served by one statement."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from uuid import UUID

    from stepladder.models.records import Claim
    from stepladder.models.store import Store


class Claimer:
    """Claims due jobs in the order of ``models.fair``, a batch for all that wait at that moment; none that is held."""

    def __init__(
        self, store: Store, owner: str, lease_s: float, held: Callable[[], Collection[UUID]] = lambda: ()
    ) -> None:
        self._store = store
        self._owner = owner
        self._lease_s = lease_s
        self._held = held
        self._lock = asyncio.Lock()
        self._claims: deque[Claim] = deque()
        self._failure: Exception | None = None
        self._waiting = 0
        self._batch = 0
        self._last_without = 0

    async def next(self) -> Claim | None:
        """The job that comes next; None if none is due. Raises ``UnreachableError`` when the database breaks.

        The claim of a caller that is cancelled goes to another one, or runs out.
        """
        asked_in = self._batch
        self._waiting += 1
        try:
            async with self._lock:
                if not self._claims and self._last_without <= asked_in:
                    await self._claim_batch()
                if self._claims:
                    return self._claims.popleft()
                if self._failure is not None:
                    raise self._failure
                return None
        finally:
            self._waiting -= 1

    async def _claim_batch(self) -> None:
        """Its result applies to all callers that asked before it, so an empty queue is queried once."""
        self._batch += 1
        self._failure = None
        try:
            held = {*self._held(), *(claim.job.id for claim in self._claims)}
            self._claims.extend(await self._store.claim_due(self._owner, self._lease_s, self._waiting, held=held))
        except Exception as error:  # noqa: BLE001 -- raised to each caller
            self._failure = error
        if not self._claims:
            self._last_without = self._batch
