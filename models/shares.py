"""Who may have how many requests at an engine at once, so that all processes together keep to its bound.

A process says how many it wants, and how many it keeps of what it had: it promises to have no more under way than
that, from before it says so until it is told otherwise. What others give back it gets with a later word. So the shares
never add up to more than the bound, while processes come, go and die; a share that is not renewed lapses.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uuid import UUID

    from stepladder.models.database import Database

ROTATE_S = 5
"""What does not divide evenly goes to others after this time: with fewer slots than processes, each has its turn."""

# Max-min fair: those who want less than an even part get what they want, and the others divide the rest evenly. What
# nobody wants is divided as well, so that a turn finds a slot without waiting for the next word. Of several bounds
# that processes were told, the smallest holds.
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
    """What a process may have at the engine now, and what it is ``due``: more, when others give back, or less."""

    share: int
    due: int


@dataclass(frozen=True, slots=True)
class EngineUse:
    """An engine's bound, and how many requests ``workers`` have there at once, and would like to have."""

    engine: str
    bound: int
    in_use: int
    wanted: int
    workers: int


async def renew_share(
    database: Database, engine: str, worker: UUID, bound: int, *, keep: int, in_use: int, wanted: int, lease_s: float
) -> Share:
    """Says what ``worker`` keeps and wants, and gets its share for ``lease_s`` seconds from before this was asked.

    Raises ``UnreachableError`` when the database breaks: then nothing has changed but that ``keep`` may hold.
    """
    lock = int.from_bytes(hashlib.sha256(engine.encode()).digest()[:8], signed=True)
    words = {"engine": engine, "worker": worker, "bound": bound, "keep": keep, "in_use": in_use, "wanted": wanted}
    (row,) = await database.locked(lock, RENEW, words | {"lease_s": lease_s}, vital=True)
    return Share(**row)


async def leave_engine(database: Database, engine: str, worker: UUID) -> None:
    """Gives back what ``worker`` has; it has no request under way any more."""
    await database.write(LEAVE, {"engine": engine, "worker": worker})


async def engines_used(database: Database) -> list[EngineUse]:
    """The engines that have a bound, and workers."""
    return [EngineUse(**row) for row in await database.rows(ENGINES, {})]
