"""What is published: workflows, the documents that forks changed, and the schemas of answers."""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    Column,
    ForeignKeyConstraint,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSON

from stepladder.models.columns import metadata, moment, written_at

# A version of which no new jobs are made is ``retired``. ``paused_at`` holds all jobs of it, and ``paused_whole`` says
# that versions to come are to be paused as well.
workflows = Table(
    "workflows",
    metadata,
    Column("name", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("hash", Text, nullable=False),
    Column("document", JSON, nullable=False),
    Column("max_in_flight", Integer),
    Column("retired", Boolean, nullable=False, server_default=text("false")),
    moment("paused_at"),
    Column("paused_by", Text),
    Column("paused_whole", Boolean, nullable=False, server_default=text("false")),
    written_at("created_at"),
    PrimaryKeyConstraint("name", "version"),
)

# Changed documents by which forks run. A version is only ever what was published under it.
variants = Table(
    "variants",
    metadata,
    Column("hash", Text, primary_key=True),
    Column("workflow", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("document", JSON, nullable=False),
    Column("changes", JSON, nullable=False),
    written_at("created_at"),
    ForeignKeyConstraint(["workflow", "version"], ["workflows.name", "workflows.version"]),
)

# Turns name a schema by its hash alone: a foreign key would lock the one row that all jobs of a workflow share.
output_schemas = Table(
    "output_schemas",
    metadata,
    Column("hash", Text, primary_key=True),
    Column("schema", JSON, nullable=False),
    written_at("created_at"),
)
