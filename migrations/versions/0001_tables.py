"""The tables. Plain SQL, in which PostgreSQL's own names for keys and checks are those of the models."""

from __future__ import annotations

from alembic import op

revision = "0001"
down_revision = None

OUTCOMES = """
    'valid', 'transport', 'truncation', 'schema_rejected', 'request_rejected', 'refused', 'empty', 'parse_failure',
    'schema_violation', 'semantic'
"""
RUNG = "'passed', 'failed', 'not_reached'"

TABLES = {
    "workflows": """
        name text NOT NULL,
        version integer NOT NULL,
        hash text NOT NULL,
        document json NOT NULL,
        retired boolean NOT NULL DEFAULT false,
        created_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (name, version)
    """,
    "output_schemas": """
        hash text PRIMARY KEY,
        schema json NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now()
    """,
    "jobs": """
        id uuid PRIMARY KEY,
        lineage uuid NOT NULL,
        replay_of uuid REFERENCES jobs (id),
        workflow text NOT NULL,
        version integer NOT NULL,
        status text NOT NULL CHECK (
            status IN ('queued', 'running', 'waiting', 'paused', 'succeeded', 'failed', 'cancelled')
        ),
        state text,
        waiting_for text,
        failure text CHECK (failure IN (
            'attempts_exhausted', 'token_budget', 'deadline', 'max_turns', 'transition_denied', 'loop',
            'schema_rejected', 'request_rejected', 'refused', 'permission_denied', 'tool_failed', 'expression_error',
            'rejected'
        )),
        failure_detail text,
        input json NOT NULL,
        result json,
        metadata jsonb NOT NULL,
        principal text NOT NULL,
        scopes text[],
        priority integer NOT NULL,
        token_budget bigint,
        tokens bigint NOT NULL DEFAULT 0,
        turn_count integer NOT NULL DEFAULT 0,
        event_count integer NOT NULL,
        signals_received integer NOT NULL DEFAULT 0,
        cancel_requested boolean NOT NULL DEFAULT false,
        fence bigint NOT NULL DEFAULT 0,
        lease_owner text,
        lease_until timestamptz,
        wake_at timestamptz,
        rung_at timestamptz NOT NULL DEFAULT now(),
        due_at timestamptz,
        paused_at timestamptz,
        deadline_at timestamptz,
        created_at timestamptz NOT NULL,
        started_at timestamptz,
        finished_at timestamptz,
        FOREIGN KEY (workflow, version) REFERENCES workflows (name, version),
        CONSTRAINT jobs_lease_check CHECK ((lease_owner IS NULL) = (lease_until IS NULL)),
        CONSTRAINT jobs_finished_check CHECK (
            (finished_at IS NOT NULL) = (status IN ('succeeded', 'failed', 'cancelled'))
        )
    """,
    "idempotency_keys": """
        principal text NOT NULL,
        key text NOT NULL,
        fingerprint text NOT NULL,
        job_ids uuid[] NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (principal, key)
    """,
    "messages": """
        job_id uuid NOT NULL REFERENCES jobs (id),
        ordinal integer NOT NULL,
        turn integer NOT NULL,
        role text NOT NULL,
        content json NOT NULL,
        PRIMARY KEY (job_id, ordinal)
    """,
    "turns": f"""
        job_id uuid NOT NULL REFERENCES jobs (id),
        ordinal integer NOT NULL,
        visit integer NOT NULL,
        state text NOT NULL,
        question json NOT NULL,
        schema_hash text NOT NULL,
        outcome text CHECK (outcome IN ({OUTCOMES})),
        action text,
        output json,
        carried boolean NOT NULL,
        opened_at timestamptz NOT NULL,
        closed_at timestamptz,
        PRIMARY KEY (job_id, ordinal)
    """,
    "attempts": f"""
        id uuid PRIMARY KEY,
        job_id uuid NOT NULL,
        turn integer NOT NULL,
        ordinal integer NOT NULL,
        history_from integer NOT NULL,
        history_to integer NOT NULL,
        note json NOT NULL,
        max_completion_tokens integer NOT NULL,
        sampling json NOT NULL,
        request_id text NOT NULL,
        model text,
        engine_version text,
        grammar_backend text,
        started_at timestamptz NOT NULL DEFAULT now(),
        http_status integer,
        streamed boolean,
        raw bytea,
        raw_encoding text CHECK (raw_encoding IN ('identity', 'gzip')),
        retry_after_s double precision,
        lost_cause text CHECK (lost_cause IN (
            'connect', 'timeout', 'disconnected', 'http_429', 'http_503', 'http_5xx', 'aborted', 'malformed_body',
            'stream_error', 'stream_incomplete', 'abandoned'
        )),
        lost_detail json,
        ttft_ms double precision,
        duration_ms double precision,
        arrived_at timestamptz,
        content bytea,
        content_hash text,
        finish_reason text,
        outcome text CHECK (outcome IN ({OUTCOMES})),
        cause text,
        rung_termination text CHECK (rung_termination IN ({RUNG})),
        rung_parse text CHECK (rung_parse IN ({RUNG})),
        rung_schema text CHECK (rung_schema IN ({RUNG})),
        rung_semantic text CHECK (rung_semantic IN ({RUNG})),
        errors json,
        observed json,
        prompt_tokens integer,
        completion_tokens integer,
        judged_at timestamptz,
        UNIQUE (job_id, turn, ordinal),
        FOREIGN KEY (job_id, turn) REFERENCES turns (job_id, ordinal),
        CONSTRAINT attempts_judged_check CHECK ((outcome IS NULL) = (judged_at IS NULL))
    """,
    "tool_calls": """
        job_id uuid NOT NULL REFERENCES jobs (id),
        visit integer NOT NULL,
        state text NOT NULL,
        tool text NOT NULL,
        effect text NOT NULL CHECK (effect IN ('read', 'idempotent', 'irreversible')),
        arguments json NOT NULL,
        key text NOT NULL,
        result json,
        error json,
        carried boolean NOT NULL,
        opened_at timestamptz NOT NULL,
        closed_at timestamptz,
        PRIMARY KEY (job_id, visit)
    """,
    "waits": """
        job_id uuid NOT NULL REFERENCES jobs (id),
        visit integer NOT NULL,
        state text NOT NULL,
        signal text NOT NULL,
        wait_id uuid NOT NULL,
        show json,
        frozen json NOT NULL,
        until timestamptz,
        payload json,
        signal_id uuid,
        action text,
        carried boolean NOT NULL,
        opened_at timestamptz NOT NULL,
        closed_at timestamptz,
        PRIMARY KEY (job_id, visit)
    """,
    "signals": """
        job_id uuid NOT NULL REFERENCES jobs (id),
        id uuid NOT NULL,
        name text NOT NULL,
        payload json,
        received_at timestamptz NOT NULL DEFAULT now(),
        taken_at timestamptz,
        PRIMARY KEY (job_id, id)
    """,
    "events": """
        job_id uuid NOT NULL REFERENCES jobs (id),
        ordinal integer NOT NULL,
        kind text NOT NULL,
        turn integer,
        attempt integer,
        data json NOT NULL,
        at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (job_id, ordinal)
    """,
}

AFTERWARDS = (
    "CREATE INDEX jobs_wake ON jobs (priority DESC, wake_at) WHERE wake_at IS NOT NULL AND paused_at IS NULL",
    "CREATE INDEX jobs_created ON jobs (created_at, id)",
    "CREATE INDEX jobs_workflow_created ON jobs (workflow, created_at, id)",
    "CREATE INDEX jobs_metadata ON jobs USING gin (metadata jsonb_path_ops)",
    "CREATE INDEX jobs_live ON jobs (status) WHERE finished_at IS NULL",
    "CREATE INDEX jobs_finished ON jobs (finished_at) WHERE finished_at IS NOT NULL",
    "CREATE INDEX attempts_judged ON attempts (judged_at) WHERE judged_at IS NOT NULL",
    "CREATE INDEX idempotency_keys_created ON idempotency_keys (created_at)",
    """
    CREATE FUNCTION stepladder_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'a row of % stays as it was written', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
    END $$
    """,
    """
    CREATE TRIGGER events_are_appended BEFORE UPDATE ON events
    FOR EACH ROW EXECUTE FUNCTION stepladder_refuse_change()
    """,
    """
    CREATE TRIGGER verdicts_stand BEFORE UPDATE ON attempts
    FOR EACH ROW WHEN (OLD.outcome IS NOT NULL) EXECUTE FUNCTION stepladder_refuse_change()
    """,
)


def upgrade() -> None:
    for name, columns in TABLES.items():
        op.execute(f"CREATE TABLE {name} ({columns})")
    for statement in AFTERWARDS:
        op.execute(statement)


def downgrade() -> None:
    for name in reversed(TABLES):
        op.drop_table(name)
    op.execute("DROP FUNCTION stepladder_refuse_change()")
