from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import NullPool, create_engine

from stepladder.models import migrate
from stepladder.models.tables import REVISION, metadata
from stepladder.schemas.errors import BadInputError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sqlalchemy import Engine

CATALOG = """
    SELECT 'column', table_name::text, column_name::text, data_type || ' ' || udt_name, is_nullable::text,
        COALESCE(column_default, '')
    FROM information_schema.columns WHERE table_schema = 'public'
    UNION ALL
    SELECT 'constraint', conrelid::regclass::text, conname::text, pg_get_constraintdef(oid), '', ''
    FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND contype <> 'n'
    UNION ALL
    SELECT 'index', tablename::text, indexname::text, indexdef, '', '' FROM pg_indexes WHERE schemaname = 'public'
"""
LEFT_OVER = """
    SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace
    UNION ALL SELECT proname::text FROM pg_proc WHERE pronamespace = 'public'::regnamespace
"""


def ask(url: str, query: str) -> set[tuple[Any, ...]]:
    with psycopg.connect(url) as connection:
        return set(connection.execute(query).fetchall())


@pytest.fixture
def engine_for() -> Iterator[Callable[[str], Engine]]:
    engines: list[Engine] = []

    def make(url: str) -> Engine:
        engines.append(create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(url), poolclass=NullPool))
        return engines[-1]

    yield make
    for engine in engines:
        engine.dispose()


def test_alembic_finds_no_difference_between_migrations_and_models(
    database_url: str, engine_for: Callable[[str], Engine]
) -> None:
    with engine_for(database_url).connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_server_default": True, "compare_type": True})
        assert compare_metadata(context, metadata) == []


def test_migrations_and_models_make_the_same_tables(
    database_url: str, bare_database_url: str, engine_for: Callable[[str], Engine]
) -> None:
    broken = "SELECT pg_get_functiondef('stepladder_broken'::regproc)"  # which an index is made of
    with engine_for(bare_database_url).begin() as connection:
        for (definition,) in ask(database_url, broken):
            connection.exec_driver_sql(definition.replace("%", "%%"))
        metadata.create_all(connection)
    views = {row[0] for row in ask(database_url, "SELECT viewname FROM pg_views WHERE schemaname = 'public'")}
    migrated = {row for row in ask(database_url, CATALOG) if row[1] not in {*views, "alembic_version"}}
    made = ask(bare_database_url, CATALOG)
    assert migrated == made
    assert {kind for kind, *_ in made} == {"column", "constraint", "index"}


def test_down_to_base_leaves_nothing_but_alembics_own_table(bare_database_url: str) -> None:
    migrate.upgrade(bare_database_url)
    assert migrate.current(bare_database_url) == REVISION
    migrate.downgrade(bare_database_url, "base")
    assert migrate.current(bare_database_url) is None
    assert ask(bare_database_url, LEFT_OVER) == {("alembic_version",), ("alembic_version_pkc",)}
    migrate.upgrade(bare_database_url)
    assert migrate.current(bare_database_url) == REVISION


def test_each_migration_can_be_undone_alone(bare_database_url: str) -> None:
    migrate.upgrade(bare_database_url, "0001")
    before = ask(bare_database_url, CATALOG)
    migrate.upgrade(bare_database_url)
    migrate.downgrade(bare_database_url, "0001")
    assert ask(bare_database_url, CATALOG) == before


def test_the_store_asks_for_the_newest_revision() -> None:
    assert migrate.head() == REVISION


@pytest.mark.long
def test_several_processes_may_migrate_at_once(bare_database_url: str) -> None:
    code = "import sys; from stepladder.models.migrate import upgrade; upgrade(sys.argv[1])"
    processes = [
        subprocess.Popen([sys.executable, "-c", code, bare_database_url], stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    ends = [(process.communicate()[1], process.returncode) for process in processes]
    assert [code for _, code in ends] == [0, 0, 0], ends
    assert migrate.current(bare_database_url) == REVISION


def test_an_upgrade_changes_nothing_where_nothing_is_to_be_done(database_url: str) -> None:
    before = ask(database_url, CATALOG)
    migrate.upgrade(database_url)
    assert ask(database_url, CATALOG) == before


def test_tables_of_a_newer_stepladder_are_left_alone(own_database_url: str) -> None:
    with psycopg.connect(own_database_url) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(BadInputError, match="9999") as caught:
        migrate.upgrade(own_database_url)
    assert "newest Stepladder" in caught.value.remedy


def test_a_server_that_is_not_there_is_unreachable() -> None:
    with pytest.raises(UnreachableError, match=r"at 127\.0\.0\.1:1, database x"):
        migrate.upgrade("postgresql://user:secret-word@127.0.0.1:1/x")
