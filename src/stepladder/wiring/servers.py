"""The URLs of the servers: those configured, and an embedded server for each that is not."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING

from stepladder.schemas.errors import BadInputError, UnreachableError
from stepladder.wiring.note import read_note

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepladder.wiring.settings import Settings

# Code that starts servers is imported where it is used: most commands find them running.

Say = Callable[[str], None]


@contextmanager
def database(settings: Settings, say: Say) -> Iterator[str]:
    """The URL of a PostgreSQL. An embedded one is started under ``settings.home`` unless it is already running,
    migrated, and stopped with the last process that uses it.

    Raises ``UnreachableError`` if it cannot be started.
    """
    if settings.database_url is not None:
        yield settings.database_url.get_secret_value()
        return
    from stepladder.embedded import postgres

    say(f"starting PostgreSQL under {settings.home}")
    with postgres.running(settings.home) as url:
        ensure_tables(url)
        yield url


def ensure_tables(url: str) -> None:
    """Migrates the tables if they are not up to date. Raises as ``migrate.upgrade`` does."""
    from stepladder.models.revision import REVISION

    if _revision(url) != REVISION:
        from stepladder.models import migrate

        migrate.upgrade(url)


def _revision(url: str) -> str | None:
    """Read directly: importing Alembic takes longer than most commands."""
    import psycopg

    from stepladder.models.database import SETTINGS, reaching

    with reaching(url), psycopg.connect(url, autocommit=True, **SETTINGS) as connection:
        found = connection.execute("SELECT to_regclass('alembic_version') IS NOT NULL").fetchone()
        if found is None or not found[0]:
            return None
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        return None if row is None else str(row[0])


def running_database(settings: Settings) -> str:
    """The URL of the PostgreSQL that is configured or running. Starts nothing.

    Raises ``UnreachableError`` if there is none.
    """
    if settings.database_url is not None:
        return settings.database_url.get_secret_value()
    from stepladder.embedded import postgres

    url = postgres.current_url(settings.home)
    if url is None:
        raise UnreachableError(
            f"no PostgreSQL is running under {settings.home}, and STEPLADDER_DATABASE_URL is not set",
            remedy="start it with `stepladder up`, or use `stepladder psql`, which starts it itself",
        )
    return url


@contextmanager
def broker(settings: Settings, say: Say) -> Iterator[str]:
    """The URL of a broker. If none is configured, a Valkey runs under ``settings.home`` until the block ends.

    Raises ``UnreachableError`` if it cannot be started.
    """
    if settings.broker_url is not None:
        yield settings.broker_url.get_secret_value()
        return
    from stepladder.embedded import valkey

    say(f"starting Valkey under {settings.home}")
    with valkey.running(settings.home) as url:
        yield url


def running_broker(settings: Settings) -> str | None:
    """The URL of the broker that is configured, or that of a running ``stepladder up``. None if there is none."""
    if settings.broker_url is not None:
        return settings.broker_url.get_secret_value()
    note = read_note(settings.home)
    return None if note is None else note.broker_url


def needed_broker(settings: Settings) -> str:
    """As ``running_broker``. Raises ``BadInputError`` if there is none."""
    url = running_broker(settings)
    if url is None:
        raise BadInputError(
            "no broker is configured, and no `stepladder up` with one is running here",
            remedy="set STEPLADDER_BROKER_URL to a Redis or Valkey, such as redis://:PASSWORD@HOST:6379/0",
        )
    return url


def running_engine(settings: Settings) -> str | None:
    """The base URL of the engine that is configured, or that of a running ``stepladder up``. None if there is none."""
    if settings.engine_url is not None:
        return settings.engine_url
    note = read_note(settings.home)
    return None if note is None else note.engine_url


@contextmanager
def engine(settings: Settings, say: Say) -> Iterator[str]:
    """The base URL of an engine. If none is configured, llama.cpp serves a small one on loopback in the block.

    Raises ``UnreachableError`` if it cannot be started.
    """
    if settings.engine_url is not None:
        yield settings.engine_url
        return
    from stepladder.embedded import llama, model

    path = model.ensure_model(announce=say)
    say("loading the small model")
    with llama.running(path, settings.home / "engine.log") as url:
        yield url
