"""The statements that move a job through the store. Each is one round trip and one transaction of its own.

Times that matter to leases are the database's: ``now()`` is when the statement began, so that a lease is never longer
than its holder believes. What a worker writes about a job hangs on the fencing token in the same statement, and so on
the row lock that the statement takes: under READ COMMITTED a statement that had to wait for the row looks at the
row's newest version again, conditions and new values alike, before it writes.
"""

from __future__ import annotations

_CLAIM = """
UPDATE jobs SET
    fence = fence + 1,
    taken_over = taken_over OR lease_owner IS NOT NULL,
    lease_owner = %(owner)s,
    lease_until = now() + make_interval(secs => %(lease_s)s::float8),
    started_at = COALESCE(started_at, now())
FROM due
WHERE jobs.id = due.id
RETURNING jobs.*, now() AS claimed_at
"""

DUE = """
    wake_at <= statement_timestamp()
        AND paused_at IS NULL
        AND held_at IS NULL
        AND status IN ('queued', 'running', 'waiting')
        AND (lease_until IS NULL OR lease_until <= statement_timestamp())
"""

# A job that is named is waited for: a signal or a heartbeat may hold its row for a moment.
CLAIM_ONE = f"""
WITH due AS (
    SELECT id FROM jobs WHERE {DUE} AND id = %(job)s
    FOR NO KEY UPDATE
)
{_CLAIM}
"""  # noqa: S608 -- put together from constants

# FOR SHARE makes a claim wait until the answer is in, so that its worker finds the answer; and it makes this wait for
# a claim that was quicker, and then find another fence.
#
# A job that is paused, itself or with its workflow, is released here, with its answer kept and not yet judged: no
# request and no tool is under way then, and none is opened. The next claim judges the answer and continues.
ARRIVED = """
WITH held AS (
    SELECT id, COALESCE(paused_at, held_at) AS paused_at FROM jobs
    WHERE id = %(job)s AND fence = %(fence)s
    FOR SHARE
), kept AS (
    UPDATE attempts SET
        http_status = %(http_status)s,
        streamed = %(streamed)s,
        raw = %(raw)s,
        raw_encoding = %(raw_encoding)s,
        retry_after_s = %(retry_after_s)s,
        lost_cause = %(lost_cause)s,
        lost_detail = %(lost_detail)s::json,
        ttft_ms = %(ttft_ms)s,
        duration_ms = %(duration_ms)s,
        arrived_at = now()
    FROM held
    WHERE job_id = held.id AND turn = %(turn)s AND ordinal = %(ordinal)s AND arrived_at IS NULL AND outcome IS NULL
    RETURNING attempts.id
), let_go AS (
    UPDATE jobs SET
        fence = fence + 1,
        lease_owner = NULL,
        lease_until = NULL,
        wake_at = LEAST(wake_at, now())
    FROM held, kept
    WHERE jobs.id = held.id AND held.paused_at IS NOT NULL
    RETURNING jobs.id
)
SELECT id FROM kept WHERE NOT EXISTS (SELECT FROM let_go)
"""

# The whole step is one JSON parameter, which keeps the statement's types, and so its plan, the same whatever is
# missing. JSON inside it is text, since PostgreSQL unescapes what it takes apart and refuses \u0000 there. Events get
# their ordinals here: the machine has not seen events that were written from outside meanwhile (the job was paused).
#
# When the job is released, its wake-up must not be lost to a signal, or a request to cancel, that the machine has not
# seen. Both write to the job's row, as this does, so that one of the two comes second and sees the other's values:
# a signal that comes second finds the status `waiting` and sets wake_at; a signal that came first has raised
# signals_received, which is compared here with the count that the machine knew. A child that ends wakes its parent as a
# signal would. A transaction that holds a child's row may wait for its parent's, and never the other way round.
COMMIT = """
WITH step AS (
    SELECT * FROM json_to_record(%(step)s::json) AS step(
        job uuid, fence bigint, unless_paused bool, lease_s float8, known_signals int, known_cancel bool,
        final bool, working bool, keep bool, wake_at timestamptz,
        status text, state text, waiting_for text, failure text, failure_detail text, result text,
        tokens bigint, turn_count int, due_at timestamptz, deadline_at timestamptz,
        messages json, turns json, judged json, opened json, visits json, events json, taken uuid
    )
), held AS (
    UPDATE jobs SET
        status = step.status,
        state = step.state,
        waiting_for = step.waiting_for,
        failure = step.failure,
        failure_detail = step.failure_detail,
        result = step.result::json,
        tokens = step.tokens,
        turn_count = step.turn_count,
        event_count = jobs.event_count + json_array_length(step.events),
        due_at = step.due_at,
        deadline_at = step.deadline_at,
        wake_at = CASE
            WHEN step.final THEN NULL
            WHEN step.working THEN LEAST(jobs.wake_at, now())
            WHEN jobs.signals_received > step.known_signals THEN now()
            WHEN jobs.cancel_requested AND NOT step.known_cancel THEN now()
            ELSE step.wake_at
        END,
        fence = CASE WHEN step.keep THEN jobs.fence ELSE jobs.fence + 1 END,
        taken_over = false,
        lease_owner = CASE WHEN step.keep THEN jobs.lease_owner END,
        lease_until = CASE WHEN step.keep THEN now() + make_interval(secs => step.lease_s) END,
        finished_at = CASE WHEN step.final THEN now() END
    FROM step
    WHERE jobs.id = step.job AND jobs.fence = step.fence
        AND NOT (step.unless_paused AND COALESCE(jobs.paused_at, jobs.held_at) IS NOT NULL)
    RETURNING jobs.id, jobs.parent, jobs.event_count - json_array_length(step.events) AS events_before
), woken AS (
    UPDATE jobs SET
        signals_received = jobs.signals_received + 1,
        wake_at = CASE WHEN jobs.status = 'waiting' THEN now() ELSE jobs.wake_at END
    FROM held, step
    WHERE step.final AND jobs.id = held.parent AND jobs.finished_at IS NULL
), said AS (
    INSERT INTO messages (job_id, ordinal, turn, role, content)
    SELECT held.id, new.ordinal, new.turn, new.role, new.content::json
    FROM held, step, json_to_recordset(step.messages) AS new(ordinal int, turn int, role text, content text)
), turn AS (
    INSERT INTO turns (
        job_id, ordinal, visit, state, question, schema_hash, outcome, action, output, degraded, carried, opened_at,
        closed_at
    )
    SELECT
        held.id, new.ordinal, new.visit, new.state, new.question::json, new.schema_hash, new.outcome, new.action,
        new.output::json, new.degraded::json, new.carried, new.opened_at, new.closed_at
    FROM held, step, json_to_recordset(step.turns) AS new(
        ordinal int, visit int, state text, question text, schema_hash text, outcome text, action text, output text,
        degraded text, carried bool, opened_at timestamptz, closed_at timestamptz
    )
    ON CONFLICT (job_id, ordinal) DO UPDATE SET
        outcome = EXCLUDED.outcome, action = EXCLUDED.action, output = EXCLUDED.output, degraded = EXCLUDED.degraded,
        closed_at = EXCLUDED.closed_at
), judged AS (
    UPDATE attempts SET
        content = decode(new.content, 'base64'),
        content_hash = new.content_hash,
        finish_reason = new.finish_reason,
        outcome = new.outcome,
        cause = new.cause,
        rung_termination = new.rung_termination,
        rung_parse = new.rung_parse,
        rung_schema = new.rung_schema,
        rung_semantic = new.rung_semantic,
        errors = new.errors::json,
        observed = new.observed::json,
        schema_known_bad = new.schema_known_bad,
        prompt_tokens = new.prompt_tokens,
        completion_tokens = new.completion_tokens,
        judged_at = now()
    FROM held, step, json_to_recordset(step.judged) AS new(
        turn int, ordinal int, content text, content_hash text, finish_reason text, outcome text, cause text,
        rung_termination text, rung_parse text, rung_schema text, rung_semantic text, errors text, observed text,
        schema_known_bad bool, prompt_tokens int, completion_tokens int
    )
    WHERE attempts.job_id = held.id AND attempts.turn = new.turn AND attempts.ordinal = new.ordinal
), opened AS (
    INSERT INTO attempts (
        id, job_id, turn, ordinal, history_from, history_to, note, max_completion_tokens, sampling, request_id, model,
        engine_version, grammar_backend
    )
    SELECT
        new.id, held.id, new.turn, new.ordinal, new.history_from, new.history_to, new.note::json,
        new.max_completion_tokens, new.sampling::json, new.request_id, new.model, new.engine_version,
        new.grammar_backend
    FROM held, step, json_to_recordset(step.opened) AS new(
        id uuid, turn int, ordinal int, history_from int, history_to int, note text, max_completion_tokens int,
        sampling text, request_id text, model text, engine_version text, grammar_backend text
    )
), visit AS (
    INSERT INTO visits (
        job_id, visit, kind, state, status, key, once, error_kind, body, carried, opened_at, closed_at
    )
    SELECT
        held.id, new.visit, new.kind, new.state, new.status, new.key, new.once, new.error_kind, new.body::json,
        new.carried, new.opened_at, new.closed_at
    FROM held, step, json_to_recordset(step.visits) AS new(
        visit int, kind text, state text, status text, key text, once bool, error_kind text, body text, carried bool,
        opened_at timestamptz, closed_at timestamptz
    )
    ON CONFLICT (job_id, visit) DO UPDATE SET
        status = EXCLUDED.status, error_kind = EXCLUDED.error_kind, body = EXCLUDED.body,
        closed_at = EXCLUDED.closed_at
), event AS (
    INSERT INTO events (job_id, ordinal, kind, turn, attempt, data)
    SELECT held.id, held.events_before + new.nth, new.kind, new.turn, new.attempt, new.data::json
    FROM held, step, json_to_recordset(step.events) AS new(
        nth int, kind text, turn int, attempt int, data text
    )
), taken AS (
    UPDATE signals SET taken_at = now()
    FROM held, step
    WHERE signals.job_id = held.id AND signals.id = step.taken
)
SELECT id FROM held
"""

HOLDS = """
SELECT FROM jobs WHERE id = %(job)s AND fence = %(fence)s
"""

# A row that is locked at this moment is skipped: the others do not wait for it, and two statements that lock several
# rows cannot deadlock. It is held as long as its fence is the same.
HEARTBEATS = """
WITH held AS (
    SELECT jobs.id, cancel_requested
    FROM unnest(%(jobs)s::uuid[], %(fences)s::bigint[]) AS held(id, fence) JOIN jobs USING (id, fence)
), ours AS (
    SELECT jobs.id FROM unnest(%(jobs)s::uuid[], %(fences)s::bigint[]) AS held(id, fence) JOIN jobs USING (id, fence)
    FOR NO KEY UPDATE OF jobs SKIP LOCKED
), renewed AS (
    UPDATE jobs SET lease_until = now() + make_interval(secs => %(lease_s)s::float8)
    FROM ours
    WHERE jobs.id = ours.id
    RETURNING jobs.id
)
SELECT held.id, cancel_requested, renewed.id IS NOT NULL AS renewed FROM held LEFT JOIN renewed USING (id)
"""

# The fence rises, so that a heartbeat or a commit that comes late finds nothing to hold on to.
RELEASE = """
UPDATE jobs SET
    fence = fence + 1,
    lease_owner = NULL,
    lease_until = NULL,
    wake_at = CASE
        WHEN status = 'waiting' AND signals_received > %(known_signals)s THEN now()
        WHEN cancel_requested AND NOT %(known_cancel)s THEN now()
        ELSE COALESCE(%(due_at)s::timestamptz, now())
    END
WHERE id = %(job)s AND fence = %(fence)s
RETURNING id
"""

# The machine's state. Answers' bytes are not read, except an answer without a verdict, and the answers of an open turn,
# which may become a degraded result.
TURNS = """
SELECT ordinal, visit, state, question, schema_hash, outcome, action, output, degraded, carried, opened_at, closed_at
FROM turns WHERE job_id = %(job)s ORDER BY ordinal
"""

ATTEMPTS = """
SELECT
    turn, ordinal, history_from, history_to, note, max_completion_tokens, sampling, request_id, http_status, streamed,
    CASE WHEN outcome IS NULL THEN raw END AS raw, raw_encoding, retry_after_s, lost_cause, lost_detail, arrived_at,
    CASE WHEN turn = (SELECT max(ordinal) FROM turns WHERE job_id = %(job)s AND closed_at IS NULL) THEN content END
        AS content,
    content_hash, finish_reason, outcome, cause, rung_termination, rung_parse, rung_schema, rung_semantic, errors,
    observed, schema_known_bad, prompt_tokens, completion_tokens
FROM attempts WHERE job_id = %(job)s ORDER BY turn, ordinal
"""

VISITS = """
SELECT
    visit, kind, state, status, key, error_kind, body, carried, opened_at, closed_at, done, result AS said, by
FROM visits LEFT JOIN settlements USING (job_id, visit)
WHERE job_id = %(job)s ORDER BY visit
"""

ONCE = "visits_once"
"""The index by which a call that cannot be undone is begun by one job of a lineage alone."""

# What the job's own lineage has begun and may not begin again. Of one key there is one such call at most.
SPENT = """
SELECT visits.job_id, visit, kind, visits.state, visits.status, key, error_kind, body, carried, opened_at, closed_at
FROM jobs AS own
    JOIN jobs AS kin ON kin.lineage = own.lineage AND kin.id <> own.id
    JOIN visits ON visits.job_id = kin.id
WHERE own.id = %(job)s AND once
    AND (closed_at IS NULL OR error_kind IS NULL OR error_kind NOT IN ('not_done', 'invalid_arguments'))
"""

MESSAGES = """
SELECT ordinal, turn, role, content FROM messages WHERE job_id = %(job)s ORDER BY ordinal
"""

SIGNALS = """
SELECT id, name, payload, by, scopes, received_at FROM signals
WHERE job_id = %(job)s AND taken_at IS NULL ORDER BY received_at, id
"""

SIGNALS_RECEIVED = """
SELECT signals_received FROM jobs WHERE id = %(job)s
"""
