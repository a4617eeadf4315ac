"""What is ordered in one go: submissions under a key, many replays, experiments."""

from __future__ import annotations

from sqlalchemy import (
    Column,
    Double,
    ForeignKey,
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

from stepladder.models.columns import metadata, moment, one_of, written_at
from stepladder.schemas.experiment import ExperimentKind

# Orders of many replays. A worker's sweep hands them out, ``concurrency`` at once, from the newest job that fits
# ``filter`` to the oldest; ``after_at`` and ``after_id`` are how far it has come. ``refused`` counts by reason.
bulks = Table(
    "bulks",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("filter", JSON, nullable=False),
    Column("mode", Text, nullable=False),
    Column("changes", JSON, nullable=False),
    Column("concurrency", Integer, nullable=False),
    Column("priority", Integer, nullable=False),
    Column("principal", Text, nullable=False),
    Column("scopes", ARRAY(Text)),
    Column("total", Integer, nullable=False),
    Column("refused", JSON, nullable=False),
    moment("after_at"),
    Column("after_id", Uuid),
    moment("stopped_at"),
    moment("handed_out_at"),
    written_at("created_at"),
)
Index("bulks_open", bulks.c.created_at, postgresql_where=text("handed_out_at IS NULL AND stopped_at IS NULL"))

# The same workflow many times, or by two variants, to be compared. Its jobs are no part of the rates of live ones.
# A shadow runs beside a ``share`` of live jobs until it is stopped; ``after_at`` and ``after_id`` say how far.
experiments = Table(
    "experiments",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("workflow", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("variant", Text, ForeignKey("variants.hash")),
    Column("arms", JSON, nullable=False),
    Column("samples", Integer, nullable=False),
    Column("principal", Text, nullable=False),
    Column("scopes", ARRAY(Text)),
    Column("share", Double),
    moment("after_at"),
    Column("after_id", Uuid),
    moment("stopped_at"),
    written_at("created_at"),
    one_of("kind", ExperimentKind),
    ForeignKeyConstraint(["workflow", "version"], ["workflows.name", "workflows.version"]),
)
Index("experiments_created", experiments.c.created_at, experiments.c.id)
Index(
    "experiments_shadow",
    experiments.c.workflow,
    experiments.c.version,
    unique=True,
    postgresql_where=text("kind = 'shadow' AND stopped_at IS NULL"),
)

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
