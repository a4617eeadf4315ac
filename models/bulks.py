"""Orders of many replays: what is to be replayed, how far it has come, and what the replays took the first time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid5

from stepladder.models.ids import uuid7
from stepladder.schemas.canonical import content_hash
from stepladder.schemas.jsontext import json_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from stepladder.models.database import Connection, Database
    from stepladder.models.listing import Place
    from stepladder.schemas.jsontypes import JsonObject


KEYS = UUID("6f1a3a1e-7d0c-5c55-9a7e-3a1f5b0c9d42")


def bulk_id(principal: str, key: str | None) -> UUID:
    """The id of an order of replays: with an idempotency key the same one each time."""
    return uuid7() if key is None else uuid5(KEYS, f"{principal}\0{key}")


@dataclass(frozen=True, slots=True)
class Bulk:
    """``where`` is a filter in words. ``total`` is how many jobs passed it when the order was given.

    ``jobs`` are the replays written so far by their status, and ``refused`` counts by reason the jobs that could not
    be replayed. Once it was handed out or stopped no more are written; those that are there go on.
    """

    id: UUID
    where: JsonObject
    mode: str
    changes: JsonObject
    concurrency: int
    priority: int
    principal: str
    scopes: frozenset[str] | None
    total: int
    created_at: datetime
    refused: Mapping[str, int] = field(default_factory=dict)
    after_at: datetime | None = None
    after_id: UUID | None = None
    stopped_at: datetime | None = None
    handed_out_at: datetime | None = None
    jobs: Mapping[str, int] = field(default_factory=dict)

    @property
    def asked(self) -> str:
        """One text for all orders that ask for the same."""
        return content_hash([self.where, self.mode, self.changes, self.concurrency, self.priority])

    @property
    def state(self) -> str:
        """``running``, ``stopped``, or ``done`` once every replay has ended or waits for somebody."""
        busy = sum(self.jobs.get(status, 0) for status in ("queued", "running", "paused"))
        if self.stopped_at is not None:
            return "stopped"
        return "running" if self.handed_out_at is None or busy else "done"


@dataclass(frozen=True, slots=True)
class Took:
    """What turns took when they were asked. ``cost`` is None unless every price is known, in one ``currency``."""

    turns: int
    tokens: int
    cost: float | None
    currency: str | None


async def order_bulk(database: Database, bulk: Bulk) -> bool:
    """Writes the order. False if there is one of its id."""
    parameters = {
        "id": bulk.id,
        "filter": json_text(bulk.where),
        "mode": bulk.mode,
        "changes": json_text(bulk.changes),
        "concurrency": bulk.concurrency,
        "priority": bulk.priority,
        "principal": bulk.principal,
        "scopes": None if bulk.scopes is None else sorted(bulk.scopes),
        "total": bulk.total,
        "created_at": bulk.created_at,
    }
    return await database.write(_ORDER, parameters) > 0


async def find_bulk(database: Database, bulk_id: UUID) -> Bulk | None:
    """With its replays counted."""
    row = await database.row(_FIND, {"id": bulk_id})
    if row is None:
        return None
    counted = await database.rows(_COUNTED, {"id": bulk_id})
    return _bulk(row, {one["status"]: one["jobs"] for one in counted})


async def stop_bulk(database: Database, bulk_id: UUID) -> bool:
    """No more replays are written. False if that was so already, or there is no such order."""
    return await database.write(_STOP, {"id": bulk_id}) > 0


async def open_bulks(database: Database) -> list[UUID]:
    """The orders that are still handed out, oldest first."""
    return [row["id"] for row in await database.rows(_OPEN, {})]


async def hold_bulk(connection: Connection, bulk_id: UUID) -> Bulk | None:
    """The order, with its row locked until the transaction ends; None if another has it, or it is handed out."""
    row = await (await connection.execute(_HOLD, {"id": bulk_id})).fetchone()
    if row is None:
        return None
    counted = await (await connection.execute(_COUNTED, {"id": bulk_id})).fetchall()
    return _bulk(row, {one["status"]: one["jobs"] for one in counted})


async def note_progress(
    connection: Connection, bulk: Bulk, after: Place | None, refused: Mapping[str, int], *, done: bool
) -> None:
    """How far an order has come that is held."""
    at = {"after_at": bulk.after_at, "after_id": bulk.after_id}
    if after is not None:
        at = {"after_at": after.created_at, "after_id": after.job_id}
    await connection.execute(_NOTE, {"id": bulk.id, "refused": json_text(refused), "done": done, **at})


async def took(database: Database, jobs: Sequence[UUID], from_turns: Sequence[int]) -> Took:
    """What the turns from these on took in their jobs."""
    row = await database.row(_TOOK, {"jobs": list(jobs), "turns": list(from_turns)})
    if row is None:
        return Took(0, 0, None, None)
    known = row["unpriced"] == 0 and row["cost"] is not None and row["currencies"] == 1
    return Took(row["turns"], row["tokens"], float(row["cost"]) if known else None, row["currency"] if known else None)


def _bulk(row: Mapping[str, Any], jobs: Mapping[str, int]) -> Bulk:
    plain = {name: row[name] for name in row if name not in ("filter", "scopes")}
    scopes = None if row["scopes"] is None else frozenset(row["scopes"])
    return Bulk(**plain, where=row["filter"], scopes=scopes, jobs=jobs)


_ORDER = """
INSERT INTO bulks (
    id, filter, mode, changes, concurrency, priority, principal, scopes, total, refused, created_at
)
VALUES (
    %(id)s, %(filter)s::json, %(mode)s, %(changes)s::json, %(concurrency)s, %(priority)s, %(principal)s, %(scopes)s,
    %(total)s, '{}', %(created_at)s
)
ON CONFLICT (id) DO NOTHING
"""

_FIND = """
SELECT
    id, filter, mode, changes, concurrency, priority, principal, scopes, total, refused, after_at, after_id, stopped_at,
    handed_out_at, created_at
FROM bulks WHERE id = %(id)s
"""

# Not FOR UPDATE: a replay that is written meanwhile, on another connection, holds on to the order's key.
_HOLD = f"{_FIND} AND handed_out_at IS NULL AND stopped_at IS NULL FOR NO KEY UPDATE SKIP LOCKED"

_COUNTED = """
SELECT status, count(*) AS jobs FROM job_overview WHERE bulk = %(id)s GROUP BY status
"""

_STOP = """
UPDATE bulks SET stopped_at = now() WHERE id = %(id)s AND stopped_at IS NULL
"""

_OPEN = """
SELECT id FROM bulks WHERE handed_out_at IS NULL AND stopped_at IS NULL ORDER BY created_at
"""

_NOTE = """
UPDATE bulks SET
    after_at = %(after_at)s, after_id = %(after_id)s, refused = %(refused)s::json,
    handed_out_at = CASE WHEN %(done)s THEN now() END
WHERE id = %(id)s
"""

_TOOK = """
SELECT
    count(DISTINCT (job_id, turn)) AS turns,
    COALESCE(sum(prompt_tokens + completion_tokens), 0) AS tokens,
    sum(cost) AS cost,
    count(*) FILTER (WHERE prompt_tokens IS NOT NULL AND cost IS NULL) AS unpriced,
    (SELECT count(DISTINCT currency) FROM prices WHERE until IS NULL) AS currencies,
    (SELECT min(currency) FROM prices WHERE until IS NULL) AS currency
FROM attempt_outcomes JOIN unnest(%(jobs)s::uuid[], %(turns)s::int[]) AS wanted(wanted_job, from_turn)
    ON job_id = wanted_job AND turn >= from_turn
"""
