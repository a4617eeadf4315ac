"""The revision of the tables that this Stepladder needs, apart from ``migrate``: reading it loads no Alembic."""

REVISION = "0002"
"""The migration that leads to these tables."""
