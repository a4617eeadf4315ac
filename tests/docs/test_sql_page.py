"""Every query on the page of ready ones is run, on a database with data, and finds something."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg.rows import dict_row

from support.history import write_history
from support.queries import PAGE, Query, queries

if TYPE_CHECKING:
    from collections.abc import Iterator

ATTEMPTS = 4000


@pytest.fixture(scope="module")
def history(postgres_server: Any, migrated_template: str) -> Iterator[psycopg.Connection[dict[str, Any]]]:
    name = postgres_server.create("history", template=migrated_template)
    with psycopg.connect(postgres_server.url_of(name), autocommit=True, row_factory=dict_row) as connection:
        write_history(connection, ATTEMPTS)
        yield connection
    postgres_server.drop(name)


def run(history: psycopg.Connection[dict[str, Any]], text: str) -> list[dict[str, Any]]:
    [job] = history.execute("SELECT id FROM jobs ORDER BY created_at DESC LIMIT 1").fetchall()
    return history.execute(text.replace(":'job'", f"'{job['id']}'").encode()).fetchall()


def named(words: str) -> Query:
    [query] = [query for query in queries() if words in query.title]
    return query


@pytest.mark.parametrize("query", queries(), ids=lambda query: query.title[:40])
def test_a_query_of_the_page_finds_something(history: psycopg.Connection[dict[str, Any]], query: Query) -> None:
    assert run(history, query.text) != []


def test_no_query_of_the_page_is_passed_over() -> None:
    assert len(queries()) == PAGE.read_text().count("```sql") >= 14


def test_the_history_has_as_many_attempts_as_it_was_asked_for(history: psycopg.Connection[dict[str, Any]]) -> None:
    assert run(history, "SELECT count(*) AS n FROM attempts") == [{"n": ATTEMPTS}]


def test_failures_by_cause_are_counted_as_they_are(history: psycopg.Connection[dict[str, Any]]) -> None:
    week = datetime.now(UTC) - timedelta(days=7)
    rows = history.execute(
        "SELECT outcome, cause, job_id FROM attempts WHERE judged_at >= %s AND outcome <> 'valid'", (week,)
    ).fetchall()
    shown = run(history, named("Failures by cause").text)
    assert sum(row["attempts"] for row in shown) == len(rows)
    assert {(row["outcome"], row["cause"]) for row in shown} == {(row["outcome"], row["cause"]) for row in rows}


def test_a_rule_that_was_broken_is_found_in_every_answer_that_broke_it(
    history: psycopg.Connection[dict[str, Any]],
) -> None:
    query = re.sub(r"LIMIT \d+", "", named("whose total was wrong in any attempt").text)
    count = "SELECT count(*) AS n FROM attempts WHERE cause = 'arithmetic'"
    assert len(run(history, query)) == run(history, count)[0]["n"] > 0
    observed = run(history, query.replace("arithmetic", "tone"))
    assert {row["outcome"] for row in observed} == {"valid"}


def test_what_a_model_wrote_breaks_no_query(history: psycopg.Connection[dict[str, Any]]) -> None:
    """A pointer with NUL in it, which PostgreSQL's functions for JSON refuse once they unescape it."""
    with history.transaction(force_rollback=True):
        history.execute("ALTER TABLE attempts DISABLE TRIGGER verdicts_stand")
        odd = r"""[{"pointer": "/\u0000\ud800", "reason": "odd \" \u0000", "source": "carried"}]"""
        history.execute("UPDATE attempts SET errors = %s WHERE outcome = 'semantic'", (odd,))
        for query in queries():
            assert run(history, query.text.replace("arithmetic", "carried")), query.title


def test_tokens_lost_to_truncation_are_those_of_the_answers_that_were_cut_off(
    history: psycopg.Connection[dict[str, Any]],
) -> None:
    tokens = """
        SELECT sum(prompt_tokens + completion_tokens) AS n FROM attempts
        WHERE outcome = 'truncation' AND judged_at >= now() - interval '7 days'
    """
    shown = run(history, named("Tokens lost").text)
    assert sum(row["tokens"] for row in shown) == run(history, tokens)[0]["n"] > 0
