"""Selects due, unleased jobs whose queue message is missing or was lost."""

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
"""The first delay while messages wait, doubled each time: a lost message cannot be distinguished from a waiting one."""

MOST = 1000
"""Jobs announced by one sweep: about 0.5 s of work. The next sweep continues."""

AT_A_BOUND_S = 0.8
"""``LOST_AFTER_S`` where jobs in flight are bounded: a message may have come while the bound was reached."""

# A job is announced as soon as it is due, and again if no worker claimed it. Doubling the delay bounds what a backlog
# of hours adds to the queue to a few messages per job. ``notified_at`` starts as the job's creation, since the
# submitter notifies. Where jobs in flight are bounded, no more are announced than the bounds allow: a worker that
# ends such a job claims the next without a message.
DUE_JOBS = f"""
WITH {IN_HAND}, silent AS MATERIALIZED (
    SELECT
        id, priority, wake_at, LEAST({PRINCIPAL_MOST} - {PRINCIPALS}, {WORKFLOW_MOST} - {WORKFLOWS}) AS room,
        row_number() OVER (PARTITION BY principal, workflow ORDER BY priority DESC, wake_at) AS nth
    FROM jobs {LEDGER}
    WHERE {DUE}
        AND (
            notified_at < GREATEST(wake_at, lease_until)
            OR %(queue_empty)s AND notified_at <= now() - make_interval(secs => CASE
                WHEN {PRINCIPAL_MOST} IS NULL AND {WORKFLOW_MOST} IS NULL THEN %(lost_after_s)s::float8
                ELSE %(at_a_bound_s)s::float8
            END)
            OR now() - notified_at >= GREATEST(
                make_interval(secs => %(patience_s)s::float8), notified_at - GREATEST(wake_at, lease_until)
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
UPDATE jobs SET notified_at = now()
FROM due
WHERE jobs.id = due.id
RETURNING jobs.id
"""  # noqa: S608 -- put together from constants


async def take_due(store: Store, *, queue_empty: bool, most: int = MOST) -> list[UUID]:
    """The jobs to announce now, in no order, marked as announced: of several concurrent callers, one gets each.

    ``queue_empty`` says that no message waits for a worker. A caller that dies before it notifies costs
    ``LOST_AFTER_S``. Raises ``UnreachableError`` when the database breaks.
    """
    rows = await store.database.rows(
        DUE_JOBS,
        {
            "queue_empty": queue_empty,
            "lost_after_s": LOST_AFTER_S,
            "at_a_bound_s": AT_A_BOUND_S,
            "patience_s": PATIENCE_S,
            "most": most,
        },
    )
    return [row["id"] for row in rows]
