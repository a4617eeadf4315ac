"""Jobs found by a rule that few answers broke: by those answers, and not by a look at every job."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stepladder.models.listing import BROKE

if TYPE_CHECKING:
    from stepladder.models.database import Database
    from stepladder.models.listing import JobFilter

FEW = 2000
"""Answers up to which it is quicker to begin with them. Where there are more, a page is soon full."""


async def narrowed(database: Database, wanted: JobFilter) -> JobFilter:
    """The filter with the jobs among which it finds all that it does, where a rule makes them few.

    The planner cannot know: it has no figures on a rule that was hardly ever broken, and would try one job after the
    other. Raises ``UnreachableError`` when the database breaks.
    """
    if not wanted.rule:
        return wanted
    async with database.connection() as connection, connection.transaction():
        await connection.execute("SET LOCAL enable_seqscan = off")
        rows = await (await connection.execute(_FIRST, {"rule": list(wanted.rule), "most": FEW + 1})).fetchall()
    return wanted if len(rows) > FEW else replace(wanted, among=tuple({row["job_id"] for row in rows}))


_FIRST = f"SELECT job_id FROM attempts WHERE {BROKE} LIMIT %(most)s"  # noqa: S608 -- a constant
