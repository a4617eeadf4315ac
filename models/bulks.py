"""Orders of many replays: what to replay, how far it has come, and what the replayed turns took the first time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid5

from stepladder.models.ids import uuid7
from stepladder.schemas.canonical import identity
from stepladder.schemas.jsontext import json_text
from stepladder.schemas.replay import BulkReplay

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stepladder.models.database import Connection, Database
    from stepladder.schemas.job_filter import Place

KEYS = UUID("6f1a3a1e-7d0c-5c55-9a7e-3a1f5b0c9d42")
BUSY = ("queued", "running", "paused")


def bulk_id(principal: str, key: str | None) -> UUID:
    """The id of an order of replays: with an idempotency key the same one each time."""
    return uuid7() if key is None else uuid5(KEYS, f"{principal}\0{key}")


def is_same_order(one: BulkReplay, other: BulkReplay) -> bool:
    names = ("where", "mode", "set", "concurrency", "priority")
    return all(identity(getattr(one, name)) == identity(getattr(other, name)) for name in names)


async def order_bulk(database: Database, bulk: BulkReplay) -> bool:
    """Writes the order. False if there is one with its id."""
    row = {name: getattr(bulk, name) for name in type(bulk).model_fields}
    scopes = None if bulk.scopes is None else sorted(bulk.scopes)
    columns = {"filter": json_text(bulk.where), "changes": json_text(bulk.set), "scopes": scopes}
    return await database.write(_ORDER, row | columns) > 0


async def find_bulk(database: Database, bulk_id: UUID) -> BulkReplay | None:
    """With its replays counted."""
    row = await database.row(_FIND, {"id": bulk_id})
    return None if row is None else _bulk(row)


async def stop_bulk(database: Database, bulk_id: UUID) -> bool:
    """Starts no more replays. False if it was stopped already, or there is no such order."""
    return await database.write(_STOP, {"id": bulk_id}) > 0


async def open_bulks(database: Database) -> list[UUID]:
    """The orders that are still handed out, oldest first."""
    return [row["id"] for row in await database.rows(_OPEN, {})]


async def hold_bulk(connection: Connection, bulk_id: UUID) -> BulkReplay | None:
    """The order, locked until the transaction ends; None if another worker has it, or it is handed out."""
    row = await (await connection.execute(_HOLD, {"id": bulk_id})).fetchone()
    return None if row is None else _bulk(row)


async def note_progress(
    connection: Connection, bulk: BulkReplay, after: Place | None, refused: Mapping[str, int], *, done: bool
) -> None:
    """Records how far a locked order has come."""
    at = (bulk.after_at, bulk.after_id) if after is None else (after.created_at, after.job_id)
    place = {"after_at": at[0], "after_id": at[1]}
    await connection.execute(_NOTE, {"id": bulk.id, "refused": json_text(refused), "done": done, **place})


async def usage_of(database: Database, jobs: Sequence[UUID], from_turns: Sequence[int]) -> dict[str, Any]:
    """``turns``, ``tokens``, ``cost`` and ``currency`` of these jobs, each from a turn on.

    The cost is None unless every price is known, in one currency.
    """
    row = await database.row(_USAGE, {"jobs": list(jobs), "turns": list(from_turns)}) or {}
    known = row["unpriced"] == 0 and row["cost"] is not None and row["currencies"] == 1
    found = {"turns": row["turns"], "tokens": row["tokens"], "cost": None, "currency": None}
    return found | ({"cost": float(row["cost"]), "currency": row["currency"]} if known else {})


def _bulk(row: dict[str, Any]) -> BulkReplay:
    handing_out, counts = row.pop("open"), row["jobs"]
    running = handing_out or any(counts.get(status) for status in BUSY)
    state = "running" if running else "done"
    return BulkReplay(**row, state="stopped" if row["stopped_at"] else state, handed_out=sum(counts.values()))


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
    id, filter AS "where", mode, changes AS "set", concurrency, priority, principal, scopes, total, refused, after_at,
    after_id, stopped_at, handed_out_at IS NULL AS open, created_at,
    COALESCE((
        SELECT json_object_agg(status, jobs)
        FROM (SELECT status, count(*) AS jobs FROM job_overview WHERE bulk = %(id)s GROUP BY status) AS counted
    ), '{}') AS jobs
FROM bulks WHERE id = %(id)s
"""

# FOR UPDATE would block the replays that are written meanwhile on other connections, which refer to the order's key.
_HOLD = f"{_FIND} AND handed_out_at IS NULL AND stopped_at IS NULL FOR NO KEY UPDATE SKIP LOCKED"

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

_USAGE = """
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
