"""Which job is worked at next: those who ask at once are served by one statement."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import structlog

from stepladder.models.fair import MOST
from stepladder.schemas.errors import UnreachableError

if TYPE_CHECKING:
    from stepladder.models.records import Claim, Taken
    from stepladder.models.store import Store

log = structlog.get_logger("stepladder.runner")


@dataclass(frozen=True, slots=True)
class Picked:
    """A job that was taken. ``since`` is when it was asked for, by the loop's clock."""

    taken: Taken
    since: float


_Turn: TypeAlias = "asyncio.Future[Picked | None]"


class Claimer:
    """Takes jobs in the order of ``models.fair`` for one process.

    No more than ``MOST`` are taken before they are loaded: the leases of a whole crowd would grow old meanwhile.
    """

    def __init__(self, store: Store, owner: str, lease_s: float) -> None:
        self._store = store
        self._owner = owner
        self._lease_s = lease_s
        self._turns: deque[_Turn] = deque()
        self._picking: asyncio.Task[None] | None = None
        self._opening = 0
        self._has_room = asyncio.Event()

    async def next(self) -> Picked | None:
        """The job that comes next, to be loaded or put back; None if there is none.

        Raises ``UnreachableError`` when the database breaks.
        """
        turn: _Turn = asyncio.get_running_loop().create_future()
        self._turns.append(turn)
        if self._picking is None:
            self._picking = asyncio.ensure_future(self._pick())
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                picked = turn.result()
                if picked is not None:  # it came too late
                    await asyncio.shield(self.put_back(picked))
            raise

    async def put_back(self, picked: Picked) -> None:
        """Lets go of a job that was not begun. Where the database breaks, its lease runs out."""
        try:
            await self._store.put_back(picked.taken)
        except UnreachableError as error:
            log.warning("job not put back", job=str(picked.taken.job_id), reason=str(error))
        finally:
            self._opened()

    async def load(self, picked: Picked) -> Claim | None:
        """The claim to a job; None if it is in other hands by now. Raises ``UnreachableError`` as ``next`` does."""
        try:
            return await self._store.load(picked.taken)
        finally:
            self._opened()

    def _opened(self) -> None:
        self._opening -= 1
        self._has_room.set()

    async def _pick(self) -> None:
        try:
            while self._turns:
                await self._serve()
        finally:
            self._picking = None

    async def _serve(self) -> None:
        while self._opening >= MOST:
            self._has_room.clear()
            await self._has_room.wait()
        asking = len(self._turns)
        since = asyncio.get_running_loop().time()
        try:
            found = await self._store.take(self._owner, self._lease_s, min(asking, MOST - self._opening))
        except Exception as error:  # noqa: BLE001 -- it is for those who asked
            for turn in self._leave(asking):
                turn.set_exception(error)
            return
        self._opening += len(found)
        for taken in found:
            picked = Picked(taken, since)
            served = self._leave(1)
            for turn in served:
                turn.set_result(picked)
            if not served:
                await self.put_back(picked)
        if not found:
            for turn in self._leave(asking):
                turn.set_result(None)

    def _leave(self, most: int) -> list[_Turn]:
        """The first who still wait for their turn, up to ``most``. They wait no longer."""
        leaving: list[_Turn] = []
        while self._turns and len(leaving) < most:
            turn = self._turns.popleft()
            if not turn.done():
                leaving.append(turn)
        return leaving
