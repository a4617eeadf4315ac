"""The statements of what comes from outside: new jobs, signals, and requests to cancel, pause and go on.

Each is one round trip and one transaction of its own, as in ``hot``.
"""

from __future__ import annotations

# One job or a thousand, all or none. Of two submissions under one key at once, the second waits until the first is
# committed, then finds the key taken and writes nothing. A key that is older than the time for which keys are kept
# counts as one that was never used; a few of those are cleared away in passing.
#
# The versions' rows are locked: who retires or pauses one comes before, and is heeded, or waits until the jobs are
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

# The job's row is locked before the signal's is made, as in COMMIT. Two of the same id at once may both count; the
# count is compared, never read, and one wake-up too many does no harm.
SIGNAL = """
WITH woken AS (
    UPDATE jobs SET
        signals_received = signals_received + 1,
        wake_at = CASE WHEN status = 'waiting' THEN now() ELSE wake_at END
    WHERE id = %(job)s
        AND status NOT IN ('succeeded', 'failed', 'cancelled')
        AND NOT EXISTS (SELECT FROM signals WHERE job_id = %(job)s AND id = %(id)s)
    RETURNING id
), kept AS (
    INSERT INTO signals (job_id, id, name, payload, by, scopes)
    SELECT id, %(id)s, %(name)s, %(payload)s::json, %(by)s, %(scopes)s::text[] FROM woken
    ON CONFLICT (job_id, id) DO NOTHING
    RETURNING id
)
SELECT
    EXISTS (SELECT FROM kept) AS kept,
    EXISTS (SELECT FROM woken) OR EXISTS (SELECT FROM signals WHERE job_id = %(job)s AND id = %(id)s) AS seen,
    EXISTS (SELECT FROM jobs WHERE id = %(job)s) AS known
"""

# As SIGNAL, and loses no wake-up for the same reason. The call was opened in an earlier commit than the one by which
# the job began to wait, so that whoever sees the latter sees the former. Of two at once one keeps its row.
SETTLE = """
WITH woken AS (
    UPDATE jobs SET signals_received = signals_received + 1, wake_at = now()
    FROM visits
    WHERE jobs.id = %(job)s
        AND jobs.status = 'waiting'
        AND jobs.waiting_for = %(waiting_for)s
        AND visits.job_id = jobs.id
        AND visits.status = 'settlement'
        AND visits.key = %(key)s
        AND NOT EXISTS (
            SELECT FROM settlements WHERE settlements.job_id = jobs.id AND settlements.visit = visits.visit
        )
    RETURNING jobs.id, visits.visit
)
INSERT INTO settlements (job_id, visit, done, result, by)
SELECT id, visit, %(done)s, %(result)s::json, %(by)s FROM woken
ON CONFLICT (job_id, visit) DO NOTHING
RETURNING visit
"""

# What was said last; of the call that is named, where one is.
SAID = """
SELECT settlements.done, settlements.result, settlements.by, visits.closed_at IS NULL AS open
FROM settlements JOIN visits USING (job_id, visit)
WHERE job_id = %(job)s AND visits.key = COALESCE(%(key)s::text, visits.key)
ORDER BY visit DESC LIMIT 1
"""

# A paused job that is to end must be claimed for it, and so is paused no longer.
CANCEL = """
WITH asked AS (
    UPDATE jobs SET cancel_requested = true, paused_at = NULL, held_at = NULL, wake_at = LEAST(wake_at, now())
    WHERE id = %(job)s AND status NOT IN ('succeeded', 'failed', 'cancelled')
    RETURNING id
)
SELECT EXISTS (SELECT FROM asked) AS asked, EXISTS (SELECT FROM jobs WHERE id = %(job)s) AS known
"""

# The line in the history takes the next ordinal under the job's row lock, as COMMIT does.
PAUSE = """
WITH paused AS (
    UPDATE jobs SET paused_at = now(), event_count = event_count + 1
    WHERE id = %(job)s
        AND paused_at IS NULL
        AND NOT cancel_requested
        AND status NOT IN ('succeeded', 'failed', 'cancelled')
    RETURNING id, event_count
), event AS (
    INSERT INTO events (job_id, ordinal, kind, data)
    SELECT id, event_count, %(kind)s, %(data)s::json FROM paused
)
SELECT
    EXISTS (SELECT FROM paused) AS done,
    EXISTS (SELECT FROM jobs WHERE id = %(job)s AND paused_at IS NOT NULL AND finished_at IS NULL) AS already,
    EXISTS (SELECT FROM jobs WHERE id = %(job)s) AS known
"""

# The deadline stood still. It does so in a wait already, by the machine's own count; and where the job's workflow is
# paused as well, it goes on doing so, since the earlier of the two.
UNPAUSE = """
WITH unpaused AS (
    UPDATE jobs SET
        paused_at = NULL,
        held_at = CASE WHEN held_at IS NOT NULL THEN LEAST(held_at, paused_at) END,
        event_count = event_count + 1,
        deadline_at = CASE
            WHEN status = 'waiting' OR held_at IS NOT NULL THEN deadline_at
            ELSE deadline_at + (now() - paused_at)
        END
    WHERE id = %(job)s AND paused_at IS NOT NULL AND finished_at IS NULL
    RETURNING id, event_count
), event AS (
    INSERT INTO events (job_id, ordinal, kind, data)
    SELECT id, event_count, %(kind)s, %(data)s::json FROM unpaused
)
SELECT
    EXISTS (SELECT FROM unpaused) AS done,
    EXISTS (SELECT FROM jobs WHERE id = %(job)s AND finished_at IS NULL) AS already,
    EXISTS (SELECT FROM jobs WHERE id = %(job)s) AS known
"""

# A signal that was sent before, to compare with one that comes under the same id.
SIGNAL_SENT = """
SELECT name, payload, by FROM signals WHERE job_id = %(job)s AND id = %(id)s
"""
