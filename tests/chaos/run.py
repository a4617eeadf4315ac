"""A whole run: a town, people, the monkey, and the auditor at the end."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg

from chaos.auditor import Report, audit
from chaos.documents import DOCUMENTS, Wish, wishes
from chaos.monkey import FAULTS, Hit, Monkey, plan
from chaos.people import People
from chaos.town import Town
from stepladder import Client

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    Say = Callable[[str], None]

PATIENT_S = 240.0
"""From the last fault to the end of the last job, before it counts as stuck."""

HEAD_START = 3
"""One of so many jobs is there before the first fault."""

OPEN = "SELECT count(*) FROM jobs WHERE finished_at IS NULL"


@dataclass(frozen=True, slots=True)
class Outcome:
    """``exits`` are the codes with which ``up`` and the workers ended in good order at last."""

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
    """Runs ``jobs`` under ``faults``, one about every ``gap_s`` seconds, and gives what the auditor found."""
    with Town(folder, seed) as town:
        publish(town)
        say(f"the town stands at {town.url}, in {folder}")
        began = time.monotonic()
        wanted = wishes(jobs, seed, max(1.0, faults * gap_s - 2.0), at_once=jobs // HEAD_START)
        monkey = Monkey(town, seed)
        with People(town, wanted) as people:
            town.wait(PATIENT_S, lambda: len(people.submitted) >= jobs // HEAD_START)
            monkey.rage(plan(faults, seed, gap_s, kinds))
            say(f"{faults} faults after {time.monotonic() - began:.0f} s; now all may come to its end")
            town.wait(PATIENT_S, lambda: people.all_submitted and is_over(town))
        took_s = time.monotonic() - began
        exits = town.end_in_good_order()
        report = audit(town.database_url, town.ledger, town.engine_log, people.submitted, jobs, monkey.hits)
        return Outcome(report, monkey.hits, took_s, people.settled, exits)


def three_massacres(folder: Path, seed: int, jobs: int = 30, say: Say = print) -> float:
    """SIGKILL of all workers three times while jobs of five slow turns run: the seconds from the last to the end."""
    with Town(folder, seed) as town:
        publish(town)
        wanted = [Wish(n, "chaos-slow", 0.0, twice=False, early=False, fate="") for n in range(1, jobs + 1)]
        monkey = Monkey(town, seed)
        with People(town, wanted) as people:
            town.wait(PATIENT_S, lambda: people.all_submitted)
            for _ in range(3):
                town.wait(PATIENT_S, lambda: bool(rows(town, "SELECT FROM jobs WHERE lease_owner IS NOT NULL LIMIT 1")))
                town.wait(1.5)
                monkey.do("kill_all_workers")
                left = rows(town, OPEN)[0][0]
                say(f"all workers killed, with {left} jobs under way")
            killed = time.monotonic()
            town.wait(PATIENT_S, lambda: is_over(town))
            took_s = time.monotonic() - killed
        report = audit(town.database_url, town.ledger, town.engine_log, people.submitted, jobs, monkey.hits)
        assert report.ok, report.wrong
        assert report.ends == {("chaos-slow", "succeeded"): jobs}
        return took_s


def publish(town: Town) -> None:
    with Client(town.url, retry_for_s=PATIENT_S) as client:
        for document in DOCUMENTS:
            client.publish(document)


def is_over(town: Town) -> bool:
    return bool(rows(town, OPEN)) and rows(town, OPEN)[0][0] == 0


def rows(town: Town, statement: str) -> list[Any]:
    try:
        with psycopg.connect(town.database_url, connect_timeout=5) as connection:
            return connection.execute(statement.encode()).fetchall()
    except psycopg.Error:
        return []
