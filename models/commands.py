"""Commands to a job: signals, settlements, and requests to cancel, pause and unpause.

Each statement is one round trip and one transaction, as in ``hot``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepladder.models import hot
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


class JobCommands:
    """The commands to a job, a part of the ``Store``. Each method raises ``UnreachableError`` as the store's do."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def signal(self, job_id: UUID, signal_id: UUID, name: str, payload: Json, sender: Actor = LOCAL) -> Receipt:
        """Keeps a signal for the job, once by its id, and wakes the job if it waits."""
        scopes = None if sender.scopes is None else sorted(sender.scopes)
        sent = {"name": plain(name), "payload": json_text(payload), "by": plain(sender.name), "scopes": scopes}
        return Receipt.of(await self._database.row(SIGNAL, {"job": job_id, "id": signal_id, **sent}))

    async def pending_signals(self, job_id: UUID) -> Inbox:
        """The signals not yet taken, oldest first."""
        async with self._database.connection() as connection:
            # The count first: a signal that slips in between is then seen twice, and never missed.
            count = await (await connection.execute(hot.SIGNALS_RECEIVED, {"job": job_id})).fetchone()
            rows = await (await connection.execute(hot.SIGNALS, {"job": job_id})).fetchall()
        return Inbox(0 if count is None else count["signals_received"], tuple(signal_of(row) for row in rows))

    async def request_cancel(self, job_id: UUID) -> Receipt:
        """Asks for the job to end. Its worker learns of it with a heartbeat; an unleased job is due at once."""
        return Receipt.of(await self._database.row(CANCEL, {"job": job_id}))

    async def sent_signal(self, job_id: UUID, signal_id: UUID) -> tuple[str, Json, str] | None:
        """The name, the payload and the sender of a signal that came under this id."""
        row = await self._database.row(SIGNAL_SENT, {"job": job_id, "id": signal_id})
        return None if row is None else (row["name"], row["payload"], row["by"])

    async def settle(self, job_id: UUID, key: str, said: Settled) -> Settling:
        """Records a person's settlement, once, of the call with that key that the job waits for; wakes the job."""
        word = {"done": said.done, "result": json_text(said.result) if said.done else None, "by": plain(said.by)}
        row = await self._database.row(SETTLE, {"job": job_id, "key": plain(key), "waiting_for": SETTLEMENT, **word})
        return Settling.ACCEPTED if row is not None else await self.settled_before(job_id, said, key)

    async def settled_before(self, job_id: UUID, said: Settled, key: str | None = None) -> Settling:
        """Compares this with the earlier settlement of the job's call with that key, or of the last settled call."""
        before = await self._database.row(SAID, {"job": job_id, "key": plain(key)})
        if before is None:
            return Settling.NOT_ASKED
        if before["done"] is said.done and (not said.done or exact_hash(before["result"]) == exact_hash(said.result)):
            return Settling.DUPLICATE
        return Settling.CONTRADICTED if before["open"] or key is not None else Settling.NOT_ASKED

    async def pause(self, job_id: UUID, by: str) -> Receipt:
        """Pauses a job, in the name of ``by``: it is not claimed. A worker that has it finishes the attempt under way.

        Its deadline is suspended. ``FINAL`` if it has ended or is being cancelled.
        """
        return await self._switch(PAUSE, EventKind.JOB_PAUSED, job_id, by)

    async def unpause(self, job_id: UUID, by: str) -> Receipt:
        """Resumes a paused job where it was. ``DUPLICATE`` if it was not paused."""
        return await self._switch(UNPAUSE, EventKind.JOB_UNPAUSED, job_id, by)

    async def _switch(self, statement: str, kind: EventKind, job_id: UUID, by: str) -> Receipt:
        parameters = {"job": job_id, "kind": kind, "data": json_text({"by": by})}
        return Receipt.of(await self._database.row(statement, parameters))


# The job's row is locked before the signal's is made, as in COMMIT. Two of the same id at once may both count; the
# count is compared, never read, and one wake-up too many does no harm.
SIGNAL = """
WITH woken AS (
    UPDATE jobs SET
        signals_received = signals_received + 1,
        wake_at = CASE WHEN status = 'waiting' THEN now() ELSE wake_at END
    WHERE id = %(job)s
        AND status NOT IN ('succeeded', 'failed', 'cancelled')
        AND NOT EXISTS (SELECT FROM signals WHERE job_id = %(job)s AND id = %(id)s)
    RETURNING id
), kept AS (
    INSERT INTO signals (job_id, id, name, payload, by, scopes)
    SELECT id, %(id)s, %(name)s, %(payload)s::json, %(by)s, %(scopes)s::text[] FROM woken
    ON CONFLICT (job_id, id) DO NOTHING
    RETURNING id
)
SELECT
    EXISTS (SELECT FROM kept) AS done,
    EXISTS (SELECT FROM woken) OR EXISTS (SELECT FROM signals WHERE job_id = %(job)s AND id = %(id)s) AS already,
    EXISTS (SELECT FROM jobs WHERE id = %(job)s) AS known
"""

# As SIGNAL, and loses no wake-up for the same reason. The call was opened in an earlier commit than the one by which
# the job began to wait, so that a reader of the latter sees the former. Of two at once one keeps its row.
SETTLE = """
WITH woken AS (
    UPDATE jobs SET signals_received = signals_received + 1, wake_at = now()
    FROM visits
    WHERE jobs.id = %(job)s
        AND jobs.status = 'waiting'
        AND jobs.waiting_for = %(waiting_for)s
        AND visits.job_id = jobs.id
        AND visits.status = 'settlement'
        AND visits.key = %(key)s
        AND NOT EXISTS (
            SELECT FROM settlements WHERE settlements.job_id = jobs.id AND settlements.visit = visits.visit
        )
    RETURNING jobs.id, visits.visit
)
INSERT INTO settlements (job_id, visit, done, result, by)
SELECT id, visit, %(done)s, %(result)s::json, %(by)s FROM woken
ON CONFLICT (job_id, visit) DO NOTHING
RETURNING visit
"""

# The last settlement; of the named call, if one is named.
SAID = """
SELECT settlements.done, settlements.result, settlements.by, visits.closed_at IS NULL AS open
FROM settlements JOIN visits USING (job_id, visit)
WHERE job_id = %(job)s AND visits.key = COALESCE(%(key)s::text, visits.key)
ORDER BY visit DESC LIMIT 1
"""

# A paused job that is to end must be claimed for it, and so is paused no longer.
CANCEL = """
WITH asked AS (
    UPDATE jobs SET cancel_requested = true, paused_at = NULL, held_at = NULL, wake_at = LEAST(wake_at, now())
    WHERE id = %(job)s AND status NOT IN ('succeeded', 'failed', 'cancelled')
    RETURNING id
)
SELECT EXISTS (SELECT FROM asked) AS done, EXISTS (SELECT FROM jobs WHERE id = %(job)s) AS known
"""

# The line in the history takes the next ordinal under the job's row lock, as COMMIT does.
PAUSE = """
WITH paused AS (
    UPDATE jobs SET paused_at = now(), event_count = event_count + 1
    WHERE id = %(job)s
        AND paused_at IS NULL
        AND NOT cancel_requested
        AND status NOT IN ('succeeded', 'failed', 'cancelled')
    RETURNING id, event_count
), event AS (
    INSERT INTO events (job_id, ordinal, kind, data)
    SELECT id, event_count, %(kind)s, %(data)s::json FROM paused
)
SELECT
    EXISTS (SELECT FROM paused) AS done,
    EXISTS (SELECT FROM jobs WHERE id = %(job)s AND paused_at IS NOT NULL AND finished_at IS NULL) AS already,
    EXISTS (SELECT FROM jobs WHERE id = %(job)s) AS known
"""

# The deadline was suspended. In a wait it is already, by the machine's own count; and where the job's workflow is
# paused as well, it stays suspended, since the earlier of the two.
UNPAUSE = """
WITH unpaused AS (
    UPDATE jobs SET
        paused_at = NULL,
        held_at = CASE WHEN held_at IS NOT NULL THEN LEAST(held_at, paused_at) END,
        event_count = event_count + 1,
        deadline_at = CASE
            WHEN status = 'waiting' OR held_at IS NOT NULL THEN deadline_at
            ELSE deadline_at + (now() - paused_at)
        END
    WHERE id = %(job)s AND paused_at IS NOT NULL AND finished_at IS NULL
    RETURNING id, event_count
), event AS (
    INSERT INTO events (job_id, ordinal, kind, data)
    SELECT id, event_count, %(kind)s, %(data)s::json FROM unpaused
)
SELECT
    EXISTS (SELECT FROM unpaused) AS done,
    EXISTS (SELECT FROM jobs WHERE id = %(job)s AND finished_at IS NULL) AS already,
    EXISTS (SELECT FROM jobs WHERE id = %(job)s) AS known
"""

# A signal that was sent before, to compare with one that comes under the same id.
SIGNAL_SENT = """
SELECT name, payload, by FROM signals WHERE job_id = %(job)s AND id = %(id)s
"""
