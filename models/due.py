"""Which jobs are to be rung: those that are due, in nobody's hands, and whose message is not there or lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepladder.models.fair import IN_HAND, LEDGER, PRINCIPAL_MOST, PRINCIPALS, WORKFLOW_MOST, WORKFLOWS
from stepladder.models.hot import DUE

if TYPE_CHECKING:
    from uuid import UUID

    from stepladder.models.store import Store

LOST_AFTER_S = 3.0
"""A message that was sent this long ago, and is in no queue, was lost, or its worker was."""

PATIENCE_S = 60.0
"""While the queue is long nobody can tell a lost message from one that waits; this is the first wait, then doubled."""

MOST = 1000
"""Jobs rung by one sweep: some 0.5 s of work. The next sweep goes on."""

AT_A_BOUND_S = 0.8
"""The same where there is a bound on jobs in hand: a message may have come when there was no room for its job."""

# A job is rung as soon as it is due, and again when the ring was in vain. Doubling the wait bounds what a backlog of
# many hours adds to the queue to a few messages a job. ``rung_at`` is the job's creation at first, since whoever
# submits a job rings. Where there is a bound on jobs in hand, no more are rung than there is room for: whoever ends
# such a job takes the next one without being rung.
RING_DUE = f"""
WITH {IN_HAND}, silent AS MATERIALIZED (
    SELECT
        id, priority, wake_at, LEAST({PRINCIPAL_MOST} - {PRINCIPALS}, {WORKFLOW_MOST} - {WORKFLOWS}) AS room,
        row_number() OVER (PARTITION BY principal, workflow ORDER BY priority DESC, wake_at) AS nth
    FROM jobs {LEDGER}
    WHERE {DUE}
        AND (
            rung_at < GREATEST(wake_at, lease_until)
            OR %(queue_empty)s AND rung_at <= now() - make_interval(secs => CASE
                WHEN {PRINCIPAL_MOST} IS NULL AND {WORKFLOW_MOST} IS NULL THEN %(lost_after_s)s::float8
                ELSE %(at_a_bound_s)s::float8
            END)
            OR now() - rung_at >= GREATEST(
                make_interval(secs => %(patience_s)s::float8), rung_at - GREATEST(wake_at, lease_until)
            )
        )
), due AS (
    SELECT id FROM jobs
    WHERE {DUE}
        AND id IN (
            SELECT id FROM silent WHERE room IS NULL OR nth <= room ORDER BY priority DESC, wake_at LIMIT %(most)s
        )
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE jobs SET rung_at = now()
FROM due
WHERE jobs.id = due.id
RETURNING jobs.id
"""  # noqa: S608 -- put together from constants


async def take_due(store: Store, *, queue_empty: bool, most: int = MOST) -> list[UUID]:
    """The jobs to ring now, in no order, and marks them as rung: of several callers at once, one gets each.

    ``queue_empty`` says that no message waits for a worker. A caller that dies before it rings costs
    ``LOST_AFTER_S``. Raises ``UnreachableError`` when the database breaks.
    """
    rows = await store._database.rows(  # noqa: SLF001 -- a method of the store in all but its place
        RING_DUE,
        {
            "queue_empty": queue_empty,
            "lost_after_s": LOST_AFTER_S,
            "at_a_bound_s": AT_A_BOUND_S,
            "patience_s": PATIENCE_S,
            "most": most,
        },
    )
    return [row["id"] for row in rows]
