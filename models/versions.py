"""Published versions are retired, or paused with all their jobs.

The version's row decides. A submission locks it, so that it precedes a switch or observes it. Existing jobs are held,
and released, some hundreds at a time, so that no worker waits long for the row of its job. Each batch reads the switch
anew: of two people who turn it at once, the last one wins for every job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepladder.models.records import Receipt
from stepladder.models.rows import plain
from stepladder.schemas.event import EventKind
from stepladder.schemas.jsontext import json_text

if TYPE_CHECKING:
    from stepladder.models.store import Store

BATCH = 500
"""Jobs held, or released, by one statement: some 50 ms of work."""

# ``version`` null means all versions, and, for a pause, those to come.
_MEANT = "name = %(name)s AND (version = %(version)s::int OR %(version)s::int IS NULL)"

# All versions of a name are locked: one that is published at this moment looks at the others first.
_LOCK = """
SELECT version FROM workflows WHERE name = %(name)s ORDER BY version FOR UPDATE
"""

_RETIRE = f"""
UPDATE workflows SET retired = %(retired)s WHERE {_MEANT} AND retired <> %(retired)s
"""  # noqa: S608 -- constants

_PAUSE = f"""
UPDATE workflows SET
    paused_at = COALESCE(paused_at, now()),
    paused_by = COALESCE(paused_by, %(by)s),
    paused_whole = paused_whole OR %(version)s::int IS NULL
WHERE {_MEANT} AND (paused_at IS NULL OR %(version)s::int IS NULL AND NOT paused_whole)
"""  # noqa: S608 -- constants

_UNPAUSE = f"""
UPDATE workflows SET paused_at = NULL, paused_by = NULL, paused_whole = false
WHERE {_MEANT} AND (paused_at IS NOT NULL OR %(version)s::int IS NULL AND paused_whole)
"""  # noqa: S608 -- constants

# A job with a request to cancel must be claimed for it, and is not held.
_HOLD = f"""
WITH flagged AS (
    SELECT name, version FROM workflows WHERE {_MEANT} AND paused_at IS NOT NULL FOR SHARE
), chosen AS (
    SELECT jobs.id
    FROM jobs JOIN flagged ON flagged.name = jobs.workflow AND flagged.version = jobs.version
    WHERE jobs.finished_at IS NULL AND jobs.held_at IS NULL AND NOT jobs.cancel_requested
    ORDER BY jobs.id LIMIT %(batch)s
    FOR NO KEY UPDATE OF jobs
), held AS (
    UPDATE jobs SET held_at = now(), event_count = event_count + 1
    FROM chosen WHERE jobs.id = chosen.id
    RETURNING jobs.id, jobs.event_count
), event AS (
    INSERT INTO events (job_id, ordinal, kind, data)
    SELECT id, event_count, %(kind)s, %(data)s::json FROM held
)
SELECT count(*) AS jobs FROM held
"""  # noqa: S608 -- constants

# The deadline was suspended, as in UNPAUSE. ``notified_at`` is long past, so the next sweep announces those due.
_LET_GO = f"""
WITH flagged AS (
    SELECT name, version FROM workflows WHERE {_MEANT} AND paused_at IS NULL FOR SHARE
), chosen AS (
    SELECT jobs.id
    FROM jobs JOIN flagged ON flagged.name = jobs.workflow AND flagged.version = jobs.version
    WHERE jobs.finished_at IS NULL AND jobs.held_at IS NOT NULL
    ORDER BY jobs.id LIMIT %(batch)s
    FOR NO KEY UPDATE OF jobs
), freed AS (
    UPDATE jobs SET
        held_at = NULL,
        paused_at = CASE WHEN paused_at IS NOT NULL THEN LEAST(paused_at, held_at) END,
        notified_at = 'epoch',
        event_count = event_count + 1,
        deadline_at = CASE
            WHEN status = 'waiting' OR paused_at IS NOT NULL THEN deadline_at
            ELSE deadline_at + (now() - held_at)
        END
    FROM chosen WHERE jobs.id = chosen.id
    RETURNING jobs.id, jobs.event_count
), event AS (
    INSERT INTO events (job_id, ordinal, kind, data)
    SELECT id, event_count, %(kind)s, %(data)s::json FROM freed
)
SELECT count(*) AS jobs FROM freed
"""  # noqa: S608 -- constants


async def retire(store: Store, name: str, version: int, *, retired: bool = True) -> Receipt:
    """Accepts no new jobs of the version, or, unless ``retired``, accepts them again. Existing jobs continue.

    ``DUPLICATE`` if it was so already, ``UNKNOWN`` if there is no such version. Raises ``UnreachableError`` when the
    database breaks, as all of these do.
    """
    return await _turn(store, _RETIRE, {"name": name, "version": version, "retired": retired})


async def pause(store: Store, name: str, version: int | None, by: str) -> Receipt:
    """Pauses all jobs of the version, in the name of ``by``; without a version, of the workflow.

    Workers finish the attempt or tool in flight. New jobs are accepted, and held as well. Deadlines are suspended.
    ``DUPLICATE`` if it was paused already; then what an earlier call left undone is done.
    """
    receipt = await _turn(store, _PAUSE, {"name": name, "version": version, "by": plain(by)})
    await _each(store, _HOLD, name, version, EventKind.JOB_PAUSED, by)
    return receipt


async def unpause(store: Store, name: str, version: int | None, by: str) -> Receipt:
    """Continues all jobs of the version, or of the workflow, except those that are paused themselves."""
    receipt = await _turn(store, _UNPAUSE, {"name": name, "version": version})
    await _each(store, _LET_GO, name, version, EventKind.JOB_UNPAUSED, by)
    return receipt


async def _turn(store: Store, statement: str, switch: dict[str, object]) -> Receipt:
    async with store.database.connection() as connection, connection.transaction():
        found = [row["version"] for row in await (await connection.execute(_LOCK, switch)).fetchall()]
        if not found or switch["version"] not in (None, *found):
            return Receipt.UNKNOWN
        return Receipt.ACCEPTED if (await connection.execute(statement, switch)).rowcount else Receipt.DUPLICATE


async def _each(store: Store, statement: str, name: str, version: int | None, kind: EventKind, by: str) -> None:
    data = json_text({"by": by, "workflow": name} | ({} if version is None else {"version": version}))
    parameters = {"name": name, "version": version, "batch": BATCH, "kind": kind, "data": data}
    row = await store.database.row(statement, parameters)
    while row is not None and row["jobs"] == BATCH:
        row = await store.database.row(statement, parameters)
