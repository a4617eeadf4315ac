"""What the statements of the read service, of retention and of the page of ready queries read, of a million attempts.

Run by ``scripts/plans``. Exit code 1 if one of them reads all attempts, turns, messages or events, or cannot be run:
that would be as slow as the history is long. Times are of this machine, with the server's own settings, and the second
run of two; what a plan reads is the same everywhere.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.rows import dict_row

from stepladder.embedded import postgres
from stepladder.models import child_jobs, hot, migrate, retention, variants
from stepladder.models.database import Database
from stepladder.queries import counts, rare, reads, request, search
from stepladder.queries.listing import candidates, page, places
from stepladder.queries.where import filter_of
from stepladder.schemas.job_filter import JobFilter, Place
from support.history import DAYS, write_history
from support.queries import queries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from uuid import UUID

    Connection = psycopg.Connection[dict[str, Any]]

WHOLE = frozenset({"attempts", "turns", "messages", "events"})
"""Tables that nothing on the list may read from end to end."""

LONG = frozenset({"turns"})
"""Of those, what a query over a week may: a hash of all turns is quicker there than a look at each by its key."""

TIMEOUT_S = 120


@dataclass(frozen=True, slots=True)
class Case:
    """A statement and its parameters. ``spans`` says that it looks at a week, and not at one job or one page."""

    name: str
    statement: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    spans: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """What came of a case. ``read`` are the tables that it read from end to end."""

    case: Case
    ms: float
    rows: int
    read: frozenset[str]

    @property
    def wrong(self) -> frozenset[str]:
        return self.read & (WHOLE - LONG if self.case.spans else WHOLE)


def cases(few: Callable[[JobFilter], JobFilter], job: UUID, attempt: UUID, place: Place) -> Iterator[Case]:
    """Every one of them, for a job, one of its attempts, and a place in the middle of the list."""
    yield from _of_a_job(job, attempt)
    yield from _lists(few, job, place)
    yield from _stats()
    old = {"age": timedelta(days=DAYS - 1), "most": retention.BATCH}
    yield Case("retention: a batch of raw answers", retention.RAW, old)
    yield Case("retention: a batch of events", retention.EVENTS, old)
    for query in queries():
        text = query.text.replace(":'job'", f"'{job}'").replace("%", "%%").rstrip(";")
        yield Case(f"page: {query.title}", text, spans=True)


def _of_a_job(job: UUID, attempt: UUID) -> Iterator[Case]:
    one: dict[str, Any] = {"job": job, "after": 0, "limit": 1000}
    named: dict[str, tuple[str, dict[str, Any]]] = {
        "overview": (reads._OVERVIEWS, {"jobs": [job]}),
        "turns": (reads._TURNS, one),
        "attempts": (reads._ATTEMPTS, one),
        "events": (reads._EVENTS, one),
        "visits": (hot.VISITS, one),
        "signals": (reads._SIGNALS, one),
        "children": (child_jobs.RECORDS, one | {"most": child_jobs.MOST}),
        "replays": (variants._REPLAYS, one),
        "raw": (reads._RAW, {"attempt": attempt}),
        "request": (request._REQUEST, {"attempt": attempt}),
    }
    for name, (statement, parameters) in named.items():
        yield Case(f"job: {name}", statement, parameters)


def _lists(few: Callable[[JobFilter], JobFilter], job: UUID, place: Place) -> Iterator[Case]:
    lately = (datetime.now(UTC) - timedelta(days=1)).isoformat()
    filters: dict[str, dict[str, Any]] = {
        "nothing": {},
        "status failed": {"status": "failed"},
        "status waiting": {"status": "waiting"},
        "status paused": {"status": "paused"},
        "workflow": {"workflow": "ticket"},
        "outcome, common": {"outcome": "semantic"},
        "outcome, rare": {"outcome": "refused"},
        "outcome, never": {"outcome": "schema_rejected"},
        "cause, common": {"cause": "maxLength"},
        "cause, never": {"cause": "content_filter"},
        "rule, common": {"rule": "arithmetic"},
        "rule, observed": {"rule": "tone"},
        "rule, never": {"rule": "nothing"},
        "failure": {"failure": "loop"},
        "state": {"state": "broken"},
        "principal": {"principal": "team-7"},
        "parent": {"parent": str(job)},
        "replay_of": {"replay_of": str(job)},
        "metadata": {"metadata.order": "4711"},
        "created_after": {"created_after": lately},
    }
    for name, where in filters.items():
        wanted = filter_of(where)
        if wanted.rule:
            yield Case(f"list: {name}, how many", rare._FIRST, {"rule": list(wanted.rule), "most": rare.FEW + 1})
        for shown, after in (("", None), (", from the middle", place)):
            yield Case(f"list: {name}{shown}", *page(few(wanted), 51, after))
    for shown, after in (("", None), (", from the middle", place)):
        text = JobFilter(search="nobody said this")
        yield Case(f"list: search, a chunk{shown}", *candidates(text, search.CHUNK, after))
    yield Case("list: places for a bulk", *places(few(filter_of({"rule": "arithmetic"})), 200, place))


def _stats() -> Iterator[Case]:
    day = {"since": datetime.now(UTC) - timedelta(days=1), "edge": None, "workflow": None, "experiments": False}
    for name in ("JUDGED", "CLOSED", "OBSERVED", "ENDED"):
        yield Case(f"stats of a day: {name.lower()}", getattr(counts, name), day)
    yield Case("stats of a day: timed", counts.TIMED, day | {"bounds": list(counts.SECONDS)})


def seen(connection: Connection, case: Case) -> Seen:
    """Runs a case twice, and takes back what it wrote."""
    explain = f"EXPLAIN (ANALYZE, FORMAT JSON) {case.statement}".encode()
    with connection.transaction(force_rollback=True):
        connection.execute("SELECT set_config('stepladder.retention', 'on', true)")
        if case.statement == rare._FIRST:
            connection.execute("SET LOCAL enable_seqscan = off")
        with connection.transaction(force_rollback=True):
            connection.execute(explain, case.parameters)
        row = connection.execute(explain, case.parameters).fetchone()
    assert row is not None
    [told] = row["QUERY PLAN"]
    return Seen(case, told["Execution Time"], told["Plan"]["Actual Rows"], frozenset(_read_whole(told["Plan"])))


def plan(connection: Connection, case: Case) -> list[str]:
    """For people."""
    rows = connection.execute(f"EXPLAIN {case.statement}".encode(), case.parameters).fetchall()
    return [f"    {row['QUERY PLAN']}" for row in rows]


def _read_whole(node: Mapping[str, Any]) -> Iterator[str]:
    if node["Node Type"] == "Seq Scan" and node["Actual Loops"] > 0:
        yield node["Relation Name"]
    for below in node.get("Plans", ()):
        yield from _read_whole(below)


def look(connection: Connection) -> list[Seen]:
    """All cases, on a database with a history."""
    middle = "SELECT id, created_at FROM jobs ORDER BY created_at OFFSET (SELECT count(*) / 2 FROM jobs) LIMIT 1"
    job = connection.execute(middle).fetchone()
    assert job is not None
    attempt = connection.execute("SELECT id FROM attempts WHERE job_id = %s LIMIT 1", (job["id"],)).fetchone()
    assert attempt is not None
    connection.execute(f"SET statement_timeout = '{TIMEOUT_S} s'".encode())
    place = Place(job["created_at"], job["id"])

    def few(wanted: JobFilter) -> JobFilter:
        return asyncio.run(_narrowed(connection.info.dsn, wanted))

    return [seen(connection, case) for case in cases(few, job["id"], attempt["id"], place)]


async def _narrowed(url: str, wanted: JobFilter) -> JobFilter:
    async with Database(url) as database:
        return await rare.narrowed(database, wanted)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="scripts/plans", description=__doc__)
    parser.add_argument("--attempts", type=int, default=1_000_000, help="how many to load (default: a million)")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="plans-") as home, postgres.running(Path(home)) as url:
        migrate.upgrade(url)
        with psycopg.connect(url, autocommit=True, row_factory=dict_row) as connection:
            began = time.monotonic()
            connection.execute("SET synchronous_commit = off")
            write_history(connection, asked.attempts)
            size = connection.execute("SELECT pg_size_pretty(pg_database_size(current_database())) AS size").fetchone()
            assert size is not None
            print(f"{asked.attempts:,} attempts written in {time.monotonic() - began:.0f} s, {size['size']}\n")
            found = look(connection)
            wrong = [one.case for one in found if one.wrong]
            plans = [line for case in wrong for line in (case.name, *plan(connection, case))]
    for one in found:
        whole = ", ".join(sorted(one.read)) or "-"
        mark = "WRONG" if one.wrong else ""
        print(f"{one.ms:>9.1f} ms {one.rows:>6} rows  whole: {whole:<16} {one.case.name[:60]:<60} {mark}".rstrip())
    print("", *plans, sep="\n")
    print(f"{len(found)} statements, {len(wrong)} of which read more than they need")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
