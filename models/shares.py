"""Divides the requests allowed at an engine among processes, so that together they stay within its bound.

A process reports how many requests it wants, and how many it keeps of its share: from before the report until the
next answer it has no more in flight than that. It gets what others release with a later renewal. So the shares never
add up to more than the bound while processes come, go and die; a share that is not renewed lapses.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uuid import UUID

    from stepladder.models.database import Database

ROTATE_S = 5
"""How often the remainder of an uneven division rotates: with fewer requests than processes, each gets a turn."""

# Max-min fair: processes that want less than an even part get what they want, and the others divide the rest evenly.
# Unwanted capacity is divided as well, so that a turn need not wait for the next renewal. Of several configured
# bounds, the smallest applies.
RENEW = f"""
WITH other AS (
    SELECT worker, bound, share, wanted FROM engine_shares
    WHERE engine = %(engine)s AND worker <> %(worker)s AND until > statement_timestamp()
), gone AS (
    DELETE FROM engine_shares
    WHERE engine = %(engine)s AND worker <> %(worker)s AND until <= statement_timestamp()
), everybody AS (
    SELECT worker, bound, wanted FROM other
    UNION ALL SELECT %(worker)s::uuid, %(bound)s::int, %(wanted)s::int
), bound AS (
    SELECT min(bound) AS most FROM everybody
), ranked AS (
    SELECT worker, wanted, sum(wanted) OVER (ORDER BY wanted, worker) - wanted + wanted * (
        count(*) OVER () - row_number() OVER (ORDER BY wanted, worker) + 1
    ) <= most AS filled
    FROM everybody, bound
), rest AS (
    SELECT bool_and(filled) AS all_filled, min(most) - COALESCE(sum(wanted) FILTER (WHERE filled), 0) AS spare
    FROM ranked, bound
), dividing AS (
    SELECT
        worker, CASE WHEN all_filled THEN wanted ELSE 0 END AS first, spare, count(*) OVER () AS n,
        row_number() OVER (ORDER BY worker) + floor(EXTRACT(epoch FROM now()) / {ROTATE_S})::bigint AS nth
    FROM ranked, rest WHERE all_filled OR NOT filled
), due AS (
    SELECT COALESCE(
        (SELECT first + spare / n + (nth %% n < spare %% n)::int FROM dividing WHERE worker = %(worker)s), %(wanted)s
    )::int AS share
)
INSERT INTO engine_shares AS mine (engine, worker, bound, share, in_use, wanted, until)
SELECT
    %(engine)s, %(worker)s, %(bound)s,
    %(keep)s::int + GREATEST(0, LEAST(
        due.share - %(keep)s::int, bound.most - %(keep)s::int - COALESCE((SELECT sum(share) FROM other), 0)
    )),
    %(in_use)s, %(wanted)s, statement_timestamp() + make_interval(secs => %(lease_s)s::float8)
FROM due, bound
ON CONFLICT (engine, worker) DO UPDATE SET
    bound = EXCLUDED.bound, share = EXCLUDED.share, in_use = EXCLUDED.in_use, wanted = EXCLUDED.wanted,
    until = EXCLUDED.until
RETURNING mine.share, (SELECT share FROM due) AS due
"""  # noqa: S608 -- put together from constants

LEAVE = "DELETE FROM engine_shares WHERE engine = %(engine)s AND worker = %(worker)s"

ENGINES = """
SELECT engine, min(bound) AS bound, sum(in_use)::int AS in_use, sum(wanted)::int AS wanted, count(*)::int AS workers
FROM engine_shares WHERE until > now() GROUP BY engine ORDER BY engine
"""


@dataclass(frozen=True, slots=True)
class Share:
    """What a process may have in flight now, and what it is ``due``: more, once others give back, or less."""

    share: int
    due: int


@dataclass(frozen=True, slots=True)
class EngineUse:
    """An engine's bound, and how many requests its ``workers`` have in flight and want."""

    engine: str
    bound: int
    in_use: int
    wanted: int
    workers: int


async def renew_share(
    database: Database, engine: str, worker: UUID, bound: int, *, keep: int, in_use: int, wanted: int, lease_s: float
) -> Share:
    """Reports what ``worker`` keeps and wants, and returns its share, for ``lease_s`` seconds from before the call.

    Raises ``UnreachableError`` when the database breaks: then at most ``keep`` has been recorded.
    """
    lock = int.from_bytes(hashlib.sha256(engine.encode()).digest()[:8], signed=True)
    words = {"engine": engine, "worker": worker, "bound": bound, "keep": keep, "in_use": in_use, "wanted": wanted}
    (row,) = await database.locked(lock, RENEW, words | {"lease_s": lease_s}, vital=True)
    return Share(**row)


async def leave_engine(database: Database, engine: str, worker: UUID) -> None:
    """Gives back the share of ``worker``, which has no request in flight any more."""
    await database.write(LEAVE, {"engine": engine, "worker": worker})


async def engines_used(database: Database) -> list[EngineUse]:
    """The engines that have a bound and workers."""
    return [EngineUse(**row) for row in await database.rows(ENGINES, {})]
