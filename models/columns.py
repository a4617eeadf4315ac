"""How the tables' columns, keys and checks are made and named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import CheckConstraint, Column, ForeignKey, MetaData, Uuid, text
from sqlalchemy.dialects.postgresql import TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Iterable
    from enum import StrEnum


# PostgreSQL's own names, which the migrations leave to it.
metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
        "ck": "%(table_name)s_%(constraint_name)s_check",
    }
)


def listed(words: Iterable[StrEnum]) -> str:
    """The words as a list in SQL."""
    return ", ".join(f"'{word}'" for word in words)


def one_of(column: str, words: Iterable[StrEnum]) -> CheckConstraint:
    """The check that a column holds one of the words, or nothing."""
    return CheckConstraint(f"{column} IN ({listed(words)})", name=column)


def moment(name: str, *, required: bool = False) -> Column[object]:
    """A point in time."""
    return Column(name, TIMESTAMP(timezone=True), nullable=not required)


def written_at(name: str) -> Column[object]:
    """When the row was written, by the database's clock."""
    return Column(name, TIMESTAMP(timezone=True), nullable=False, server_default=text("now()"))


def job_id() -> Column[object]:
    """The job that a row belongs to."""
    return Column("job_id", Uuid, ForeignKey("jobs.id"), nullable=False)
