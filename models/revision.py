"""The revision of the tables that this Stepladder needs, apart from them: to look at it no SQLAlchemy is loaded."""

REVISION = "0002"
"""The migration that leads to these tables."""
