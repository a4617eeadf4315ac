"""What goes with age: the raw answers and the history of jobs that ended long ago. Verdicts and outputs stay."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from stepladder.models.records import Receipt
from stepladder.models.rows import plain

if TYPE_CHECKING:
    from uuid import UUID

    from stepladder.models.database import Database

BATCH = 50
"""Jobs of one transaction, which no longer than some milliseconds keeps anybody from their rows."""

PAUSE_S = 0.02


@dataclass(frozen=True, slots=True)
class Ages:
    """How long after a job's end each is kept; None is for ever, and zero not at all."""

    raw: timedelta | None = None
    events: timedelta | None = None

    @classmethod
    def of_days(cls, raw: float | None, events: float | None) -> Ages:
        def age(days: float | None) -> timedelta | None:
            return None if days is None else timedelta(days=days)

        return cls(age(raw), age(events))

    @property
    def endless(self) -> bool:
        return self.raw is None and self.events is None


@dataclass(slots=True)
class Removed:
    """What went, or what would: ``attempts`` lost their bytes. ``more`` says that some is left."""

    raw_jobs: int = 0
    attempts: int = 0
    event_jobs: int = 0
    events: int = 0
    more: bool = False


async def retain(database: Database, ages: Ages, *, within_s: float | None = None) -> Removed:
    """Takes away what is older than ``ages``, oldest first, batch by batch, until it is done or the time is over.

    Jobs that are held, and those whose row somebody has locked at this moment, are left alone. Any number of processes
    may do it at once. Raises ``UnreachableError`` when the database breaks; what was done by then is done.
    """
    clock = asyncio.get_running_loop().time
    end = None if within_s is None else clock() + within_s
    removed = Removed()
    for age, statement in ((ages.raw, RAW), (ages.events, EVENTS)):
        jobs = BATCH if age is not None else 0
        while jobs == BATCH and age is not None:
            if end is not None and clock() >= end:
                removed.more = True
                return removed
            row = await _batch(database, statement, age)
            jobs = row["jobs"]
            if statement is RAW:
                removed.raw_jobs, removed.attempts = removed.raw_jobs + jobs, removed.attempts + row["rows"]
            else:
                removed.event_jobs, removed.events = removed.event_jobs + jobs, removed.events + row["rows"]
            await asyncio.sleep(PAUSE_S if jobs == BATCH else 0)
    return removed


async def due(database: Database, ages: Ages) -> Removed:
    """What ``retain`` would take away now."""
    removed = Removed()
    if ages.raw is not None and (row := await database.row(RAW_DUE, {"age": ages.raw})) is not None:
        removed.raw_jobs, removed.attempts = row["jobs"], row["rows"]
    if ages.events is not None and (row := await database.row(EVENTS_DUE, {"age": ages.events})) is not None:
        removed.event_jobs, removed.events = row["jobs"], row["rows"]
    return removed


async def hold(database: Database, job_id: UUID, by: str) -> Receipt:
    """Keeps retention from a job, in the name of ``by``. ``DUPLICATE`` if it is held already."""
    return _receipt(await database.row(HOLD, {"job": job_id, "by": plain(by)}))


async def release(database: Database, job_id: UUID) -> Receipt:
    """Lets retention have the job again. ``DUPLICATE`` if it was not held."""
    return _receipt(await database.row(RELEASE, {"job": job_id}))


def _receipt(row: dict[str, Any] | None) -> Receipt:
    match row:
        case {"done": True}:
            return Receipt.ACCEPTED
        case {"known": True}:
            return Receipt.DUPLICATE
        case _:
            return Receipt.UNKNOWN


async def _batch(database: Database, statement: str, age: timedelta) -> dict[str, Any]:
    """The word by which the trigger on attempts lets this through holds for the transaction alone."""
    async with database.connection() as connection, connection.transaction():
        await connection.execute("SELECT set_config('stepladder.retention', 'on', true)")
        row = await (await connection.execute(statement, {"age": age, "most": BATCH})).fetchone()
        return row or {"jobs": 0, "rows": 0}


def _old(kind: str) -> str:
    """Jobs whose time has come, by the words of the indexes ``jobs_raw`` and ``jobs_events``."""
    return (
        f"FROM jobs WHERE finished_at IS NOT NULL AND {kind}_gone_at IS NULL AND hold_at IS NULL"
        " AND finished_at <= now() - %(age)s::interval"
    )


RAW = f"""
WITH old AS (
    SELECT id {_old("raw")} ORDER BY finished_at LIMIT %(most)s
    FOR NO KEY UPDATE SKIP LOCKED
), emptied AS (
    UPDATE attempts SET raw = NULL, content = NULL
    FROM old
    WHERE attempts.job_id = old.id AND (raw IS NOT NULL OR content IS NOT NULL)
    RETURNING attempts.id
), marked AS (
    UPDATE jobs SET raw_gone_at = now()
    FROM old
    WHERE jobs.id = old.id
    RETURNING jobs.id
)
SELECT (SELECT count(*) FROM marked) AS jobs, (SELECT count(*) FROM emptied) AS rows
"""  # noqa: S608 -- constants

EVENTS = f"""
WITH old AS (
    SELECT id {_old("events")} ORDER BY finished_at LIMIT %(most)s
    FOR NO KEY UPDATE SKIP LOCKED
), deleted AS (
    DELETE FROM events USING old WHERE events.job_id = old.id RETURNING events.ordinal
), marked AS (
    UPDATE jobs SET events_gone_at = now()
    FROM old
    WHERE jobs.id = old.id
    RETURNING jobs.id
)
SELECT (SELECT count(*) FROM marked) AS jobs, (SELECT count(*) FROM deleted) AS rows
"""  # noqa: S608 -- constants

RAW_DUE = f"""
SELECT count(*) AS jobs, COALESCE(sum(rows), 0)::bigint AS rows FROM (
    SELECT (
        SELECT count(*) FROM attempts WHERE job_id = old.id AND (raw IS NOT NULL OR content IS NOT NULL)
    ) AS rows
    FROM (SELECT id {_old("raw")}) AS old
) AS counted
"""  # noqa: S608 -- constants

EVENTS_DUE = f"""
SELECT count(*) AS jobs, COALESCE(sum(rows), 0)::bigint AS rows FROM (
    SELECT (SELECT count(*) FROM events WHERE job_id = old.id) AS rows
    FROM (SELECT id {_old("events")}) AS old
) AS counted
"""  # noqa: S608 -- constants

HOLD = """
WITH held AS (
    UPDATE jobs SET hold_at = now(), hold_by = %(by)s
    WHERE id = %(job)s AND hold_at IS NULL
    RETURNING id
)
SELECT EXISTS (SELECT FROM held) AS done, EXISTS (SELECT FROM jobs WHERE id = %(job)s) AS known
"""

RELEASE = """
WITH released AS (
    UPDATE jobs SET hold_at = NULL, hold_by = NULL
    WHERE id = %(job)s AND hold_at IS NOT NULL
    RETURNING id
)
SELECT EXISTS (SELECT FROM released) AS done, EXISTS (SELECT FROM jobs WHERE id = %(job)s) AS known
"""
