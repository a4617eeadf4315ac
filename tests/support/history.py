"""A history of jobs as large as one likes, made by the database itself: two months of three workflows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psycopg

ATTEMPTS_PER_JOB = 4
DAYS = 60
OLDEST = "now() - interval '60 days'"

# Job n of how_many was made at its share of the time. Of its three turns one took two attempts; the first of the two
# was rejected, in a way that the number decides. Every 97th answer that was accepted broke a rule that only observes.
STATEMENTS = (
    """
    INSERT INTO workflows (name, version, hash, document)
    SELECT name, 1, name, '{"name": "w", "states": {"ask": {}, "bill": {}, "report": {}}}'
    FROM unnest(ARRAY['usage-bill', 'ticket', 'invoice']) AS name
    """,
    """
    INSERT INTO prices (model, since, prompt, completion, currency)
    VALUES ('*', '2000-01-01', 0.1, 0.4, 'EUR'), ('large', '2000-01-01', 1, 4, 'EUR')
    """,
    "INSERT INTO output_schemas (hash, schema) VALUES ('h', '{}')",
    """
    CREATE TEMPORARY TABLE made AS
    SELECT
        n, at,
        (
            lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7' || substr(md5(n::text), 1, 3)
            || '8' || substr(md5(n::text), 4, 15)
        )::uuid AS id,
        CASE
            WHEN n %% 13 = 0 THEN 'failed' WHEN n %% 101 = 0 THEN 'cancelled'
            WHEN n > %(jobs)s - 40 AND n %% 2 = 0 THEN 'waiting' ELSE 'succeeded'
        END AS status
    FROM (
        SELECT n, now() - interval '60 days' + interval '60 days' * (n::float8 / (%(jobs)s + 1)) AS at
        FROM generate_series(1, %(jobs)s) AS n
    ) AS numbered
    """,
    """
    INSERT INTO jobs (
        id, lineage, workflow, version, status, state, waiting_for, failure, failure_detail, input, result, metadata,
        principal, priority, tokens, turn_count, event_count, created_at, started_at, finished_at
    )
    SELECT
        id, id, (ARRAY['usage-bill', 'ticket', 'invoice'])[1 + n %% 3], 1, status,
        CASE status WHEN 'waiting' THEN 'approve' WHEN 'failed' THEN 'broken' ELSE 'done' END,
        CASE status WHEN 'waiting' THEN 'approval' END,
        CASE status
            WHEN 'failed' THEN (ARRAY['attempts_exhausted', 'loop', 'deadline', 'token_budget'])[1 + n %% 4]
        END,
        CASE status WHEN 'failed' THEN 'state report: it came round' END,
        json_build_object('n', n), json_build_object('total', n), jsonb_build_object('order', n::text, 'team', n %% 50),
        'team-' || n %% 20, 0, 500, 3, 3, at, at + interval '1 s',
        CASE WHEN status <> 'waiting' THEN at + interval '30 s' END
    FROM made
    """,
    """
    INSERT INTO turns (
        job_id, ordinal, visit, state, question, schema_hash, outcome, output, carried, opened_at, closed_at
    )
    SELECT
        id, turn, turn, (ARRAY['ask', 'bill', 'report'])[turn], '"Which?"', 'h',
        CASE WHEN status = 'failed' AND turn = 3 THEN 'semantic' ELSE 'valid' END,
        json_build_object('total', n), false, at + turn * interval '2 s',
        at + turn * interval '2 s' + (n %% 50) * interval '0.1 s'
    FROM made, generate_series(1, 3) AS turn
    ORDER BY n, turn
    """,
    """
    INSERT INTO attempts (
        id, job_id, turn, ordinal, history_from, history_to, note, max_completion_tokens, sampling, request_id, model,
        engine_version, grammar_backend, started_at, http_status, streamed, raw, raw_encoding, ttft_ms, duration_ms,
        arrived_at, content, content_hash, finish_reason, outcome, cause, rung_termination, rung_parse, rung_schema,
        rung_semantic, errors, observed, prompt_tokens, completion_tokens, judged_at
    )
    SELECT
        gen_random_uuid(), id, turn, attempt, 1, 0, '""', 512, '{"temperature": 0}', 'r-' || n, model, '0.32.0',
        'xgrammar', at + turn * interval '2 s', 200, true,
        decode(repeat(md5(n::text || turn), 12), 'hex'), 'identity', 40 + n %% 60, 400 + n %% 4000,
        at + turn * interval '2 s',
        convert_to('{"total": ' || n || ', "note": "' || repeat(md5(n::text), 6) || '"}', 'UTF8'), md5(n::text),
        CASE outcome WHEN 'truncation' THEN 'length' ELSE 'stop' END, outcome,
        CASE outcome
            WHEN 'semantic' THEN (ARRAY['arithmetic', 'carried'])[1 + n %% 2] WHEN 'schema_violation' THEN 'maxLength'
            WHEN 'truncation' THEN 'budget' WHEN 'transport' THEN 'timeout' WHEN 'parse_failure' THEN 'markdown_fence'
            WHEN 'refused' THEN 'refusal'
        END,
        CASE WHEN outcome = 'transport' THEN 'not_reached' WHEN outcome IN ('truncation', 'refused') THEN 'failed'
            ELSE 'passed' END,
        CASE WHEN outcome IN ('transport', 'truncation', 'refused') THEN 'not_reached'
            WHEN outcome = 'parse_failure' THEN 'failed' ELSE 'passed' END,
        CASE WHEN outcome IN ('valid', 'semantic') THEN 'passed'
            WHEN outcome = 'schema_violation' THEN 'failed' ELSE 'not_reached' END,
        CASE outcome WHEN 'valid' THEN 'passed' WHEN 'semantic' THEN 'failed' ELSE 'not_reached' END,
        CASE outcome
            WHEN 'semantic' THEN (
                '[{"pointer": "/total", "reason": "must be hours times 3", "source": "'
                || (ARRAY['arithmetic', 'carried'])[1 + n %% 2] || '"}]'
            )::json
            WHEN 'schema_violation'
            THEN '[{"pointer": "/note", "reason": "must have at most 40 characters", "source": "maxLength"}]'
            ELSE '[]'
        END,
        CASE WHEN outcome = 'valid' AND n %% 97 = 0
            THEN '[{"pointer": "/note", "reason": "odd", "source": "tone"}]'::json ELSE '[]' END,
        CASE WHEN outcome <> 'transport' THEN 100 + n %% 50 END,
        CASE WHEN outcome <> 'transport' THEN 30 + n %% 40 END,
        at + turn * interval '2 s'
    FROM (
        SELECT
            made.*, turn, attempt,
            CASE WHEN n %% 10 = 0 THEN 'large' ELSE 'small' END AS model,
            CASE
                WHEN attempt = 1 AND tries = 2 THEN CASE
                    WHEN n %% 997 = 0 THEN 'refused' WHEN n %% 20 < 9 THEN 'semantic'
                    WHEN n %% 20 < 14 THEN 'schema_violation' WHEN n %% 20 < 17 THEN 'truncation'
                    WHEN n %% 20 < 19 THEN 'transport' ELSE 'parse_failure' END
                WHEN status = 'failed' AND turn = 3 THEN 'semantic'
                ELSE 'valid'
            END AS outcome
        FROM made, generate_series(1, 3) AS turn,
            LATERAL (SELECT CASE WHEN turn = 1 + n %% 3 THEN 2 ELSE 1 END AS tries) AS tried,
            generate_series(1, tries) AS attempt
    ) AS asked
    ORDER BY n, turn, attempt
    """,
    """
    INSERT INTO events (job_id, ordinal, kind, data, at)
    SELECT id, ordinal, (ARRAY['job_created', 'job_started', 'job_succeeded'])[ordinal], '{}', at
    FROM made, generate_series(1, 3) AS ordinal
    ORDER BY n, ordinal
    """,
    "DROP TABLE made",
)


def write_history(connection: psycopg.Connection[Any], attempts: int) -> None:
    """Writes so many attempts, four to a job, into a database without jobs, and lets the planner know of them.

    The connection is a superuser's, and commits by itself; what refers to what is not checked row by row.
    """
    connection.execute("SET session_replication_role = replica")
    for statement in STATEMENTS:
        connection.execute(statement.encode(), {"jobs": attempts // ATTEMPTS_PER_JOB})
    connection.execute("SET session_replication_role = origin")
    connection.execute("VACUUM ANALYZE")
