"""What is said to a job from outside: signals, settlements, and requests to cancel, to pause and to go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepladder.models import hot, intake
from stepladder.models.load import signal_of
from stepladder.models.records import Inbox, Receipt, Settling
from stepladder.models.rows import plain
from stepladder.schemas.actor import LOCAL
from stepladder.schemas.canonical import exact_hash
from stepladder.schemas.event import EventKind
from stepladder.schemas.job import SETTLEMENT
from stepladder.schemas.jsontext import json_text

if TYPE_CHECKING:
    from uuid import UUID

    from stepladder.models.database import Database
    from stepladder.schemas.actor import Actor
    from stepladder.schemas.jsontypes import Json
    from stepladder.workflows.events import Settled


class Outside:
    """The part of the ``Store`` that people write to. Each method raises ``UnreachableError`` as the store's do."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def signal(self, job_id: UUID, signal_id: UUID, name: str, payload: Json, sender: Actor = LOCAL) -> Receipt:
        """Keeps a signal for the job, once by its id, and wakes the job if it waits."""
        scopes = None if sender.scopes is None else sorted(sender.scopes)
        sent = {"name": plain(name), "payload": json_text(payload), "by": plain(sender.name), "scopes": scopes}
        row = await self._database.row(intake.SIGNAL, {"job": job_id, "id": signal_id, **sent})
        match row:
            case {"kept": True}:
                return Receipt.ACCEPTED
            case {"seen": True}:
                return Receipt.DUPLICATE
            case {"known": True}:
                return Receipt.FINAL
            case _:
                return Receipt.UNKNOWN

    async def pending_signals(self, job_id: UUID) -> Inbox:
        """The signals that nobody has taken, oldest first."""
        async with self._database.connection() as connection:
            # The count first: a signal that slips in between is then seen twice, and never missed.
            count = await (await connection.execute(hot.SIGNALS_RECEIVED, {"job": job_id})).fetchone()
            rows = await (await connection.execute(hot.SIGNALS, {"job": job_id})).fetchall()
        return Inbox(0 if count is None else count["signals_received"], tuple(signal_of(row) for row in rows))

    async def request_cancel(self, job_id: UUID) -> Receipt:
        """Asks for the job to end. Its worker learns of it with a heartbeat; in nobody's hands it is due at once."""
        match await self._database.row(intake.CANCEL, {"job": job_id}):
            case {"asked": True}:
                return Receipt.ACCEPTED
            case {"known": True}:
                return Receipt.FINAL
            case _:
                return Receipt.UNKNOWN

    async def sent_signal(self, job_id: UUID, signal_id: UUID) -> tuple[str, Json, str] | None:
        """The name, the payload and the sender of a signal that came under this id."""
        row = await self._database.row(intake.SIGNAL_SENT, {"job": job_id, "id": signal_id})
        return None if row is None else (row["name"], row["payload"], row["by"])

    async def settle(self, job_id: UUID, key: str, said: Settled) -> Settling:
        """Keeps what a person says of the call of that key, for which the job waits, once; and wakes the job."""
        word = {"done": said.done, "result": json_text(said.result) if said.done else None, "by": plain(said.by)}
        row = await self._database.row(
            intake.SETTLE, {"job": job_id, "key": plain(key), "waiting_for": SETTLEMENT, **word}
        )
        return Settling.ACCEPTED if row is not None else await self.settled_before(job_id, said, key)

    async def settled_before(self, job_id: UUID, said: Settled, key: str | None = None) -> Settling:
        """How this goes with what was said of the job's call of that key; without one, of the last that was settled."""
        before = await self._database.row(intake.SAID, {"job": job_id, "key": plain(key)})
        if before is None:
            return Settling.NOT_ASKED
        if before["done"] is said.done and (not said.done or exact_hash(before["result"]) == exact_hash(said.result)):
            return Settling.DUPLICATE
        return Settling.CONTRADICTED if before["open"] or key is not None else Settling.NOT_ASKED

    async def pause(self, job_id: UUID, by: str) -> Receipt:
        """Pauses a job, in the name of ``by``: nobody claims it. A worker that has it finishes the attempt under way.

        Its deadline stands still. ``FINAL`` if it has ended or is being cancelled.
        """
        return await self._switch(intake.PAUSE, EventKind.JOB_PAUSED, job_id, by)

    async def unpause(self, job_id: UUID, by: str) -> Receipt:
        """Lets a paused job go on where it was. ``DUPLICATE`` if it was not paused."""
        return await self._switch(intake.UNPAUSE, EventKind.JOB_UNPAUSED, job_id, by)

    async def _switch(self, statement: str, kind: EventKind, job_id: UUID, by: str) -> Receipt:
        match await self._database.row(statement, {"job": job_id, "kind": kind, "data": json_text({"by": by})}):
            case {"done": True}:
                return Receipt.ACCEPTED
            case {"already": True}:
                return Receipt.DUPLICATE
            case {"known": True}:
                return Receipt.FINAL
            case _:
                return Receipt.UNKNOWN
