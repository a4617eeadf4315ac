"""Run by Alembic, over the connection that ``stepladder.models.migrate`` opened and locked."""

from __future__ import annotations

from alembic import context

from stepladder.models.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
