"""Which due jobs are claimed next, when more are due than there are places.

The order: higher priority; then the principal with the fewest jobs in flight, counting those that the same statement
claims; then the longest wait. Jobs that would exceed a bound on jobs in flight, of their workflow or principal, are
skipped.

Jobs of one priority, principal and workflow form a lane: this order does not tell them apart. The statement steps
through an index from lane to lane, so that a claim costs by the number of lanes and of jobs in flight, not by how many
jobs wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepladder.models.hot import DUE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stepladder.models.database import Database

LOCK = 0x5E91_ADDE_0001
"""Claims take turns by this advisory lock: each sees what earlier ones claimed, and bounds hold strictly.

Under it a claim runs one statement that waits for no row lock and returns little, so it is held only briefly.
"""

MOST = 16
"""Jobs claimed by one statement. A constant in it: as a parameter, the plan would be made anew each time."""

_WAITS = "wake_at IS NOT NULL AND paused_at IS NULL AND held_at IS NULL AND lease_owner IS NULL"

# ``statement_timestamp()`` is when a statement began, and so later than the moment at which its lock was asked for.
IN_HAND = """
leased AS MATERIALIZED (
    SELECT
        id, priority, principal, workflow, wake_at, lease_until > statement_timestamp() AS alive,
        paused_at IS NULL AND held_at IS NULL AND wake_at <= statement_timestamp() AS due
    FROM jobs WHERE lease_owner IS NOT NULL
), of_principal AS MATERIALIZED (
    SELECT principal, count(*) AS in_hand FROM leased WHERE alive GROUP BY principal
), of_workflow AS MATERIALIZED (
    SELECT workflow, count(*) AS in_hand FROM leased WHERE alive GROUP BY workflow
), workflow_bound AS MATERIALIZED (
    SELECT name AS workflow, (
        SELECT max_in_flight FROM workflows AS newest WHERE newest.name = bounded.name
        ORDER BY retired, version DESC LIMIT 1
    ) AS most
    FROM (SELECT DISTINCT name FROM workflows WHERE max_in_flight IS NOT NULL) AS bounded
), other_principals AS MATERIALIZED (
    SELECT (SELECT most FROM principal_bounds WHERE principal = '') AS most
)
"""

LEDGER = """
    LEFT JOIN of_principal USING (principal)
    LEFT JOIN of_workflow USING (workflow)
    LEFT JOIN workflow_bound USING (workflow)
    LEFT JOIN principal_bounds USING (principal)
    CROSS JOIN other_principals
"""
PRINCIPALS = "COALESCE(of_principal.in_hand, 0)"
WORKFLOWS = "COALESCE(of_workflow.in_hand, 0)"
PRINCIPAL_MOST = "COALESCE(principal_bounds.most, other_principals.most)"
WORKFLOW_MOST = "workflow_bound.most"

# The first n jobs are all in the n lanes whose first jobs come first, if the lanes of a principal count like jobs.
# ``place`` is the rank a job would have among its principal's jobs in flight, ``nth`` among its workflow's.
TAKE_DUE = f"""
WITH RECURSIVE {IN_HAND}, lane AS (
    (
        SELECT priority, principal, workflow, wake_at FROM jobs WHERE {_WAITS}
        ORDER BY priority, principal, workflow, wake_at LIMIT 1
    )
    UNION ALL
    SELECT next.* FROM lane, LATERAL (
        SELECT priority, principal, workflow, wake_at FROM jobs
        WHERE {_WAITS} AND (priority, principal, workflow) > (lane.priority, lane.principal, lane.workflow)
        ORDER BY priority, principal, workflow, wake_at LIMIT 1
    ) AS next
), open_lane AS MATERIALIZED (
    SELECT
        priority, principal, workflow,
        {PRINCIPALS} + row_number() OVER (PARTITION BY principal ORDER BY priority DESC, wake_at) AS place
    FROM lane {LEDGER}
    WHERE wake_at <= statement_timestamp()
        AND ({WORKFLOW_MOST} IS NULL OR {WORKFLOWS} < {WORKFLOW_MOST})
        AND ({PRINCIPAL_MOST} IS NULL OR {PRINCIPALS} < {PRINCIPAL_MOST})
    ORDER BY priority DESC, place, wake_at LIMIT {MOST}
), candidate AS (
    SELECT first.id, open_lane.priority, open_lane.principal, open_lane.workflow, first.wake_at
    FROM open_lane, LATERAL (
        SELECT id, wake_at FROM jobs
        WHERE {_WAITS}
            AND jobs.priority = open_lane.priority
            AND jobs.principal = open_lane.principal
            AND jobs.workflow = open_lane.workflow
            AND jobs.wake_at <= statement_timestamp()
        ORDER BY wake_at LIMIT {MOST}
    ) AS first
    UNION ALL
    SELECT id, priority, principal, workflow, wake_at FROM leased
    WHERE due AND NOT alive AND id <> ALL(%(held)s::uuid[])
), placed AS (
    SELECT
        candidate.*, {WORKFLOWS} AS in_hand, {WORKFLOW_MOST} AS workflow_most, {PRINCIPAL_MOST} AS principal_most,
        {PRINCIPALS} + row_number() OVER (PARTITION BY principal ORDER BY priority DESC, wake_at) AS place
    FROM candidate {LEDGER}
), counted AS (
    SELECT
        id, priority, place, wake_at, workflow_most,
        in_hand + row_number() OVER (PARTITION BY workflow ORDER BY priority DESC, place, wake_at) AS nth
    FROM placed WHERE principal_most IS NULL OR place <= principal_most
), chosen AS MATERIALIZED (
    SELECT id, row_number() OVER (ORDER BY priority DESC, place, wake_at) AS rank
    FROM counted WHERE workflow_most IS NULL OR nth <= workflow_most
), due AS (
    SELECT id FROM jobs
    WHERE id IN (SELECT id FROM chosen WHERE rank <= %(most)s)
        AND {DUE}
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE jobs SET
    fence = fence + 1,
    taken_over = taken_over OR lease_owner IS NOT NULL,
    lease_owner = %(owner)s,
    lease_until = statement_timestamp() + make_interval(secs => %(lease_s)s::float8),
    started_at = COALESCE(started_at, statement_timestamp())
FROM due
WHERE jobs.id = due.id
RETURNING jobs.id, jobs.fence
"""  # noqa: S608 -- put together from constants

LEASED = """
SELECT *, now() AS claimed_at FROM jobs WHERE id = %(job)s AND fence = %(fence)s
"""

KEEP_BOUNDS = """
WITH given AS (
    SELECT * FROM unnest(%(principals)s::text[], %(most)s::int[]) AS given(principal, most)
), gone AS (
    DELETE FROM principal_bounds WHERE principal NOT IN (SELECT principal FROM given)
)
INSERT INTO principal_bounds (principal, most) SELECT principal, most FROM given
ON CONFLICT (principal) DO UPDATE SET most = EXCLUDED.most
"""


async def keep_bounds(database: Database, named: Mapping[str, int], other: int | None = None) -> None:
    """Sets the bounds on jobs in flight, by principal; ``other`` is for those not named. Replaces all earlier bounds.

    Raises ``UnreachableError`` when the database breaks.
    """
    bounds = dict(named) if other is None else {**named, "": other}
    await database.write(KEEP_BOUNDS, {"principals": list(bounds), "most": list(bounds.values())})
