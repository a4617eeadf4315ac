"""Visits other than turns, what people said of them, signals, and the history."""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSON

from stepladder.models.columns import job_id, metadata, moment, one_of, written_at
from stepladder.workflows.visits import VisitStatus

# ``body`` is what a kind of visit keeps beside these columns: ``workflows.visits``. ``once`` says that one job alone
# may begin the visit of this ``key``.
visits = Table(
    "visits",
    metadata,
    job_id(),
    Column("visit", Integer, nullable=False),
    Column("kind", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("key", Text),
    Column("once", Boolean, nullable=False),
    Column("error_kind", Text),
    Column("body", JSON, nullable=False),
    Column("carried", Boolean, nullable=False),
    moment("opened_at", required=True),
    moment("closed_at"),
    PrimaryKeyConstraint("job_id", "visit"),
    one_of("status", VisitStatus),
    CheckConstraint("(closed_at IS NOT NULL) = (status = 'closed')", name="closed"),
)

# One job of a lineage begins a call that cannot be undone. Where that took no effect, by what a person says or because
# it never ran, another may.
Index(
    "visits_once",
    visits.c.key,
    unique=True,
    postgresql_where=text(
        "once AND (closed_at IS NULL OR error_kind IS NULL OR error_kind NOT IN ('not_done', 'invalid_arguments'))"
    ),
)

# What people say of calls that did not return. The outcome is in the visit itself.
settlements = Table(
    "settlements",
    metadata,
    Column("job_id", Uuid, nullable=False),
    Column("visit", Integer, nullable=False),
    Column("done", Boolean, nullable=False),
    Column("result", JSON),
    Column("by", Text, nullable=False),
    written_at("at"),
    PrimaryKeyConstraint("job_id", "visit"),
    ForeignKeyConstraint(["job_id", "visit"], ["visits.job_id", "visits.visit"]),
    CheckConstraint("done OR result IS NULL", name="result"),
)

signals = Table(
    "signals",
    metadata,
    job_id(),
    Column("id", Uuid, nullable=False),
    Column("name", Text, nullable=False),
    Column("payload", JSON),
    Column("by", Text, nullable=False),
    Column("scopes", ARRAY(Text)),
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
