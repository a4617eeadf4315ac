"""What reads a whole table is seen, and every statement that is looked at can be run. Nothing here looks at a clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg.rows import dict_row

from benchmarks.plans import Case, look, plan, seen
from support.history import write_history
from support.queries import queries

if TYPE_CHECKING:
    from collections.abc import Iterator

    Connection = psycopg.Connection[dict[str, Any]]

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def history(postgres_server: Any, migrated_template: str) -> Iterator[Connection]:
    name = postgres_server.create("plans", template=migrated_template)
    with psycopg.connect(postgres_server.url_of(name), autocommit=True, row_factory=dict_row) as connection:
        write_history(connection, 4000)
        yield connection
    postgres_server.drop(name)


def test_a_statement_that_reads_all_attempts_is_wrong_and_its_plan_is_shown(history: Connection) -> None:
    whole = Case("all", "SELECT sum(prompt_tokens) FROM attempts")
    assert seen(history, whole).wrong == {"attempts"}
    assert "Seq Scan on attempts" in "".join(plan(history, whole))
    assert seen(history, Case("jobs", "SELECT sum(tokens) FROM jobs")).wrong == set()
    turns = "SELECT count(question::text) FROM turns"
    assert seen(history, Case("turns", turns)).wrong == {"turns"}
    assert seen(history, Case("turns", turns, spans=True)).wrong == set()


def test_every_statement_runs_and_leaves_everything_as_it_was(history: Connection) -> None:
    count = "SELECT (SELECT count(*) FROM events), (SELECT count(raw) FROM attempts)"
    before = history.execute(count).fetchone()
    found = look(history)
    assert history.execute(count).fetchone() == before
    assert sum(one.case.name.startswith("page: ") for one in found) == len(queries())
    retention = [one.rows for one in found if one.case.name.startswith("retention")]
    assert retention == [1, 1]
    # Of a job's own statements none reads a whole table, however small it is.
    assert {one.case.name for one in found if one.wrong and one.case.name.startswith("job: ")} == set()
