"""Moves a database from one revision of the tables to another."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import psycopg
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import NullPool, create_engine, text
from sqlalchemy.exc import DBAPIError

from stepladder.models.database import SETTINGS, place, reaching
from stepladder.schemas.errors import BadInputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection

LOCK = 0x57E9_1ADD_E400_0001
"""The advisory lock of migrations: any number that other programs in the same database will not hit upon."""


def upgrade(url: str, revision: str = "head") -> None:
    """Brings the tables up to a revision, in one transaction; several processes may do so at once, and one does it.

    Raises ``UnreachableError`` if the database cannot be reached, ``BadInputError`` for a revision that does not
    exist, which the tables of a newer Stepladder have as well.
    """
    with _locked(url) as connection:
        _run(url, connection, revision, up=True)


def downgrade(url: str, revision: str) -> None:
    """Takes the tables, and what is in them, back to a revision; ``base`` leaves nothing.

    Raises as ``upgrade`` does.
    """
    with _locked(url) as connection:
        _run(url, connection, revision, up=False)


def current(url: str) -> str | None:
    """The revision of the tables, or None if there are none. Raises ``UnreachableError`` as ``upgrade`` does."""
    with _connected(url) as connection:
        return MigrationContext.configure(connection).get_current_revision()


def head() -> str | None:
    """The newest revision that this Stepladder knows."""
    return ScriptDirectory.from_config(_config()).get_current_head()


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", "stepladder:migrations")
    return config


def _run(url: str, connection: Connection, revision: str, *, up: bool) -> None:
    config = _config()
    config.attributes["connection"] = connection
    try:
        (command.upgrade if up else command.downgrade)(config, revision)
    except CommandError as error:
        raise BadInputError(
            f"The tables of {place(url)} cannot be taken to revision {revision}: {error}",
            remedy="Use the newest Stepladder that has used this database.",
        ) from error


@contextmanager
def _locked(url: str) -> Iterator[Connection]:
    with _connected(url) as connection, connection.begin():
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
        yield connection


@contextmanager
def _connected(url: str) -> Iterator[Connection]:
    place(url)  # a URL that cannot be read is refused here, before a driver quotes it with its password
    # libpq itself reads the URL, as it does for the store, so that both understand the same URLs.
    engine = create_engine(
        "postgresql+psycopg://", creator=lambda: psycopg.connect(url, **SETTINGS), poolclass=NullPool
    )
    with reaching(url):
        try:
            with engine.connect() as connection:
                yield connection
        except DBAPIError as error:
            raise error.orig or error from error
