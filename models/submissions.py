"""New jobs: written under an idempotency key, with what they carry over from another job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stepladder.models import hot
from stepladder.models.rows import carried_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepladder.models.database import Database
    from stepladder.models.records import NewJob


async def write_jobs(database: Database, jobs: Sequence[NewJob], parameters: dict[str, Any]) -> dict[str, Any] | None:
    """Runs ``SUBMIT``. What a job carries over is written in the same transaction, by the one statement that
    writes any step.
    """
    carrying = [new for new in jobs if new.job.state is not None]
    if not carrying:
        return await database.row(SUBMIT, parameters)
    async with database.connection() as connection, connection.transaction():
        row = await (await connection.execute(SUBMIT, parameters)).fetchone()
        for new in carrying if row is not None and row["written"] else ():
            await connection.execute(hot.COMMIT, {"step": carried_json(new.job)})
        return row


# One job or a thousand, all or none. Of two submissions under one key at once, the second waits until the first is
# committed, then finds the key taken and writes nothing. A key that is older than the time for which keys are kept
# counts as one that was never used; a few of those are cleared away in passing.
#
# The versions' rows are locked: retiring or pausing one comes before, and is observed, or waits until the jobs are
# there. A replay is of the version that it replays, retired or not.
SUBMIT = """
WITH wanted AS (
    SELECT workflows.name, workflows.version, workflows.paused_at, workflows.retired AND asked.fresh AS refused
    FROM workflows JOIN (
        SELECT new.workflow, new.version, bool_or(new.replay_of IS NULL) AS fresh
        FROM json_to_recordset(%(jobs)s::json) AS new(workflow text, version int, replay_of uuid)
        GROUP BY new.workflow, new.version
    ) AS asked ON asked.workflow = workflows.name AND asked.version = workflows.version
    ORDER BY workflows.name, workflows.version
    FOR SHARE OF workflows
), key AS (
    INSERT INTO idempotency_keys (principal, key, fingerprint, job_ids)
    SELECT %(key_principal)s::text, %(key)s::text, %(fingerprint)s::text, %(job_ids)s::uuid[]
    WHERE %(key)s::text IS NOT NULL AND NOT EXISTS (SELECT FROM wanted WHERE refused)
    ON CONFLICT (principal, key) DO UPDATE SET
        fingerprint = EXCLUDED.fingerprint, job_ids = EXCLUDED.job_ids, created_at = now()
    WHERE idempotency_keys.created_at <= now() - make_interval(secs => %(kept_s)s::float8)
    RETURNING key
), old AS (
    SELECT principal, key FROM idempotency_keys
    WHERE created_at <= now() - make_interval(secs => %(kept_s)s::float8)
        AND NOT (principal = %(key_principal)s::text AND key = %(key)s::text)
    LIMIT 10
    FOR UPDATE SKIP LOCKED
), cleared AS (
    DELETE FROM idempotency_keys USING old
    WHERE idempotency_keys.principal = old.principal AND idempotency_keys.key = old.key
), job AS (
    INSERT INTO jobs (
        id, lineage, replay_of, bulk, variant, experiment, arm, sample, workflow, version, status, input, metadata,
        principal, scopes, priority, token_budget, event_count, wake_at, held_at, deadline_at, created_at
    )
    SELECT
        new.id, new.lineage, new.replay_of, new.bulk, new.variant, new.experiment, new.arm, new.sample, new.workflow,
        new.version, new.status, new.input::json, new.metadata::jsonb, new.principal, new.scopes, new.priority,
        new.token_budget, 1, now(), CASE WHEN wanted.paused_at IS NOT NULL THEN now() END, new.deadline_at,
        new.created_at
    FROM json_to_recordset(%(jobs)s::json) AS new(
        id uuid, lineage uuid, replay_of uuid, bulk uuid, variant text, experiment uuid, arm text, sample int,
        workflow text, version int, status text, input text, metadata text, principal text,
        scopes text[], priority int, token_budget bigint, deadline_at timestamptz, created_at timestamptz
    )
        LEFT JOIN wanted ON wanted.name = new.workflow AND wanted.version = new.version
    WHERE NOT EXISTS (SELECT FROM wanted WHERE refused)
        AND (%(key)s::text IS NULL OR EXISTS (SELECT FROM key))
    RETURNING id, held_at
), event AS (
    INSERT INTO events (job_id, ordinal, kind, data)
    SELECT id, 1, %(kind)s, new.created::json
    FROM job JOIN json_to_recordset(%(jobs)s::json) AS new(id uuid, created text) USING (id)
)
SELECT
    count(*) AS written, array_agg(id) FILTER (WHERE held_at IS NOT NULL) AS paused,
    (SELECT json_build_array(name, version) FROM wanted WHERE refused LIMIT 1) AS refused
FROM job
"""

SUBMITTED = """
SELECT fingerprint, job_ids FROM idempotency_keys
WHERE principal = %(principal)s AND key = %(key)s
    AND created_at > now() - make_interval(secs => %(kept_s)s::float8)
"""
