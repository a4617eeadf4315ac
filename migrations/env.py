"""Run by Alembic, over the connection that ``stepladder.models.migrate`` opened and locked."""

from __future__ import annotations

from alembic import context

context.configure(connection=context.config.attributes["connection"])
with context.begin_transaction():
    context.run_migrations()
