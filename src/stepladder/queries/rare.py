"""Jobs found by a rule that few answers broke: through those answers, without scanning every job."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stepladder.queries.listing import BROKE

if TYPE_CHECKING:
    from stepladder.models.database import Database
    from stepladder.schemas.job_filter import JobFilter

FEW = 2000
"""Up to this many answers, it is quicker to start from them. With more, a page fills quickly."""


async def narrowed(database: Database, wanted: JobFilter) -> JobFilter:
    """The filter, narrowed to the jobs that can match if a rule makes them few.

    The planner cannot know: it has no statistics on a rule that was rarely broken, and would scan job after job.
    Raises ``UnreachableError`` when the database breaks.
    """
    if not wanted.rule:
        return wanted
    async with database.connection() as connection, connection.transaction():
        await connection.execute("SET LOCAL enable_seqscan = off")
        rows = await (await connection.execute(_FIRST, {"rule": list(wanted.rule), "most": FEW + 1})).fetchall()
    return wanted if len(rows) > FEW else replace(wanted, among=tuple({row["job_id"] for row in rows}))


_FIRST = f"SELECT job_id FROM attempts WHERE {BROKE} LIMIT %(most)s"  # noqa: S608 -- a constant
