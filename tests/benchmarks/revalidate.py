"""How fast stored answers are judged again: two jobs of the real runner, their rows multiplied, and all of them judged.

Run by ``scripts/bench-revalidate``. Exit code 1 if the unchanged document finds drift, or if a tighter rule flags other
jobs than those that break it.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, LiteralString

import psycopg
from psycopg.sql import SQL, Identifier

from stepladder.embedded import postgres
from stepladder.models import migrate
from stepladder.models.tables import metadata
from stepladder.runner.machines import Machines
from stepladder.schemas.job_filter import JobFilter
from stepladder.services.replays import Replays
from stepladder.services.revalidation import By, Revalidation
from support.site import KIT, RIGHT, USAGE, WRONG, open_site

if TYPE_CHECKING:
    from uuid import UUID

    from support.site import Site

OTHER_USAGE = {"action": "usage_query", "team": "ops"}
EACH = 5
"""Attempts of the two jobs together."""
TIGHTER = {"id": "one-team", "check": "output.team == 'search'", "pointer": "/team", "reason": "must be search"}
OF_JOBS = ("messages", "turns", "attempts", "visits")


def multiply(url: str, times: int) -> None:
    """Copies every job so many times over, each with an id of its own and older than the last."""
    with psycopg.connect(url) as connection:
        connection.execute(
            "CREATE TEMP TABLE copies AS SELECT id AS old, gen_random_uuid() AS new, n"
            " FROM jobs, generate_series(1, %s) AS n",
            [times],
        )
        _copy(connection, "jobs", {"id": "new", "lineage": "new", "created_at": "created_at - n * interval '1 s'"})
        for table in OF_JOBS:
            own = {"job_id": "new"} | ({"id": "gen_random_uuid()"} if table == "attempts" else {})
            _copy(connection, table, own)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ANALYZE")


def _copy(connection: psycopg.Connection, table: str, own: dict[str, LiteralString]) -> None:
    columns = [column.name for column in metadata.tables[table].columns]
    chosen = [SQL(own[name]) if name in own else Identifier(name) for name in columns]
    key = "id" if table == "jobs" else "job_id"
    connection.execute(
        SQL("INSERT INTO {0} ({1}) SELECT {2} FROM {0} JOIN copies ON {0}.{3} = copies.old").format(
            Identifier(table), SQL(", ").join(map(Identifier, columns)), SQL(", ").join(chosen), Identifier(key)
        )
    )


async def measure(site: Site, url: str, attempts: int) -> bool:
    await site.run(USAGE, WRONG, RIGHT)
    await site.run(OTHER_USAGE, RIGHT, value={"team": "ops"})
    await asyncio.to_thread(multiply, url, max(0, attempts // EACH - 1))
    replays = Replays(site.store.database, site.store, Machines(site.store, KIT))
    began = time.perf_counter()
    same = await Revalidation(site.store, replays, By()).of(JobFilter())
    seconds = time.perf_counter() - began
    print(
        f"{same.judged:,} attempts of {same.jobs_seen:,} jobs in {seconds:.1f} s: {same.judged / seconds:,.0f} a second"
    )
    print(f"unchanged document: {same.total} drift")
    began = time.perf_counter()
    changes = {"states.usage.rules": [TIGHTER]}
    tighter = await Revalidation(site.store, replays, By(changes=changes)).of(JobFilter())
    seconds = time.perf_counter() - began
    flagged, broken = set(tighter.jobs["rejected"]), await _of_ops(site)
    exact = flagged == broken and tighter.changed_jobs == len(broken)
    print(f"tighter rule: {len(flagged):,} jobs flagged of {len(broken):,} that break it, in {seconds:.1f} s")
    return same.total == 0 and exact


async def _of_ops(site: Site) -> set[UUID]:
    rows = await site.database.rows("SELECT id FROM jobs WHERE input ->> 'team' = 'ops'", {})
    return {row["id"] for row in rows}


async def run(url: str, attempts: int) -> bool:
    async with open_site(url) as site:
        return await measure(site, url, attempts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--attempts", type=int, default=10_000)
    attempts: int = parser.parse_args().attempts
    with tempfile.TemporaryDirectory() as home, postgres.running(Path(home)) as url:
        migrate.upgrade(url)
        return 0 if asyncio.run(run(url, attempts)) else 1


if __name__ == "__main__":
    sys.exit(main())
