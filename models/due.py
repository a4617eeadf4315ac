"""Which jobs are to be rung: those that are due, in nobody's hands, and whose message is not there or lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepladder.models.hot import _DUE

if TYPE_CHECKING:
    from uuid import UUID

    from stepladder.models.store import Store

LOST_AFTER_S = 3.0
"""A message that was sent this long ago, and is in no queue, was lost, or its worker was."""

PATIENCE_S = 60.0
"""While the queue is long nobody can tell a lost message from one that waits; this is the first wait, then doubled."""

MOST = 1000
"""Jobs rung by one sweep: some 0.5 s of work. The next sweep goes on."""


@dataclass(frozen=True, slots=True)
class Due:
    """A job that a worker should look at now. A higher ``priority`` comes first."""

    job_id: UUID
    priority: int


# A job is rung as soon as it is due, and again when the ring was in vain. Doubling the wait bounds what a backlog of
# many hours adds to the queue to a few messages a job. ``rung_at`` is the job's creation at first, since whoever
# submits a job rings.
RING_DUE = f"""
WITH due AS (
    {_DUE}
        AND (
            rung_at < GREATEST(wake_at, lease_until)
            OR %(queue_empty)s AND rung_at <= now() - make_interval(secs => %(lost_after_s)s::float8)
            OR now() - rung_at >= GREATEST(
                make_interval(secs => %(patience_s)s::float8), rung_at - GREATEST(wake_at, lease_until)
            )
        )
    ORDER BY priority DESC, wake_at
    LIMIT %(most)s
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE jobs SET rung_at = now()
FROM due
WHERE jobs.id = due.id
RETURNING jobs.id, jobs.priority
"""  # noqa: S608 -- put together from constants


async def take_due(store: Store, *, queue_empty: bool, most: int = MOST) -> list[Due]:
    """The jobs to ring now, the most urgent first, and marks them as rung: of several callers at once, one gets each.

    ``queue_empty`` says that no message waits for a worker. A caller that dies before it rings costs
    ``LOST_AFTER_S``. Raises ``UnreachableError`` when the database breaks.
    """
    rows = await store._database.rows(  # noqa: SLF001 -- a method of the store in all but its place
        RING_DUE,
        {"queue_empty": queue_empty, "lost_after_s": LOST_AFTER_S, "patience_s": PATIENCE_S, "most": most},
    )
    return sorted((Due(row["id"], row["priority"]) for row in rows), key=lambda due: -due.priority)
