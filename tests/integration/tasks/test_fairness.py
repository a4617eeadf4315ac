"""Who gets the workers and the engine when there is more to do than they can: with real processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stepladder.models.database import Database
from stepladder.models.fair import keep_bounds
from stepladder.testing import Answer, wait_until
from support.plant import PATIENT_S, always, chain

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from support.plant import Plant

    Open = Callable[..., AbstractContextManager[Plant]]

pytestmark = pytest.mark.long

SEVEN = {"n": 7}
ENDED = "SELECT count(*) AS n FROM jobs WHERE principal = %s AND finished_at IS NOT NULL"
MOST_AT_ONCE = """
SELECT count(*) AS n FROM jobs WHERE lease_until > now() AND principal = %s
"""


def ended(plant: Plant, principal: str) -> int:
    return int(plant.rows(ENDED, principal)[0]["n"])


async def test_a_flood_of_one_principal_does_not_keep_another_waiting(plant: Open) -> None:
    with plant(**always(Answer(SEVEN, delay_s=0.05))) as p:
        await p.submit(chain(1), 2000, principal="flood")
        p.start_worker(concurrency=8).wait_until_ready()
        wait_until(lambda: ended(p, "flood") >= 20, PATIENT_S, what="the flood is being worked at")
        before = ended(p, "flood")
        await p.submit(chain(1), 5, principal="small")
        wait_until(lambda: ended(p, "small") == 5, PATIENT_S, what="the small one's jobs have ended")
        assert ended(p, "flood") - before < 500


@pytest.mark.parametrize("bound", [0, 2])
async def test_a_principals_bound_holds_and_skipped_jobs_run_later(plant: Open, bound: int) -> None:
    with plant(**always(Answer(SEVEN, delay_s=0.1))) as p:
        async with Database(p.database_url) as database:
            await keep_bounds(database, {"bounded": bound})
        for _ in range(2):
            p.start_worker(concurrency=10).wait_until_ready()
        await p.submit(chain(2), 8, principal="bounded")
        await p.submit(chain(2), 8, principal="free")
        most = 0

        def over() -> bool:
            nonlocal most
            most = max(most, p.rows(MOST_AT_ONCE, "bounded")[0]["n"])
            return ended(p, "free") == 8 and ended(p, "bounded") == (8 if bound else 0)

        wait_until(over, PATIENT_S, what="all have ended that may")
        assert most == bound


async def test_an_engines_bound_holds_while_workers_are_killed(plant: Open) -> None:
    with plant(**always(Answer(SEVEN, delay_s=0.3))) as p:
        killed, other = (p.start_worker(concurrency=10, engine_concurrency=6) for _ in range(2))
        for worker in (killed, other):
            worker.wait_until_ready()
        await p.submit(chain(4), 60)
        shares = "SELECT count(*) AS n FROM engine_shares WHERE in_use > 0 AND until > now()"
        wait_until(lambda: p.rows(shares)[0]["n"] == 2, PATIENT_S, what="two workers share the slots")
        killed.popen.kill()
        p.start_worker(concurrency=10, engine_concurrency=6).wait_until_ready()
        p.wait_until_all_succeeded()
        assert p.engine.peak_in_flight == 6
        lost = "SELECT DISTINCT outcome, cause FROM attempt_outcomes WHERE outcome <> 'valid'"
        assert p.rows(lost) in ([], [{"outcome": "transport", "cause": "abandoned"}])
