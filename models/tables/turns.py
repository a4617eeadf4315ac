"""What was said: the transcript, the turns, and every request to the engine."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSON

from stepladder.models.columns import job_id, metadata, moment, one_of, written_at
from stepladder.schemas.outcomes import CAUSES, Outcome, RungState

messages = sa.Table(
    "messages",
    metadata,
    job_id(),
    sa.Column("ordinal", sa.Integer, nullable=False),
    sa.Column("turn", sa.Integer, nullable=False),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("content", JSON, nullable=False),
    sa.PrimaryKeyConstraint("job_id", "ordinal"),
)

turns = sa.Table(
    "turns",
    metadata,
    job_id(),
    sa.Column("ordinal", sa.Integer, nullable=False),
    sa.Column("visit", sa.Integer, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("question", JSON, nullable=False),
    sa.Column("schema_hash", sa.Text, nullable=False),
    sa.Column("outcome", sa.Text),
    sa.Column("action", sa.Text),
    sa.Column("output", JSON),
    sa.Column("degraded", JSON),
    sa.Column("carried", sa.Boolean, nullable=False),
    moment("opened_at", required=True),
    moment("closed_at"),
    sa.PrimaryKeyConstraint("job_id", "ordinal"),
    one_of("outcome", Outcome),
)
sa.Index("turns_closed", turns.c.closed_at, postgresql_where=turns.c.closed_at.is_not(None))

# A row lives through three writes: opened before its request leaves, arrived before it is judged, judged. From then on
# a trigger refuses any change, but that ``models.retention`` takes ``raw`` and ``content`` away.
attempts = sa.Table(
    "attempts",
    metadata,
    sa.Column("id", sa.Uuid, primary_key=True),
    sa.Column("job_id", sa.Uuid, nullable=False),
    sa.Column("turn", sa.Integer, nullable=False),
    sa.Column("ordinal", sa.Integer, nullable=False),
    sa.Column("history_from", sa.Integer, nullable=False),
    sa.Column("history_to", sa.Integer, nullable=False),
    sa.Column("note", JSON, nullable=False),
    sa.Column("max_completion_tokens", sa.Integer, nullable=False),
    sa.Column("sampling", JSON, nullable=False),
    sa.Column("request_id", sa.Text, nullable=False),
    sa.Column("model", sa.Text),
    sa.Column("engine_version", sa.Text),
    sa.Column("grammar_backend", sa.Text),
    written_at("started_at"),
    sa.Column("http_status", sa.Integer),
    sa.Column("streamed", sa.Boolean),
    sa.Column("raw", sa.LargeBinary),
    sa.Column("raw_encoding", sa.Text),
    sa.Column("retry_after_s", sa.Double),
    sa.Column("lost_cause", sa.Text),
    sa.Column("lost_detail", JSON),
    sa.Column("ttft_ms", sa.Double),
    sa.Column("duration_ms", sa.Double),
    moment("arrived_at"),
    sa.Column("content", sa.LargeBinary),
    sa.Column("content_hash", sa.Text),
    sa.Column("finish_reason", sa.Text),
    sa.Column("outcome", sa.Text),
    sa.Column("cause", sa.Text),
    sa.Column("rung_termination", sa.Text),
    sa.Column("rung_parse", sa.Text),
    sa.Column("rung_schema", sa.Text),
    sa.Column("rung_semantic", sa.Text),
    sa.Column("errors", JSON),
    sa.Column("observed", JSON),
    sa.Column("schema_known_bad", sa.Boolean, nullable=False, server_default=sa.text("false")),
    sa.Column("prompt_tokens", sa.Integer),
    sa.Column("completion_tokens", sa.Integer),
    moment("judged_at"),
    sa.UniqueConstraint("job_id", "turn", "ordinal"),
    sa.ForeignKeyConstraint(["job_id", "turn"], ["turns.job_id", "turns.ordinal"]),
    sa.CheckConstraint("raw_encoding IN ('identity', 'gzip')", name="raw_encoding"),
    one_of("lost_cause", CAUSES[Outcome.TRANSPORT]),
    one_of("outcome", Outcome),
    *(one_of(f"rung_{rung}", RungState) for rung in ("termination", "parse", "schema", "semantic")),
    sa.CheckConstraint("(outcome IS NULL) = (judged_at IS NULL)", name="judged"),
)
sa.Index("attempts_judged", attempts.c.judged_at, postgresql_where=attempts.c.judged_at.is_not(None))
sa.Index(
    "attempts_rejected",
    attempts.c.outcome,
    attempts.c.cause,
    attempts.c.job_id,
    postgresql_where=sa.text("outcome <> 'valid'"),
)
sa.Index(
    "attempts_broken",
    sa.text("stepladder_broken(errors, observed)"),
    postgresql_using="gin",
    postgresql_where=sa.text("stepladder_broken(errors, observed) IS NOT NULL"),
    _table=attempts,
)
