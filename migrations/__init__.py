"""Alembic's side of the tables: ``versions`` are the steps from an empty database to ``stepladder.models.tables``."""
