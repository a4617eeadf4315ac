"""Retention: removes the raw answers and the history of jobs that ended long ago. Verdicts and outputs stay."""

# ruff: noqa: S608 -- statements are put together from constants

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
"""Jobs of one transaction, small enough to lock their rows for milliseconds only."""

PAUSE_S = 0.02


@dataclass(frozen=True, slots=True)
class Ages:
    """How long after a job's end each is kept; None is forever, and zero removes it at once."""

    raw: timedelta | None = None
    events: timedelta | None = None

    @classmethod
    def of_days(cls, raw: float | None, events: float | None) -> Ages:
        return cls(*(None if days is None else timedelta(days=days) for days in (raw, events)))

    @property
    def endless(self) -> bool:
        return self.raw is None and self.events is None


@dataclass(slots=True)
class Removed:
    """What was removed, or would be; ``attempts`` lost their bytes. ``more``: time ran out before everything was."""

    raw_jobs: int = 0
    attempts: int = 0
    event_jobs: int = 0
    events: int = 0
    more: bool = False

    def add(self, kind: str, row: dict[str, Any]) -> None:
        if kind == "raw":
            self.raw_jobs, self.attempts = self.raw_jobs + row["jobs"], self.attempts + row["rows"]
        else:
            self.event_jobs, self.events = self.event_jobs + row["jobs"], self.events + row["rows"]


async def retain(database: Database, ages: Ages, *, within_s: float | None = None) -> Removed:
    """Removes what is older than ``ages``, oldest first, batch by batch, until it is done or out of time.

    Held jobs, and those whose row is locked at the moment, are skipped. Any number of processes may run it at once.
    Raises ``UnreachableError`` when the database breaks; finished batches stay removed.
    """
    clock = asyncio.get_running_loop().time
    end = None if within_s is None else clock() + within_s
    removed = Removed()
    for kind, age, statement, _ in _kinds(ages):
        jobs = BATCH
        while jobs == BATCH:
            if end is not None and clock() >= end:
                removed.more = True
                return removed
            row = await _batch(database, statement, age)
            removed.add(kind, row)
            jobs = row["jobs"]
            await asyncio.sleep(PAUSE_S if jobs == BATCH else 0)
    return removed


async def due(database: Database, ages: Ages) -> Removed:
    """What ``retain`` would remove now."""
    removed = Removed()
    for kind, age, _, statement in _kinds(ages):
        removed.add(kind, await database.row(statement, {"age": age}) or {"jobs": 0, "rows": 0})
    return removed


def _kinds(ages: Ages) -> list[tuple[str, timedelta, str, str]]:
    """Each kind that has an age, with the statement that removes a batch, and the one that counts what is due."""
    kinds = (("raw", ages.raw, RAW, RAW_DUE), ("events", ages.events, EVENTS, EVENTS_DUE))
    return [(kind, age, remove, count) for kind, age, remove, count in kinds if age is not None]


async def hold(database: Database, job_id: UUID, by: str) -> Receipt:
    """Exempts a job from retention, in the name of ``by``. ``DUPLICATE`` if it is held already."""
    return Receipt.of(await database.row(HOLD, {"job": job_id, "by": plain(by)}))


async def release(database: Database, job_id: UUID) -> Receipt:
    """Ends the exemption. ``DUPLICATE`` if the job was not held."""
    return Receipt.of(await database.row(RELEASE, {"job": job_id}))


async def _batch(database: Database, statement: str, age: timedelta) -> dict[str, Any]:
    """The setting by which the trigger on attempts allows this is the transaction's alone."""
    async with database.connection() as connection, connection.transaction():
        await connection.execute("SELECT set_config('stepladder.retention', 'on', true)")
        row = await (await connection.execute(statement, {"age": age, "most": BATCH})).fetchone()
        return row or {"jobs": 0, "rows": 0}


def _old(kind: str) -> str:
    """Jobs that are due, in the terms of the indexes ``jobs_raw`` and ``jobs_events``."""
    return (
        f"SELECT id FROM jobs WHERE finished_at IS NOT NULL AND {kind}_gone_at IS NULL AND hold_at IS NULL"
        " AND finished_at <= now() - %(age)s::interval"
    )


def _remove(kind: str, removal: str) -> str:
    return f"""
WITH old AS (
    {_old(kind)} ORDER BY finished_at LIMIT %(most)s FOR NO KEY UPDATE SKIP LOCKED
), removed AS (
    {removal}
), marked AS (
    UPDATE jobs SET {kind}_gone_at = now() FROM old WHERE jobs.id = old.id RETURNING jobs.id
)
SELECT (SELECT count(*) FROM marked) AS jobs, (SELECT count(*) FROM removed) AS rows
"""


def _due(kind: str, rows: str) -> str:
    return f"""
SELECT count(*) AS jobs, COALESCE(sum(rows), 0)::bigint AS rows
FROM (SELECT (SELECT count(*) FROM {rows}) AS rows FROM ({_old(kind)}) AS old) AS counted
"""


def _mark(change: str, condition: str) -> str:
    return f"""
WITH changed AS (
    UPDATE jobs SET {change} WHERE id = %(job)s AND {condition} RETURNING id
)
SELECT EXISTS (SELECT FROM changed) AS done, EXISTS (SELECT FROM jobs WHERE id = %(job)s) AS already
"""


_BYTES = "attempts.job_id = old.id AND (raw IS NOT NULL OR content IS NOT NULL)"

RAW = _remove("raw", f"UPDATE attempts SET raw = NULL, content = NULL FROM old WHERE {_BYTES} RETURNING attempts.id")
EVENTS = _remove("events", "DELETE FROM events USING old WHERE events.job_id = old.id RETURNING events.ordinal")
RAW_DUE = _due("raw", f"attempts WHERE {_BYTES}")
EVENTS_DUE = _due("events", "events WHERE events.job_id = old.id")
HOLD = _mark("hold_at = now(), hold_by = %(by)s", "hold_at IS NULL")
RELEASE = _mark("hold_at = NULL, hold_by = NULL", "hold_at IS NOT NULL")
