"""Visits other than turns, what people said of them, signals, and the history."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, JSON

from stepladder.models.columns import job_id, metadata, moment, one_of, written_at
from stepladder.workflows.visits import VisitStatus

# ``body`` is what a kind of visit keeps beside these columns: ``workflows.visits``. ``once`` says that one job alone
# may begin the visit of this ``key``.
visits = sa.Table(
    "visits",
    metadata,
    job_id(),
    sa.Column("visit", sa.Integer, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("key", sa.Text),
    sa.Column("once", sa.Boolean, nullable=False),
    sa.Column("error_kind", sa.Text),
    sa.Column("body", JSON, nullable=False),
    sa.Column("carried", sa.Boolean, nullable=False),
    moment("opened_at", required=True),
    moment("closed_at"),
    sa.PrimaryKeyConstraint("job_id", "visit"),
    one_of("status", VisitStatus),
    sa.CheckConstraint("(closed_at IS NOT NULL) = (status = 'closed')", name="closed"),
)

# One job of a lineage begins a call that cannot be undone. Where that took no effect, by what a person says or because
# it never ran, another may.
sa.Index(
    "visits_once",
    visits.c.key,
    unique=True,
    postgresql_where=sa.text(
        "once AND (closed_at IS NULL OR error_kind IS NULL OR error_kind NOT IN ('not_done', 'invalid_arguments'))"
    ),
)

# What people say of calls that did not return. The outcome is in the visit itself.
settlements = sa.Table(
    "settlements",
    metadata,
    sa.Column("job_id", sa.Uuid, nullable=False),
    sa.Column("visit", sa.Integer, nullable=False),
    sa.Column("done", sa.Boolean, nullable=False),
    sa.Column("result", JSON),
    sa.Column("by", sa.Text, nullable=False),
    written_at("at"),
    sa.PrimaryKeyConstraint("job_id", "visit"),
    sa.ForeignKeyConstraint(["job_id", "visit"], ["visits.job_id", "visits.visit"]),
    sa.CheckConstraint("done OR result IS NULL", name="result"),
)

signals = sa.Table(
    "signals",
    metadata,
    job_id(),
    sa.Column("id", sa.Uuid, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("payload", JSON),
    sa.Column("by", sa.Text, nullable=False),
    sa.Column("scopes", ARRAY(sa.Text)),
    written_at("received_at"),
    moment("taken_at"),
    sa.PrimaryKeyConstraint("job_id", "id"),
)

# Only ever appended to: a trigger refuses an update.
events = sa.Table(
    "events",
    metadata,
    job_id(),
    sa.Column("ordinal", sa.Integer, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("turn", sa.Integer),
    sa.Column("attempt", sa.Integer),
    sa.Column("data", JSON, nullable=False),
    written_at("at"),
    sa.PrimaryKeyConstraint("job_id", "ordinal"),
)
