"""The views for people with psql. Their names, and their columns up to the marks, are promised; more may follow."""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"

JOB_OVERVIEW = """
SELECT
    jobs.id AS job_id, workflow, version,
    CASE WHEN paused_at IS NOT NULL AND finished_at IS NULL THEN 'paused' ELSE status END AS status,
    state, waiting_for, failure, failure_detail, input, result,
    turn_count, (SELECT count(*) FROM attempts WHERE attempts.job_id = jobs.id) AS attempts, tokens, token_budget,
    priority, principal, metadata, created_at, started_at, finished_at, deadline_at, wake_at, lease_owner, lease_until,
    replay_of, lineage, paused_at, event_count
FROM jobs
"""

TURN_OUTCOMES = """
SELECT
    turns.job_id, jobs.workflow, jobs.version, turns.ordinal AS turn, turns.state, turns.outcome, turns.action,
    (
        SELECT count(*) FROM attempts WHERE attempts.job_id = turns.job_id AND attempts.turn = turns.ordinal
    ) AS attempts,
    turns.output, turns.opened_at AS started_at, turns.closed_at AS finished_at,
    -- promised up to here
    turns.carried, turns.question, turns.schema_hash
FROM turns JOIN jobs ON jobs.id = turns.job_id
"""

# The first token comes at ttft_ms, and each of the others a tpot_ms later.
ATTEMPT_OUTCOMES = """
SELECT
    attempts.job_id, attempts.turn, attempts.ordinal AS attempt, attempts.outcome, attempts.cause,
    attempts.rung_termination, attempts.rung_parse, attempts.rung_schema, attempts.rung_semantic, attempts.errors,
    attempts.finish_reason, attempts.http_status, attempts.prompt_tokens, attempts.completion_tokens,
    attempts.max_completion_tokens, attempts.sampling, attempts.ttft_ms,
    CASE
        WHEN attempts.completion_tokens > 1
        THEN (attempts.duration_ms - attempts.ttft_ms) / (attempts.completion_tokens - 1)
    END AS tpot_ms,
    attempts.duration_ms, attempts.model, attempts.engine_version, attempts.grammar_backend, turns.schema_hash,
    attempts.request_id, attempts.content, attempts.raw, attempts.started_at,
    -- promised up to here
    attempts.id AS attempt_id, jobs.workflow, jobs.version, turns.state, attempts.observed, attempts.raw_encoding,
    attempts.note, attempts.lost_detail, attempts.arrived_at, attempts.judged_at
FROM attempts
    JOIN turns ON turns.job_id = attempts.job_id AND turns.ordinal = attempts.turn
    JOIN jobs ON jobs.id = attempts.job_id
"""

FAILURE_RATES = """
WITH judged AS (
    SELECT
        jobs.workflow, jobs.version, date_trunc('hour', attempts.started_at, 'UTC') AS hour, attempts.outcome,
        attempts.rung_schema, attempts.rung_semantic,
        attempts.ordinal = min(attempts.ordinal) FILTER (WHERE attempts.outcome <> 'transport')
            OVER (PARTITION BY attempts.job_id, attempts.turn) AS first_answer
    FROM attempts JOIN jobs ON jobs.id = attempts.job_id
    WHERE attempts.outcome IS NOT NULL
)
SELECT
    workflow, version, hour, count(*) AS attempts,
    count(*) FILTER (WHERE outcome = 'valid') AS valid,
    count(*) FILTER (WHERE outcome = 'transport') AS transport,
    count(*) FILTER (WHERE outcome = 'truncation') AS truncation,
    count(*) FILTER (WHERE outcome = 'schema_rejected') AS schema_rejected,
    count(*) FILTER (WHERE outcome = 'request_rejected') AS request_rejected,
    count(*) FILTER (WHERE outcome = 'refused') AS refused,
    count(*) FILTER (WHERE outcome = 'empty') AS empty,
    count(*) FILTER (WHERE outcome = 'parse_failure') AS parse_failure,
    count(*) FILTER (WHERE outcome = 'schema_violation') AS schema_violation,
    count(*) FILTER (WHERE outcome = 'semantic') AS semantic,
    round(avg((rung_schema = 'passed')::int) FILTER (WHERE first_answer), 4) AS first_pass_format,
    round(avg((rung_semantic = 'passed')::int) FILTER (WHERE rung_schema = 'passed'), 4) AS semantic_pass
FROM judged
GROUP BY workflow, version, hour
"""

VIEWS = {
    "job_overview": JOB_OVERVIEW,
    "turn_outcomes": TURN_OUTCOMES,
    "attempt_outcomes": ATTEMPT_OUTCOMES,
    "failure_rates": FAILURE_RATES,
}

COMMENTS = {
    "VIEW job_overview": "One row a job.",
    "VIEW turn_outcomes": "One row a turn. An open turn has no outcome yet.",
    "VIEW attempt_outcomes": "One row a request to the engine. One in flight has no outcome yet.",
    "COLUMN attempt_outcomes.content": "The completion, byte for byte: convert_from(content, 'UTF8') shows it.",
    "COLUMN attempt_outcomes.raw": (
        "The HTTP body as received; where raw_encoding is gzip, compressed. Out of psql, with -At:"
        " SELECT encode(raw, 'base64') ..., then base64 -d | gunzip."
    ),
    "COLUMN attempt_outcomes.errors": "A list of {pointer, reason, source}; source is the keyword or the rule.",
    "COLUMN attempt_outcomes.tpot_ms": "Time for each token after the first.",
    "VIEW failure_rates": "Judged attempts by workflow, version and hour (UTC) in which they were asked.",
    "COLUMN failure_rates.first_pass_format": (
        "Of the first answers that a turn was given, the share that kept to the schema."
    ),
    "COLUMN failure_rates.semantic_pass": "Of the answers that kept to the schema, the share that broke no rule.",
}


def upgrade() -> None:
    for name, query in VIEWS.items():
        op.execute(f"CREATE VIEW {name} AS {query}")
    for target, comment in COMMENTS.items():
        escaped = comment.replace("'", "''")
        op.execute(f"COMMENT ON {target} IS '{escaped}'")


def downgrade() -> None:
    for name in reversed(VIEWS):
        op.execute(f"DROP VIEW {name}")
