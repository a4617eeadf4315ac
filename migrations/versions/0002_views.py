"""The views for people with psql. Their names, and their columns up to the marks, are promised; more may follow."""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"

# The price that held when the attempt was asked: its model's own, or else that of every other model.
PRICE = """
    FROM prices
    WHERE prices.model IN (attempts.model, '*')
        AND prices.since <= attempts.started_at AND (prices.until IS NULL OR attempts.started_at < prices.until)
    ORDER BY prices.model = '*' LIMIT 1
"""
TOTAL = """
    CASE
        WHEN count(*) FILTER (WHERE prompt_tokens IS NOT NULL AND cost IS NULL) = 0 AND min(currency) = max(currency)
        THEN trim_scale(sum(cost))
    END
"""

JOB_OVERVIEW = f"""
SELECT
    jobs.id AS job_id, workflow, version,
    CASE WHEN paused_at IS NOT NULL AND finished_at IS NULL THEN 'paused' ELSE status END AS status,
    state, waiting_for, failure, failure_detail, input, result,
    turn_count, (SELECT count(*) FROM attempts WHERE attempts.job_id = jobs.id) AS attempts, tokens, token_budget,
    priority, principal, metadata, created_at, started_at, finished_at, deadline_at, wake_at, lease_owner, lease_until,
    replay_of, lineage, paused_at, held_at IS NOT NULL AND finished_at IS NULL AS workflow_paused, event_count,
    cancel_requested, parent, parent_visit, parent_index, depth, variant, bulk,
    (
        SELECT {TOTAL}
        FROM attempts
            LEFT JOIN LATERAL (
                SELECT
                    currency,
                    (attempts.prompt_tokens * prompt + attempts.completion_tokens * completion) * 0.000001 AS cost
                {PRICE}
            ) AS priced ON true
        WHERE attempts.job_id = jobs.id
    ) AS cost,
    (
        SELECT json_object_agg(turns.state, turns.degraded ORDER BY turns.state)
        FROM turns
        WHERE turns.job_id = jobs.id AND turns.degraded IS NOT NULL AND NOT EXISTS (
            SELECT FROM turns AS later
            WHERE later.job_id = turns.job_id AND later.state = turns.state AND later.ordinal > turns.ordinal
                AND later.closed_at IS NOT NULL
        )
    ) AS degraded,
    hold_at, hold_by, raw_gone_at, events_gone_at,
    (
        SELECT CASE WHEN min(currency) = max(currency) THEN min(currency) END
        FROM attempts CROSS JOIN LATERAL (SELECT currency {PRICE}) AS priced
        WHERE attempts.job_id = jobs.id
    ) AS currency
FROM jobs
"""  # noqa: S608 -- constants

TURN_OUTCOMES = """
SELECT
    turns.job_id, jobs.workflow, jobs.version, turns.ordinal AS turn, turns.state, turns.outcome, turns.action,
    (
        SELECT count(*) FROM attempts WHERE attempts.job_id = turns.job_id AND attempts.turn = turns.ordinal
    ) AS attempts,
    turns.output, turns.opened_at AS started_at, turns.closed_at AS finished_at,
    -- promised up to here
    turns.carried, turns.question, turns.schema_hash, turns.degraded
FROM turns JOIN jobs ON jobs.id = turns.job_id
"""

# The first token comes at ttft_ms, and each of the others a tpot_ms later.
ATTEMPT_OUTCOMES = f"""
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
    attempts.note, attempts.lost_detail, attempts.arrived_at, attempts.judged_at, attempts.schema_known_bad,
    (
        SELECT
            trim_scale((attempts.prompt_tokens * prompt + attempts.completion_tokens * completion) * 0.000001)
        {PRICE}
    ) AS cost,
    stepladder_broken(attempts.errors, attempts.observed) AS broken
FROM attempts
    JOIN turns ON turns.job_id = attempts.job_id AND turns.ordinal = attempts.turn
    JOIN jobs ON jobs.id = attempts.job_id
"""  # noqa: S608 -- constants

# Every attempt with a verdict, and everything that is counted, in one place: for the rates below, the statistics, the
# metrics, the dashboard and experiments. Not a stable view. The first answer of a turn is its first attempt that was
# not lost. Joined to many attempts at once, the few prices cost next to nothing.
JUDGED_ATTEMPTS = """
SELECT
    attempts.job_id, attempts.turn, attempts.outcome, attempts.cause, attempts.model, attempts.started_at,
    attempts.judged_at, attempts.observed, attempts.ttft_ms, attempts.duration_ms, attempts.prompt_tokens,
    attempts.completion_tokens,
    attempts.rung_schema = 'passed' AS in_format,
    attempts.rung_semantic = 'passed' AS rules_kept,
    attempts.outcome <> 'transport' AND (
        attempts.ordinal = 1 OR NOT EXISTS (
            SELECT FROM attempts AS earlier
            WHERE earlier.job_id = attempts.job_id AND earlier.turn = attempts.turn
                AND earlier.ordinal < attempts.ordinal AND earlier.outcome <> 'transport'
        )
    ) AS first_answer,
    (
        attempts.prompt_tokens * COALESCE(own.prompt, other.prompt)
        + attempts.completion_tokens * COALESCE(own.completion, other.completion)
    ) * 0.000001 AS cost,
    COALESCE(own.currency, other.currency) AS currency
FROM attempts
    LEFT JOIN prices AS own ON own.model = attempts.model
        AND own.since <= attempts.started_at AND (own.until IS NULL OR attempts.started_at < own.until)
    LEFT JOIN prices AS other ON other.model = '*'
        AND other.since <= attempts.started_at AND (other.until IS NULL OR attempts.started_at < other.until)
WHERE attempts.outcome IS NOT NULL
"""

# Turns that were closed, and so are counted once and for all. A replay did not ask the turns that it carried over.
CLOSED_TURNS = """
SELECT
    turns.job_id, turns.ordinal AS turn, turns.visit, turns.state, turns.outcome, turns.opened_at, turns.closed_at,
    (
        SELECT count(*) FROM attempts WHERE attempts.job_id = turns.job_id AND attempts.turn = turns.ordinal
    ) AS attempts
FROM turns WHERE turns.closed_at IS NOT NULL AND NOT turns.carried
"""

FAILURE_RATES = f"""
WITH counted AS (
    SELECT
        workflow, version, date_trunc('hour', judged_attempts.started_at, 'UTC') AS hour, count(*) AS attempts,
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
        round(avg(in_format::int) FILTER (WHERE first_answer), 4) AS first_pass_format,
        round(avg(rules_kept::int) FILTER (WHERE in_format), 4) AS semantic_pass,
        count(*) FILTER (WHERE outcome <> 'transport')::numeric AS answers,
        count(*) FILTER (WHERE outcome = 'empty' AND cause = 'no_content') AS zero_token,
        COALESCE(sum(prompt_tokens), 0) AS prompt_tokens, COALESCE(sum(completion_tokens), 0) AS completion_tokens,
        {TOTAL} AS cost,
        CASE WHEN min(currency) = max(currency) THEN min(currency) END AS currency
    FROM judged_attempts JOIN jobs ON jobs.id = job_id
    WHERE jobs.experiment IS NULL
    GROUP BY workflow, version, hour
)
SELECT
    workflow, version, hour, attempts, valid, transport, truncation, schema_rejected, request_rejected, refused, empty,
    parse_failure, schema_violation, semantic, first_pass_format, semantic_pass,
    -- promised up to here
    round(valid / NULLIF(answers, 0), 4) AS validity_rate,
    round(truncation / NULLIF(answers, 0), 4) AS truncation_rate,
    round(zero_token / NULLIF(answers, 0), 4) AS zero_token_rate,
    round(transport::numeric / attempts, 4) AS transport_rate,
    zero_token, prompt_tokens, completion_tokens,
    round((prompt_tokens + completion_tokens)::numeric / NULLIF(valid, 0), 1) AS tokens_per_usable,
    cost, trim_scale(round(cost / NULLIF(valid, 0), 12)) AS cost_per_usable, currency
FROM counted
"""  # noqa: S608 -- constants

ATTEMPTS_PER_TURN = """
SELECT
    workflow, version, date_trunc('hour', closed_at, 'UTC') AS hour, attempts, count(*) AS turns,
    count(*) FILTER (WHERE outcome = 'valid') AS accepted
FROM closed_turns JOIN jobs ON jobs.id = job_id
WHERE jobs.experiment IS NULL
GROUP BY workflow, version, hour, attempts
"""

VIEWS = {
    "job_overview": JOB_OVERVIEW,
    "turn_outcomes": TURN_OUTCOMES,
    "attempt_outcomes": ATTEMPT_OUTCOMES,
    "judged_attempts": JUDGED_ATTEMPTS,
    "closed_turns": CLOSED_TURNS,
    "failure_rates": FAILURE_RATES,
    "attempts_per_turn": ATTEMPTS_PER_TURN,
}

COMMENTS = {
    "VIEW job_overview": "One row per job.",
    "COLUMN job_overview.parent": "The job that called this one, in its visit parent_visit, as child parent_index.",
    "COLUMN job_overview.variant": "If the job runs by a changed document: its hash, as in the table variants.",
    "COLUMN job_overview.bulk": "The bulk replay that the job belongs to.",
    "COLUMN job_overview.hold_at": "Since when the job is exempt from retention; hold_by says who exempted it.",
    "COLUMN job_overview.raw_gone_at": "When retention removed the raw answers; events_gone_at: the history.",
    "VIEW turn_outcomes": "One row per turn. An open turn has no outcome yet.",
    "COLUMN job_overview.degraded": (
        "Degraded results of states whose last turn failed, as {STATE: {value, lost, attempt, outcome}}: not outputs."
    ),
    "COLUMN turn_outcomes.degraded": (
        "If the document says degrade: the usable part of a failed turn's best answer, and what is lost. No output."
    ),
    "VIEW attempt_outcomes": "One row per request to the engine. One in flight has no outcome yet.",
    "COLUMN attempt_outcomes.content": "The completion, byte for byte: convert_from(content, 'UTF8') shows it.",
    "COLUMN attempt_outcomes.raw": (
        "The HTTP body as received, compressed if raw_encoding is gzip. In psql, with -At:"
        " SELECT encode(raw, 'base64') ..., then base64 -d | gunzip."
    ),
    "COLUMN attempt_outcomes.errors": "A list of {pointer, reason, source}; source is the keyword or the rule.",
    "COLUMN attempt_outcomes.schema_known_bad": (
        "Judged knowing that the engine refused this schema while it answered a known-good one."
    ),
    "COLUMN attempt_outcomes.tpot_ms": "Time for each token after the first.",
    "COLUMN attempt_outcomes.broken": (
        "What the answer broke: keywords of the schema, ids of rules, including observed ones. Indexed:"
        " broken @> '{total}'."
    ),
    "VIEW failure_rates": "Judged attempts by workflow, version and hour (UTC) of the request, without experiments.",
    "COLUMN failure_rates.first_pass_format": "Of turns' first answers, the share that matches the schema.",
    "COLUMN attempt_outcomes.cost": (
        "At the price of STEPLADDER_PRICES at the time of the request. Null without a price, or if the engine reported"
        " no tokens."
    ),
    "COLUMN job_overview.cost": "Of all its attempts; null if the price of one is unknown, or currencies differ.",
    "COLUMN failure_rates.validity_rate": "Of the answers that arrived, the share that was accepted.",
    "COLUMN failure_rates.truncation_rate": "Of the answers that arrived, the share that was cut off.",
    "COLUMN failure_rates.zero_token_rate": (
        "Of the answers that arrived, the share without content: outcome empty, cause no_content."
    ),
    "COLUMN failure_rates.transport_rate": "Of all attempts, the share without a complete answer.",
    "COLUMN failure_rates.cost": "Of all attempts; null if the price of one is unknown, or currencies differ.",
    "COLUMN failure_rates.cost_per_usable": "The cost of all attempts, retries included, per accepted answer.",
    "VIEW attempts_per_turn": "Turns by their number of attempts, by workflow, version and hour (UTC) of the end.",
    "COLUMN failure_rates.semantic_pass": "Of the answers that match the schema, the share that broke no rule.",
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
