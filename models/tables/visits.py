"""What stands between the turns: tools, lists, children, waits and signals; and the history."""

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
from stepladder.schemas.tool import Effect

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
    Column("runs", Integer, nullable=False),
    Column("failed", Integer, nullable=False),
    Column("lost", Integer, nullable=False),
    Column("result", JSON),
    Column("error", JSON),
    Column("carried", Boolean, nullable=False),
    moment("opened_at", required=True),
    moment("closed_at"),
    PrimaryKeyConstraint("job_id", "visit"),
    one_of("effect", Effect),
)

# One job of a lineage begins a call that cannot be undone. Where that took no effect, by what a person says or because
# it never ran, another may.
Index(
    "tool_calls_once",
    tool_calls.c.key,
    unique=True,
    postgresql_where=text(
        "effect = 'irreversible' AND NOT carried AND (closed_at IS NULL OR error IS NULL"
        ' OR error::text !~ \'"kind" *: *"(not_done|invalid_arguments)"\')'
    ),
)

# What people say of calls that did not come back. What the worker makes of it stands in the call itself.
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
    ForeignKeyConstraint(["job_id", "visit"], ["tool_calls.job_id", "tool_calls.visit"]),
    CheckConstraint("done OR result IS NULL", name="result"),
)

# What a list is built over. Its elements are turns.
list_runs = Table(
    "list_runs",
    metadata,
    job_id(),
    Column("visit", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("at_most", Integer, nullable=False),
    Column("items", JSON),
    Column("count", Integer),
    Column("until", Text),
    Column("carried", Boolean, nullable=False),
    moment("opened_at", required=True),
    PrimaryKeyConstraint("job_id", "visit"),
)

# The children themselves are jobs, which name their parent.
child_calls = Table(
    "child_calls",
    metadata,
    job_id(),
    Column("visit", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("workflow", Text, nullable=False),
    Column("version", Integer),
    Column("inputs", JSON, nullable=False),
    Column("failed", JSON, nullable=False),
    Column("result", JSON),
    Column("error", JSON),
    Column("carried", Boolean, nullable=False),
    moment("opened_at", required=True),
    moment("closed_at"),
    PrimaryKeyConstraint("job_id", "visit"),
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
    Column("by_other", Boolean, nullable=False, server_default=text("false")),
    Column("scopes", ARRAY(Text), nullable=False, server_default=text("'{}'")),
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
