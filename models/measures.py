"""What is counted of jobs, turns and attempts, for metrics and for statistics alike.

Each statement takes ``since`` (null is from the beginning), ``edge`` (rows from before it come apart, as ``settled``)
and ``workflow`` (null is each of them). Experiments are no part of what is counted of attempts and turns; of jobs they
are where ``experiments`` says so.
"""

from __future__ import annotations

from dataclasses import dataclass

SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0)
"""Bounds between the buckets of durations: bucket 0 lies below the first of them."""

OF_WORKFLOW = "(%(workflow)s::text IS NULL OR jobs.workflow = %(workflow)s)"
"""What each statement says of its jobs, and ``stats`` says more in its place."""


@dataclass(frozen=True, slots=True)
class Judged:
    """Attempts of one kind. ``cause`` is empty where there is none; ``currency`` is None where no price is known."""

    workflow: str
    outcome: str
    cause: str
    model: str
    currency: str | None


@dataclass(frozen=True, slots=True)
class Closed:
    """Turns that came to their end with the same outcome after as many attempts."""

    workflow: str
    outcome: str
    attempts: int


@dataclass(frozen=True, slots=True)
class Observed:
    """A rule that rejects nothing, and was broken."""

    workflow: str
    rule: str


@dataclass(frozen=True, slots=True)
class Took:
    """Attempts whose ``measure``, ``ttft`` or ``duration``, fell into one bucket of ``SECONDS``."""

    workflow: str
    measure: str
    bucket: int


@dataclass(frozen=True, slots=True)
class Ended:
    """Jobs that ended in one way. ``failure`` is empty where there was none."""

    workflow: str
    status: str
    failure: str


# The first answer of a turn is its first attempt that is not lost on the way. Prices are few: joined, they cost next to
# nothing.
JUDGED = """
SELECT
    jobs.workflow, attempts.outcome, COALESCE(attempts.cause, '') AS cause, COALESCE(attempts.model, '') AS model,
    COALESCE(own.currency, other.currency) AS currency, attempts.judged_at < %(edge)s::timestamptz AS settled,
    count(*) AS attempts,
    count(*) FILTER (WHERE answer.first) AS first_answers,
    count(*) FILTER (WHERE answer.first AND attempts.rung_schema = 'passed') AS first_answers_in_format,
    count(*) FILTER (WHERE attempts.rung_schema = 'passed') AS answers_in_format,
    count(*) FILTER (WHERE attempts.rung_semantic = 'passed') AS answers_semantic_valid,
    COALESCE(sum(attempts.prompt_tokens), 0)::bigint AS prompt_tokens,
    COALESCE(sum(attempts.completion_tokens), 0)::bigint AS completion_tokens,
    COALESCE(sum(
        attempts.prompt_tokens * COALESCE(own.prompt, other.prompt)
        + attempts.completion_tokens * COALESCE(own.completion, other.completion)
    ), 0) * 0.000001 AS cost
FROM attempts
    JOIN jobs ON jobs.id = attempts.job_id
    LEFT JOIN prices AS own ON own.model = attempts.model
        AND own.since <= attempts.started_at AND (own.until IS NULL OR attempts.started_at < own.until)
    LEFT JOIN prices AS other ON other.model = '*'
        AND other.since <= attempts.started_at AND (other.until IS NULL OR attempts.started_at < other.until)
    CROSS JOIN LATERAL (
        SELECT attempts.outcome <> 'transport' AND (
            attempts.ordinal = 1 OR NOT EXISTS (
                SELECT FROM attempts AS earlier
                WHERE earlier.job_id = attempts.job_id AND earlier.turn = attempts.turn
                    AND earlier.ordinal < attempts.ordinal AND earlier.outcome <> 'transport'
            )
        ) AS first
    ) AS answer
WHERE attempts.judged_at >= COALESCE(%(since)s::timestamptz, '-infinity')
    AND (%(workflow)s::text IS NULL OR jobs.workflow = %(workflow)s) AND jobs.experiment IS NULL
GROUP BY 1, 2, 3, 4, 5, 6
"""

# What a replay carried over was never asked.
CLOSED = """
SELECT workflow, outcome, attempts, settled, count(*) AS turns
FROM (
    SELECT
        jobs.workflow, COALESCE(turns.outcome, '') AS outcome, turns.closed_at < %(edge)s::timestamptz AS settled,
        (
            SELECT count(*) FROM attempts WHERE attempts.job_id = turns.job_id AND attempts.turn = turns.ordinal
        ) AS attempts
    FROM turns JOIN jobs ON jobs.id = turns.job_id
    WHERE turns.closed_at >= COALESCE(%(since)s::timestamptz, '-infinity') AND NOT turns.carried
        AND (%(workflow)s::text IS NULL OR jobs.workflow = %(workflow)s) AND jobs.experiment IS NULL
) AS closed
GROUP BY 1, 2, 3, 4
"""

# By pattern: PostgreSQL's own functions would take all escapes apart, and refuse some. Inside a JSON string no quote
# stands bare, so that only the field itself is found. The rule's id comes as JSON.
OBSERVED = r"""
SELECT
    jobs.workflow, broken.rule[1] AS rule, attempts.judged_at < %(edge)s::timestamptz AS settled,
    count(*) AS attempts
FROM attempts
    JOIN jobs ON jobs.id = attempts.job_id
    CROSS JOIN LATERAL regexp_matches(attempts.observed::text, '"source": *("(?:[^"\\]|\\.)*")', 'g') AS broken(rule)
WHERE attempts.judged_at >= COALESCE(%(since)s::timestamptz, '-infinity')
    AND (%(workflow)s::text IS NULL OR jobs.workflow = %(workflow)s) AND jobs.experiment IS NULL
GROUP BY 1, 2, 3
"""

TOOK = """
SELECT
    jobs.workflow, took.measure, width_bucket(took.seconds, %(bounds)s::float8[]) AS bucket,
    attempts.judged_at < %(edge)s::timestamptz AS settled, count(*) AS attempts, sum(took.seconds) AS seconds
FROM attempts
    JOIN jobs ON jobs.id = attempts.job_id
    CROSS JOIN LATERAL (
        VALUES ('ttft', attempts.ttft_ms / 1000), ('duration', attempts.duration_ms / 1000)
    ) AS took(measure, seconds)
WHERE attempts.judged_at >= COALESCE(%(since)s::timestamptz, '-infinity')
    AND (%(workflow)s::text IS NULL OR jobs.workflow = %(workflow)s) AND jobs.experiment IS NULL
    AND took.seconds IS NOT NULL
GROUP BY 1, 2, 3, 4
"""

ENDED = """
SELECT
    workflow, status, COALESCE(failure, '') AS failure, finished_at < %(edge)s::timestamptz AS settled, count(*) AS jobs
FROM jobs
WHERE finished_at >= COALESCE(%(since)s::timestamptz, '-infinity')
    AND (%(workflow)s::text IS NULL OR jobs.workflow = %(workflow)s) AND (%(experiments)s OR experiment IS NULL)
GROUP BY 1, 2, 3, 4
"""
