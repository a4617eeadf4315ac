"""One real PostgreSQL for all tests, and a migrated, empty database for each test that asks for it."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING

import psycopg
import pytest
from hypothesis import settings
from psycopg.conninfo import make_conninfo

from stepladder.embedded import postgres
from stepladder.models import migrate
from stepladder.models.database import Database
from stepladder.models.store import Store
from support.database import DELETE_ALL

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

settings.register_profile("stepladder", deadline=None)  # a busy machine is not a fault
settings.load_profile("stepladder")

_numbers = itertools.count(1)


class Server:
    """A PostgreSQL server on which tests create and drop databases."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._prefix = f"stepladder_test_{os.getpid()}_"

    def url_of(self, database: str) -> str:
        return make_conninfo(self._url, dbname=database)

    def create(self, name: str, template: str = "template0") -> str:
        """Creates a database and returns its name on this server."""
        full = self._prefix + name
        self.execute(f'CREATE DATABASE "{full}" TEMPLATE "{template}" STRATEGY FILE_COPY')
        return full

    def empty(self, full: str) -> None:
        """Ends all connections to a migrated database and deletes its rows."""
        with psycopg.connect(self.url_of(full), autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            connection.execute(DELETE_ALL)

    def drop(self, full: str) -> None:
        self.execute(f'DROP DATABASE IF EXISTS "{full}" WITH (FORCE)')

    def execute(self, statement: str) -> None:
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute(statement)


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server of STEPLADDER_TEST_DATABASE_URL, whose user must be allowed to create databases, or an embedded one.

    Parallel test processes share the embedded server: it runs until the last of them leaves.
    """
    if url := os.environ.get("STEPLADDER_TEST_DATABASE_URL"):
        yield Server(url)
        return
    folder = tmp_path_factory.getbasetemp()
    run = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    with postgres.running(run / "home") as url:
        server = Server(url)
        for setting in ("fsync", "full_page_writes"):  # its data need not survive a crash
            server.execute(f"ALTER SYSTEM SET {setting} = off")
        server.execute("SELECT pg_reload_conf()")
        yield server


@pytest.fixture(scope="session")
def migrated_template(postgres_server: Server) -> Iterator[str]:
    name = postgres_server.create("template")
    migrate.upgrade(postgres_server.url_of(name))
    yield name
    postgres_server.drop(name)


@pytest.fixture
def bare_database_url(postgres_server: Server) -> Iterator[str]:
    """A database without tables."""
    name = postgres_server.create(str(next(_numbers)))
    yield postgres_server.url_of(name)
    postgres_server.drop(name)


@pytest.fixture(scope="session")
def shared_database(postgres_server: Server, migrated_template: str) -> Iterator[str]:
    name = postgres_server.create("shared", template=migrated_template)
    yield name
    postgres_server.drop(name)


@pytest.fixture
def database_url(postgres_server: Server, shared_database: str) -> str:
    """A database with all tables, all of them empty; the same one for each test of this process."""
    postgres_server.empty(shared_database)
    return postgres_server.url_of(shared_database)


@pytest.fixture
def own_database_url(postgres_server: Server, migrated_template: str) -> Iterator[str]:
    """The same, of this test alone, which may close it to all connections."""
    name = postgres_server.create(str(next(_numbers)), template=migrated_template)
    yield postgres_server.url_of(name)
    postgres_server.drop(name)


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    async with Database(database_url) as database:
        yield database


@pytest.fixture
def store(database: Database) -> Store:
    return Store(database)
