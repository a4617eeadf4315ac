"""The tables, as SQLAlchemy knows them. ``migrations`` makes them; a test holds the two to each other.

How JSON and text are kept: what a model, a tool or a user made is ``json``, which keeps every value to the letter
(``jsonb`` refuses NUL, and changes numbers and the order of keys). Their texts are JSON strings in such a column,
since ``text`` refuses NUL; ``column #>> '{}'`` reads one in SQL. Columns of type ``text`` hold words of our own, or
words of others as ``rows.plain`` leaves them.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSON, JSONB

from stepladder.models.columns import job_id, listed, metadata, moment, one_of, written_at
from stepladder.models.revision import REVISION
from stepladder.schemas.job import Failure, JobStatus
from stepladder.schemas.outcomes import CAUSES, Outcome, RungState
from stepladder.schemas.tool import Effect

__all__ = ["REVISION", "metadata"]

workflows = Table(
    "workflows",
    metadata,
    Column("name", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("hash", Text, nullable=False),
    Column("document", JSON, nullable=False),
    Column("retired", Boolean, nullable=False, server_default=text("false")),
    written_at("created_at"),
    PrimaryKeyConstraint("name", "version"),
)

# Turns name a schema by its hash alone: a foreign key would lock the one row that all jobs of a workflow share.
output_schemas = Table(
    "output_schemas",
    metadata,
    Column("hash", Text, primary_key=True),
    Column("schema", JSON, nullable=False),
    written_at("created_at"),
)

# ``due_at`` is the machine's own: it rests until then. ``wake_at`` is the queue's: when a worker should look, never if
# null. ``rung_at`` is when the broker was last told. ``fence`` rises with every change of hands, and who knows an older
# value can write nothing any more. ``status`` is the machine's own as well: that a job is paused stands beside it, in
# ``paused_at``, so that it goes on as what it was.
jobs = Table(
    "jobs",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("lineage", Uuid, nullable=False),
    Column("replay_of", Uuid, ForeignKey("jobs.id")),
    Column("workflow", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("status", Text, nullable=False),
    Column("state", Text),
    Column("waiting_for", Text),
    Column("failure", Text),
    Column("failure_detail", Text),
    Column("input", JSON, nullable=False),
    Column("result", JSON),
    Column("metadata", JSONB, nullable=False),
    Column("principal", Text, nullable=False),
    Column("scopes", ARRAY(Text)),
    Column("priority", Integer, nullable=False),
    Column("token_budget", BigInteger),
    Column("tokens", BigInteger, nullable=False, server_default=text("0")),
    Column("turn_count", Integer, nullable=False, server_default=text("0")),
    Column("event_count", Integer, nullable=False),
    Column("signals_received", Integer, nullable=False, server_default=text("0")),
    Column("cancel_requested", Boolean, nullable=False, server_default=text("false")),
    Column("fence", BigInteger, nullable=False, server_default=text("0")),
    Column("lease_owner", Text),
    moment("lease_until"),
    moment("wake_at"),
    written_at("rung_at"),
    moment("due_at"),
    moment("paused_at"),
    moment("deadline_at"),
    moment("created_at", required=True),
    moment("started_at"),
    moment("finished_at"),
    ForeignKeyConstraint(["workflow", "version"], ["workflows.name", "workflows.version"]),
    one_of("status", JobStatus),
    one_of("failure", Failure),
    CheckConstraint("(lease_owner IS NULL) = (lease_until IS NULL)", name="lease"),
    CheckConstraint(
        f"(finished_at IS NOT NULL) = (status IN ({listed(status for status in JobStatus if status.final)}))",
        name="finished",
    ),
)
Index(
    "jobs_wake",
    jobs.c.priority.desc(),
    jobs.c.wake_at,
    postgresql_where=text("wake_at IS NOT NULL AND paused_at IS NULL"),
)
Index("jobs_created", jobs.c.created_at, jobs.c.id)
Index("jobs_workflow_created", jobs.c.workflow, jobs.c.created_at, jobs.c.id)
Index("jobs_metadata", jobs.c.metadata, postgresql_using="gin", postgresql_ops={"metadata": "jsonb_path_ops"})
Index("jobs_live", jobs.c.status, postgresql_where=jobs.c.finished_at.is_(None))
Index("jobs_finished", jobs.c.finished_at, postgresql_where=jobs.c.finished_at.is_not(None))

# Under which key a principal submitted which jobs. ``fingerprint`` is the hash of what was asked for.
idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("principal", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("job_ids", ARRAY(Uuid), nullable=False),
    written_at("created_at"),
    PrimaryKeyConstraint("principal", "key"),
)
Index("idempotency_keys_created", idempotency_keys.c.created_at)

messages = Table(
    "messages",
    metadata,
    job_id(),
    Column("ordinal", Integer, nullable=False),
    Column("turn", Integer, nullable=False),
    Column("role", Text, nullable=False),
    Column("content", JSON, nullable=False),
    PrimaryKeyConstraint("job_id", "ordinal"),
)

turns = Table(
    "turns",
    metadata,
    job_id(),
    Column("ordinal", Integer, nullable=False),
    Column("visit", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("question", JSON, nullable=False),
    Column("schema_hash", Text, nullable=False),
    Column("outcome", Text),
    Column("action", Text),
    Column("output", JSON),
    Column("carried", Boolean, nullable=False),
    moment("opened_at", required=True),
    moment("closed_at"),
    PrimaryKeyConstraint("job_id", "ordinal"),
    one_of("outcome", Outcome),
)

# A row lives through three writes: opened before its request leaves, arrived before it is judged, judged. From then on
# a trigger refuses any change.
attempts = Table(
    "attempts",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("job_id", Uuid, nullable=False),
    Column("turn", Integer, nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("history_from", Integer, nullable=False),
    Column("history_to", Integer, nullable=False),
    Column("note", JSON, nullable=False),
    Column("max_completion_tokens", Integer, nullable=False),
    Column("sampling", JSON, nullable=False),
    Column("request_id", Text, nullable=False),
    Column("model", Text),
    Column("engine_version", Text),
    Column("grammar_backend", Text),
    written_at("started_at"),
    Column("http_status", Integer),
    Column("streamed", Boolean),
    Column("raw", LargeBinary),
    Column("raw_encoding", Text),
    Column("retry_after_s", Double),
    Column("lost_cause", Text),
    Column("lost_detail", JSON),
    Column("ttft_ms", Double),
    Column("duration_ms", Double),
    moment("arrived_at"),
    Column("content", LargeBinary),
    Column("content_hash", Text),
    Column("finish_reason", Text),
    Column("outcome", Text),
    Column("cause", Text),
    Column("rung_termination", Text),
    Column("rung_parse", Text),
    Column("rung_schema", Text),
    Column("rung_semantic", Text),
    Column("errors", JSON),
    Column("observed", JSON),
    Column("prompt_tokens", Integer),
    Column("completion_tokens", Integer),
    moment("judged_at"),
    UniqueConstraint("job_id", "turn", "ordinal"),
    ForeignKeyConstraint(["job_id", "turn"], ["turns.job_id", "turns.ordinal"]),
    CheckConstraint("raw_encoding IN ('identity', 'gzip')", name="raw_encoding"),
    one_of("lost_cause", CAUSES[Outcome.TRANSPORT]),
    one_of("outcome", Outcome),
    *(one_of(f"rung_{rung}", RungState) for rung in ("termination", "parse", "schema", "semantic")),
    CheckConstraint("(outcome IS NULL) = (judged_at IS NULL)", name="judged"),
)
Index("attempts_judged", attempts.c.judged_at, postgresql_where=attempts.c.judged_at.is_not(None))

tool_calls = Table(
    "tool_calls",
    metadata,
    job_id(),
    Column("visit", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("effect", Text, nullable=False),
    Column("arguments", JSON, nullable=False),
    Column("key", Text, nullable=False),
    Column("result", JSON),
    Column("error", JSON),
    Column("carried", Boolean, nullable=False),
    moment("opened_at", required=True),
    moment("closed_at"),
    PrimaryKeyConstraint("job_id", "visit"),
    one_of("effect", Effect),
)

waits = Table(
    "waits",
    metadata,
    job_id(),
    Column("visit", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("signal", Text, nullable=False),
    Column("wait_id", Uuid, nullable=False),
    Column("show", JSON),
    Column("frozen", JSON, nullable=False),
    moment("until"),
    Column("payload", JSON),
    Column("signal_id", Uuid),
    Column("action", Text),
    Column("carried", Boolean, nullable=False),
    moment("opened_at", required=True),
    moment("closed_at"),
    PrimaryKeyConstraint("job_id", "visit"),
)

signals = Table(
    "signals",
    metadata,
    job_id(),
    Column("id", Uuid, nullable=False),
    Column("name", Text, nullable=False),
    Column("payload", JSON),
    written_at("received_at"),
    moment("taken_at"),
    PrimaryKeyConstraint("job_id", "id"),
)

# Only ever appended to: a trigger refuses an update.
events = Table(
    "events",
    metadata,
    job_id(),
    Column("ordinal", Integer, nullable=False),
    Column("kind", Text, nullable=False),
    Column("turn", Integer),
    Column("attempt", Integer),
    Column("data", JSON, nullable=False),
    written_at("at"),
    PrimaryKeyConstraint("job_id", "ordinal"),
)
