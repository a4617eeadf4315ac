from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from stepladder.models import children, commands, due, hot, migrate, retention, submissions
from stepladder.models.revision import REVISION
from stepladder.schemas.errors import BadInputError, UnreachableError
from stepladder.schemas.experiment import ExperimentKind
from stepladder.schemas.job import Failure, JobStatus
from stepladder.schemas.outcomes import CAUSES, Outcome, RungState
from stepladder.workflows.visits import VisitStatus

if TYPE_CHECKING:
    from collections.abc import Iterable
    from enum import StrEnum

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


def words(name: str, words: Iterable[StrEnum]) -> Any:
    return pytest.param(name, {str(word) for word in words}, id=name)


@pytest.mark.parametrize(
    ("check", "known"),
    [
        words("jobs_status", JobStatus),
        words("jobs_failure", Failure),
        words("jobs_finished", (status for status in JobStatus if status.final)),
        words("turns_outcome", Outcome),
        words("attempts_outcome", Outcome),
        words("attempts_lost_cause", CAUSES[Outcome.TRANSPORT]),
        *(words(f"attempts_rung_{rung}", RungState) for rung in ("termination", "parse", "schema", "semantic")),
        words("visits_status", VisitStatus),
        words("experiments_kind", ExperimentKind),
    ],
)
def test_a_check_allows_the_words_of_its_enum(database_url: str, check: str, known: set[str]) -> None:
    definitions = "SELECT conname::text, pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'c'"
    definition = dict(ask(database_url, definitions))[f"{check}_check"]
    assert set(re.findall(r"'(\w+)'", definition)) == known


def written(statement: str) -> dict[str, set[str]]:
    """The columns that a statement writes, by table."""
    columns: defaultdict[str, set[str]] = defaultdict(set)
    for table, names in re.findall(r"INSERT INTO (\w+) \((.*?)\)", statement, re.DOTALL):
        columns[table].update(re.findall(r"\w+", names))
    for table, body in re.findall(r"UPDATE (\w+) SET(.*?)\s(?:FROM|WHERE)\s", statement, re.DOTALL):
        columns[table].update(re.findall(r"(?:^|,)\s*(\w+) = ", body, re.MULTILINE))
    return columns


def test_every_column_of_a_jobs_tables_is_written(database_url: str) -> None:
    columns: defaultdict[str, set[str]] = defaultdict(set)
    for module in (hot, commands, submissions, children, retention, due):
        for statement in vars(module).values():
            for table, names in written(statement).items() if isinstance(statement, str) else ():
                columns[table] |= names
    query = "SELECT table_name::text, column_name::text, column_default FROM information_schema.columns"
    found: defaultdict[str, set[str]] = defaultdict(set)
    for table, column, default in ask(database_url, f"{query} WHERE table_schema = 'public'"):
        if table in columns and default != "now()":
            found[table].add(column)
    assert {*found} == {
        "jobs", "events", "messages", "turns", "attempts", "visits", "settlements", "signals", "idempotency_keys",
    }  # fmt: skip
    for table, names in found.items():
        assert names <= columns[table], table


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


def test_tables_of_a_newer_stepladder_are_left_alone(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(BadInputError, match="9999") as caught:
        migrate.upgrade(database_url)
    assert "newest Stepladder" in caught.value.remedy


def test_a_server_that_is_not_there_is_unreachable() -> None:
    with pytest.raises(UnreachableError, match=r"at 127\.0\.0\.1:1, database x"):
        migrate.upgrade("postgresql://user:secret-word@127.0.0.1:1/x")
