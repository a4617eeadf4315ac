"""The short form of ``scripts/chaos``: the same system, workload, monkey and auditor, with fewer jobs and faults."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from chaos.auditor import table
from chaos.documents import planned_jobs
from chaos.monkey import FAULTS, plan
from chaos.run import chaos, kill_all_workers_repeatedly

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.long

KINDS = (
    "kill_all_workers",
    "freeze_worker",
    "kill_postgres",
    "kill_up",
    "kill_engine",
    "kill_valkey",
    "cut_engine",
    "notify_often",
)


def test_nothing_is_lost_or_done_twice_whatever_is_killed(tmp_path: Path) -> None:
    outcome = chaos(tmp_path, jobs=25, faults=len(KINDS), seed=11, gap_s=1.5, kinds=KINDS)
    shown = table(outcome.report, outcome.hits, outcome.took_s, FAULTS)
    print(shown)
    assert outcome.report.ok, shown
    assert Counter(hit.kind for hit in outcome.hits) == Counter(KINDS)
    assert sum(count for (name, _), count in outcome.report.ends.items() if name != "chaos-child") == 25
    assert set(outcome.exits.values()) == {0}, "told to end, everything does"


def test_jobs_survive_all_workers_being_killed_three_times(tmp_path: Path) -> None:
    print(f"all succeeded {kill_all_workers_repeatedly(tmp_path, seed=11, jobs=30):.1f} s after the last kill")


@pytest.mark.parametrize("seed", [1, 7])
def test_a_seed_gives_the_same_plan_with_every_kind_of_fault(seed: int) -> None:
    planned = plan(60, seed, 5.0)
    assert planned == plan(60, seed, 5.0)
    assert planned != plan(60, seed + 1, 5.0)
    assert {fault.kind for fault in planned} == set(FAULTS)
    assert planned_jobs(50, seed, 60.0) == planned_jobs(50, seed, 60.0)
