"""What was said: the transcript, the turns, and every request to the engine."""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    Double,
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
from sqlalchemy.dialects.postgresql import JSON

from stepladder.models.columns import job_id, metadata, moment, one_of, written_at
from stepladder.schemas.outcomes import CAUSES, Outcome, RungState

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
    Column("degraded", JSON),
    Column("carried", Boolean, nullable=False),
    moment("opened_at", required=True),
    moment("closed_at"),
    PrimaryKeyConstraint("job_id", "ordinal"),
    one_of("outcome", Outcome),
)
Index("turns_closed", turns.c.closed_at, postgresql_where=turns.c.closed_at.is_not(None))

# A row lives through three writes: opened before its request leaves, arrived before it is judged, judged. From then on
# a trigger refuses any change, but that ``models.retention`` takes ``raw`` and ``content`` away.
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
    Column("schema_known_bad", Boolean, nullable=False, server_default=text("false")),
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
Index(
    "attempts_rejected",
    attempts.c.outcome,
    attempts.c.cause,
    attempts.c.job_id,
    postgresql_where=text("outcome <> 'valid'"),
)
Index(
    "attempts_broken",
    text("stepladder_broken(errors, observed)"),
    postgresql_using="gin",
    postgresql_where=text("stepladder_broken(errors, observed) IS NOT NULL"),
    _table=attempts,
)
