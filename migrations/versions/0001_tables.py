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
        max_in_flight integer,
        retired boolean NOT NULL DEFAULT false,
        paused_at timestamptz,
        paused_by text,
        paused_whole boolean NOT NULL DEFAULT false,
        created_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (name, version)
    """,
    "variants": """
        hash text PRIMARY KEY,
        workflow text NOT NULL,
        version integer NOT NULL,
        document json NOT NULL,
        changes json NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        FOREIGN KEY (workflow, version) REFERENCES workflows (name, version)
    """,
    "bulks": """
        id uuid PRIMARY KEY,
        filter json NOT NULL,
        mode text NOT NULL,
        changes json NOT NULL,
        concurrency integer NOT NULL,
        priority integer NOT NULL,
        principal text NOT NULL,
        scopes text[],
        total integer NOT NULL,
        refused json NOT NULL,
        after_at timestamptz,
        after_id uuid,
        stopped_at timestamptz,
        handed_out_at timestamptz,
        created_at timestamptz NOT NULL DEFAULT now()
    """,
    "experiments": """
        id uuid PRIMARY KEY,
        kind text NOT NULL CHECK (kind IN ('comparison', 'stability', 'shadow')),
        name text NOT NULL,
        workflow text NOT NULL,
        version integer NOT NULL,
        variant text REFERENCES variants (hash),
        arms json NOT NULL,
        samples integer NOT NULL,
        principal text NOT NULL,
        scopes text[],
        share double precision,
        after_at timestamptz,
        after_id uuid,
        stopped_at timestamptz,
        created_at timestamptz NOT NULL DEFAULT now(),
        FOREIGN KEY (workflow, version) REFERENCES workflows (name, version)
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
        bulk uuid REFERENCES bulks (id),
        variant text REFERENCES variants (hash),
        experiment uuid REFERENCES experiments (id),
        arm text,
        sample integer,
        parent uuid REFERENCES jobs (id),
        parent_visit integer,
        parent_index integer,
        depth integer NOT NULL DEFAULT 0,
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
        taken_over boolean NOT NULL DEFAULT false,
        lease_owner text,
        lease_until timestamptz,
        wake_at timestamptz,
        notified_at timestamptz NOT NULL DEFAULT now(),
        due_at timestamptz,
        paused_at timestamptz,
        held_at timestamptz,
        hold_at timestamptz,
        hold_by text,
        raw_gone_at timestamptz,
        events_gone_at timestamptz,
        deadline_at timestamptz,
        created_at timestamptz NOT NULL,
        started_at timestamptz,
        finished_at timestamptz,
        FOREIGN KEY (workflow, version) REFERENCES workflows (name, version),
        CONSTRAINT jobs_parent_check CHECK (num_nulls(parent, parent_visit, parent_index) IN (0, 3)),
        CONSTRAINT jobs_lease_check CHECK ((lease_owner IS NULL) = (lease_until IS NULL)),
        CONSTRAINT jobs_finished_check CHECK (
            (finished_at IS NOT NULL) = (status IN ('succeeded', 'failed', 'cancelled'))
        )
    """,
    "prices": """
        model text NOT NULL,
        since timestamptz NOT NULL,
        until timestamptz,
        prompt numeric NOT NULL,
        completion numeric NOT NULL,
        currency text NOT NULL,
        PRIMARY KEY (model, since)
    """,
    "principal_bounds": """
        principal text PRIMARY KEY,
        most integer NOT NULL,
        CONSTRAINT principal_bounds_most_check CHECK (most >= 0)
    """,
    "engine_shares": """
        engine text NOT NULL,
        worker uuid NOT NULL,
        bound integer NOT NULL,
        share integer NOT NULL,
        in_use integer NOT NULL,
        wanted integer NOT NULL,
        until timestamptz NOT NULL,
        PRIMARY KEY (engine, worker)
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
        degraded json,
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
        schema_known_bad boolean NOT NULL DEFAULT false,
        prompt_tokens integer,
        completion_tokens integer,
        judged_at timestamptz,
        UNIQUE (job_id, turn, ordinal),
        FOREIGN KEY (job_id, turn) REFERENCES turns (job_id, ordinal),
        CONSTRAINT attempts_judged_check CHECK ((outcome IS NULL) = (judged_at IS NULL))
    """,
    "visits": """
        job_id uuid NOT NULL REFERENCES jobs (id),
        visit integer NOT NULL,
        kind text NOT NULL,
        state text NOT NULL,
        status text NOT NULL CHECK (
            status IN ('running', 'backing_off', 'waiting', 'resolving', 'settlement', 'closed')
        ),
        key text,
        once boolean NOT NULL,
        error_kind text,
        body json NOT NULL,
        carried boolean NOT NULL,
        opened_at timestamptz NOT NULL,
        closed_at timestamptz,
        PRIMARY KEY (job_id, visit),
        CONSTRAINT visits_closed_check CHECK ((closed_at IS NOT NULL) = (status = 'closed'))
    """,
    "settlements": """
        job_id uuid NOT NULL,
        visit integer NOT NULL,
        done boolean NOT NULL,
        result json,
        by text NOT NULL,
        at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (job_id, visit),
        FOREIGN KEY (job_id, visit) REFERENCES visits (job_id, visit),
        CONSTRAINT settlements_result_check CHECK (done OR result IS NULL)
    """,
    "signals": """
        job_id uuid NOT NULL REFERENCES jobs (id),
        id uuid NOT NULL,
        name text NOT NULL,
        payload json,
        by text NOT NULL,
        scopes text[],
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
    """
    CREATE INDEX jobs_wake ON jobs (priority DESC, wake_at)
    WHERE wake_at IS NOT NULL AND paused_at IS NULL AND held_at IS NULL
    """,
    "CREATE INDEX jobs_lineage ON jobs (lineage)",
    "CREATE INDEX jobs_replay_of ON jobs (replay_of) WHERE replay_of IS NOT NULL",
    "CREATE UNIQUE INDEX jobs_bulk ON jobs (bulk, replay_of) WHERE bulk IS NOT NULL",
    "CREATE UNIQUE INDEX jobs_experiment ON jobs (experiment, sample, arm) WHERE experiment IS NOT NULL",
    """
    CREATE UNIQUE INDEX jobs_shadow ON jobs (experiment, replay_of)
    WHERE experiment IS NOT NULL AND replay_of IS NOT NULL
    """,
    """
    CREATE UNIQUE INDEX experiments_shadow ON experiments (workflow, version)
    WHERE kind = 'shadow' AND stopped_at IS NULL
    """,
    "CREATE INDEX experiments_created ON experiments (created_at, id)",
    "CREATE INDEX bulks_open ON bulks (created_at) WHERE handed_out_at IS NULL AND stopped_at IS NULL",
    """
    CREATE UNIQUE INDEX visits_once ON visits (key)
    WHERE once AND (closed_at IS NULL OR error_kind IS NULL OR error_kind NOT IN ('not_done', 'invalid_arguments'))
    """,
    """
    CREATE INDEX jobs_lanes ON jobs (priority, principal, workflow, wake_at)
    WHERE wake_at IS NOT NULL AND paused_at IS NULL AND held_at IS NULL AND lease_owner IS NULL
    """,
    "CREATE INDEX jobs_leased ON jobs (lease_owner) WHERE lease_owner IS NOT NULL",
    "CREATE INDEX jobs_created ON jobs (created_at, id)",
    "CREATE INDEX jobs_workflow_created ON jobs (workflow, created_at, id)",
    "CREATE INDEX jobs_metadata ON jobs USING gin (metadata jsonb_path_ops)",
    "CREATE INDEX jobs_live ON jobs (status) WHERE finished_at IS NULL",
    "CREATE INDEX jobs_finished ON jobs (finished_at) WHERE finished_at IS NOT NULL",
    "CREATE INDEX jobs_lost ON jobs (created_at, id) WHERE status IN ('failed', 'cancelled')",
    """
    CREATE INDEX jobs_raw ON jobs (finished_at)
    WHERE finished_at IS NOT NULL AND raw_gone_at IS NULL AND hold_at IS NULL
    """,
    """
    CREATE INDEX jobs_events ON jobs (finished_at)
    WHERE finished_at IS NOT NULL AND events_gone_at IS NULL AND hold_at IS NULL
    """,
    "CREATE UNIQUE INDEX jobs_parent ON jobs (parent, parent_visit, parent_index) WHERE parent IS NOT NULL",
    "CREATE INDEX jobs_live_children ON jobs (parent) WHERE parent IS NOT NULL AND finished_at IS NULL",
    "CREATE INDEX turns_closed ON turns (closed_at) WHERE closed_at IS NOT NULL",
    "CREATE INDEX attempts_judged ON attempts (judged_at) WHERE judged_at IS NOT NULL",
    "CREATE INDEX attempts_rejected ON attempts (outcome, cause, job_id) WHERE outcome <> 'valid'",
    # What an answer broke, by keyword of the schema or id of the rule; null where it broke nothing. By pattern, since
    # PostgreSQL's own functions would take all escapes apart, and refuse some.
    r"""
    CREATE FUNCTION stepladder_broken(errors json, observed json) RETURNS text[]
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
        SELECT CASE WHEN errors::text <> '[]' OR observed::text <> '[]' THEN ARRAY(
            SELECT DISTINCT found[1]
            FROM regexp_matches(errors::text || observed::text, '"source" *: *"((?:[^"\\]|\\.)+)"', 'g') AS found
        ) END
    $$
    """,
    """
    CREATE INDEX attempts_broken ON attempts USING gin (stepladder_broken(errors, observed))
    WHERE stepladder_broken(errors, observed) IS NOT NULL
    """,
    "CREATE INDEX idempotency_keys_created ON idempotency_keys (created_at)",
    """
    CREATE FUNCTION stepladder_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'a row of % stays as it was written', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
    END $$
    """,
    "CREATE TRIGGER events_unchanged BEFORE UPDATE ON events FOR EACH ROW EXECUTE FUNCTION stepladder_refuse_change()",
    """
    CREATE FUNCTION stepladder_refuse_verdict() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
        kept attempts := OLD;
    BEGIN
        kept.raw := NULL;
        kept.content := NULL;
        IF current_setting('stepladder.retention', true) = 'on' AND NEW::text = kept::text THEN
            RETURN NEW;
        END IF;
        RAISE EXCEPTION 'a row of % stays as it was written', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
    END $$
    """,
    """
    CREATE TRIGGER verdicts_stand BEFORE UPDATE ON attempts
    FOR EACH ROW WHEN (OLD.outcome IS NOT NULL) EXECUTE FUNCTION stepladder_refuse_verdict()
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
    for function in ("refuse_verdict()", "refuse_change()", "broken(json, json)"):
        op.execute(f"DROP FUNCTION stepladder_{function}")
