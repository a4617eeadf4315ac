"""A whole run: the system, the workload, the chaos monkey, and the auditor at the end."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg

from chaos.auditor import Report, audit
from chaos.cluster import System
from chaos.documents import DOCUMENTS, PlannedJob, planned_jobs
from chaos.monkey import FAULTS, Hit, Monkey, plan
from chaos.workload import Workload
from stepladder import Client

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    Say = Callable[[str], None]

TIMEOUT_S = 240.0
"""From the last fault until an unfinished job counts as stuck."""

HEAD_START = 3
"""One in this many jobs is submitted before the first fault."""

OPEN = "SELECT count(*) FROM jobs WHERE finished_at IS NULL"


@dataclass(frozen=True, slots=True)
class Outcome:
    """``exits`` are the exit codes of ``up`` and the workers after SIGTERM."""

    report: Report
    hits: list[Hit]
    took_s: float
    settled: int
    exits: dict[str, int | None]


def chaos(
    folder: Path,
    jobs: int,
    faults: int,
    seed: int,
    gap_s: float,
    kinds: Sequence[str] = tuple(FAULTS),
    say: Say = print,
) -> Outcome:
    """Runs ``jobs`` jobs under ``faults`` faults, about one every ``gap_s`` seconds, and audits them."""
    with System(folder, seed) as system:
        publish(system)
        say(f"the system runs at {system.url}, in {folder}")
        began = time.monotonic()
        wanted = planned_jobs(jobs, seed, max(1.0, faults * gap_s - 2.0), at_once=jobs // HEAD_START)
        monkey = Monkey(system, seed)
        with Workload(system, wanted) as workload:
            system.wait(TIMEOUT_S, lambda: len(workload.submitted) >= jobs // HEAD_START)
            monkey.run(plan(faults, seed, gap_s, kinds))
            say(f"{faults} faults after {time.monotonic() - began:.0f} s; waiting for the jobs to end")
            system.wait(TIMEOUT_S, lambda: workload.all_submitted and is_over(system))
        took_s = time.monotonic() - began
        exits = system.shut_down()
        report = audit(system.database_url, system.ledger, system.engine_log, workload.submitted, jobs, monkey.hits)
        return Outcome(report, monkey.hits, took_s, workload.settled, exits)


def kill_all_workers_repeatedly(folder: Path, seed: int, jobs: int = 30, say: Say = print) -> float:
    """Kills all workers three times while slow jobs run. Returns the seconds from the last kill to the end."""
    with System(folder, seed) as system:
        publish(system)
        wanted = [PlannedJob(n, "chaos-slow", 0.0, twice=False, early=False, fate="") for n in range(1, jobs + 1)]
        monkey = Monkey(system, seed)
        with Workload(system, wanted) as workload:
            system.wait(TIMEOUT_S, lambda: workload.all_submitted)
            for _ in range(3):
                system.wait(
                    TIMEOUT_S, lambda: bool(rows(system, "SELECT FROM jobs WHERE lease_owner IS NOT NULL LIMIT 1"))
                )
                system.wait(1.5)
                monkey.do("kill_all_workers")
                left = rows(system, OPEN)[0][0]
                say(f"all workers killed with {left} jobs unfinished")
            killed = time.monotonic()
            system.wait(TIMEOUT_S, lambda: is_over(system))
            took_s = time.monotonic() - killed
        report = audit(system.database_url, system.ledger, system.engine_log, workload.submitted, jobs, monkey.hits)
        assert report.ok, report.wrong
        assert report.ends == {("chaos-slow", "succeeded"): jobs}
        return took_s


def publish(system: System) -> None:
    with Client(system.url, retry_for_s=TIMEOUT_S) as client:
        for document in DOCUMENTS:
            client.publish(document)


def is_over(system: System) -> bool:
    return bool(rows(system, OPEN)) and rows(system, OPEN)[0][0] == 0


def rows(system: System, statement: str) -> list[Any]:
    try:
        with psycopg.connect(system.database_url, connect_timeout=5) as connection:
            return connection.execute(statement.encode()).fetchall()
    except psycopg.Error:
        return []
