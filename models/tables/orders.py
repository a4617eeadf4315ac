"""What is ordered in one go: submissions under a key, many replays, experiments."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, JSON

from stepladder.models.columns import metadata, moment, one_of, written_at
from stepladder.schemas.experiment import ExperimentKind

# Orders of many replays. A worker's sweep hands them out, ``concurrency`` at once, from the newest job that fits
# ``filter`` to the oldest; ``after_at`` and ``after_id`` are how far it has come. ``refused`` counts by reason.
bulks = sa.Table(
    "bulks",
    metadata,
    sa.Column("id", sa.Uuid, primary_key=True),
    sa.Column("filter", JSON, nullable=False),
    sa.Column("mode", sa.Text, nullable=False),
    sa.Column("changes", JSON, nullable=False),
    sa.Column("concurrency", sa.Integer, nullable=False),
    sa.Column("priority", sa.Integer, nullable=False),
    sa.Column("principal", sa.Text, nullable=False),
    sa.Column("scopes", ARRAY(sa.Text)),
    sa.Column("total", sa.Integer, nullable=False),
    sa.Column("refused", JSON, nullable=False),
    moment("after_at"),
    sa.Column("after_id", sa.Uuid),
    moment("stopped_at"),
    moment("handed_out_at"),
    written_at("created_at"),
)
sa.Index("bulks_open", bulks.c.created_at, postgresql_where=sa.text("handed_out_at IS NULL AND stopped_at IS NULL"))

# The same workflow many times, or by two variants, to be compared. Its jobs are no part of the rates of live ones.
# A shadow runs beside a ``share`` of live jobs until it is stopped; ``after_at`` and ``after_id`` say how far.
experiments = sa.Table(
    "experiments",
    metadata,
    sa.Column("id", sa.Uuid, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("workflow", sa.Text, nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("variant", sa.Text, sa.ForeignKey("variants.hash")),
    sa.Column("arms", JSON, nullable=False),
    sa.Column("samples", sa.Integer, nullable=False),
    sa.Column("principal", sa.Text, nullable=False),
    sa.Column("scopes", ARRAY(sa.Text)),
    sa.Column("share", sa.Double),
    moment("after_at"),
    sa.Column("after_id", sa.Uuid),
    moment("stopped_at"),
    written_at("created_at"),
    one_of("kind", ExperimentKind),
    sa.ForeignKeyConstraint(["workflow", "version"], ["workflows.name", "workflows.version"]),
)
sa.Index("experiments_created", experiments.c.created_at, experiments.c.id)
sa.Index(
    "experiments_shadow",
    experiments.c.workflow,
    experiments.c.version,
    unique=True,
    postgresql_where=sa.text("kind = 'shadow' AND stopped_at IS NULL"),
)

# Under which key a principal submitted which jobs. ``fingerprint`` is the hash of what was asked for.
idempotency_keys = sa.Table(
    "idempotency_keys",
    metadata,
    sa.Column("principal", sa.Text, nullable=False),
    sa.Column("key", sa.Text, nullable=False),
    sa.Column("fingerprint", sa.Text, nullable=False),
    sa.Column("job_ids", ARRAY(sa.Uuid), nullable=False),
    written_at("created_at"),
    sa.PrimaryKeyConstraint("principal", "key"),
)
sa.Index("idempotency_keys_created", idempotency_keys.c.created_at)
