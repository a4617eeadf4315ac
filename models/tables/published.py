"""What is published: workflows, the documents that forks changed, and the schemas of answers."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSON

from stepladder.models.columns import metadata, moment, written_at

# A version of which no new jobs are made is ``retired``. ``paused_at`` holds all jobs of it, and ``paused_whole`` says
# that versions to come are to be paused as well.
workflows = sa.Table(
    "workflows",
    metadata,
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("hash", sa.Text, nullable=False),
    sa.Column("document", JSON, nullable=False),
    sa.Column("max_in_flight", sa.Integer),
    sa.Column("retired", sa.Boolean, nullable=False, server_default=sa.text("false")),
    moment("paused_at"),
    sa.Column("paused_by", sa.Text),
    sa.Column("paused_whole", sa.Boolean, nullable=False, server_default=sa.text("false")),
    written_at("created_at"),
    sa.PrimaryKeyConstraint("name", "version"),
)

# Changed documents by which forks run. A version is only ever what was published under it.
variants = sa.Table(
    "variants",
    metadata,
    sa.Column("hash", sa.Text, primary_key=True),
    sa.Column("workflow", sa.Text, nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("document", JSON, nullable=False),
    sa.Column("changes", JSON, nullable=False),
    written_at("created_at"),
    sa.ForeignKeyConstraint(["workflow", "version"], ["workflows.name", "workflows.version"]),
)

# Turns name a schema by its hash alone: a foreign key would lock the one row that all jobs of a workflow share.
output_schemas = sa.Table(
    "output_schemas",
    metadata,
    sa.Column("hash", sa.Text, primary_key=True),
    sa.Column("schema", JSON, nullable=False),
    written_at("created_at"),
)
