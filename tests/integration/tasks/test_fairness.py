"""Who gets the workers and the engine when there is more to do than they can: with real processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stepladder.models.database import Database
from stepladder.models.fair import keep_bounds
from stepladder.testing import Answer, wait_until
from support.deployment import PATIENT_S, always, chain

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from support.deployment import Deployment

    Open = Callable[..., AbstractContextManager[Deployment]]

pytestmark = pytest.mark.long

SEVEN = {"n": 7}
ENDED = "SELECT count(*) AS n FROM jobs WHERE principal = %s AND finished_at IS NOT NULL"
MOST_AT_ONCE = """
SELECT count(*) AS n FROM jobs WHERE lease_until > now() AND principal = %s
"""


def ended(deployment: Deployment, principal: str) -> int:
    return int(deployment.rows(ENDED, principal)[0]["n"])


async def test_a_flood_of_one_principal_does_not_keep_another_waiting(deployment: Open) -> None:
    with deployment(**always(Answer(SEVEN, delay_s=0.05))) as d:
        await d.submit(chain(1), 2000, principal="flood")
        d.start_worker(concurrency=8).wait_until_ready()
        wait_until(lambda: ended(d, "flood") >= 20, PATIENT_S, what="the flood is being worked at")
        before = ended(d, "flood")
        await d.submit(chain(1), 5, principal="small")
        wait_until(lambda: ended(d, "small") == 5, PATIENT_S, what="the small one's jobs have ended")
        assert ended(d, "flood") - before < 500


@pytest.mark.parametrize("bound", [0, 2])
async def test_a_principals_bound_holds_and_skipped_jobs_run_later(deployment: Open, bound: int) -> None:
    with deployment(**always(Answer(SEVEN, delay_s=0.1))) as d:
        async with Database(d.database_url) as database:
            await keep_bounds(database, {"bounded": bound})
        for _ in range(2):
            d.start_worker(concurrency=10).wait_until_ready()
        await d.submit(chain(2), 8, principal="bounded")
        await d.submit(chain(2), 8, principal="free")
        most = 0

        def over() -> bool:
            nonlocal most
            most = max(most, d.rows(MOST_AT_ONCE, "bounded")[0]["n"])
            return ended(d, "free") == 8 and ended(d, "bounded") == (8 if bound else 0)

        wait_until(over, PATIENT_S, what="all have ended that may")
        assert most == bound


async def test_an_engines_bound_holds_while_workers_are_killed(deployment: Open) -> None:
    with deployment(**always(Answer(SEVEN, delay_s=0.3))) as d:
        killed, other = (d.start_worker(concurrency=10, engine_concurrency=6) for _ in range(2))
        for worker in (killed, other):
            worker.wait_until_ready()
        await d.submit(chain(4), 60)
        shares = "SELECT count(*) AS n FROM engine_shares WHERE in_use > 0 AND until > now()"
        wait_until(lambda: d.rows(shares)[0]["n"] == 2, PATIENT_S, what="two workers share the slots")
        killed.popen.kill()
        d.start_worker(concurrency=10, engine_concurrency=6).wait_until_ready()
        d.wait_until_all_succeeded()
        assert d.engine.peak_in_flight == 6
        lost = "SELECT DISTINCT outcome, cause FROM attempt_outcomes WHERE outcome <> 'valid'"
        assert d.rows(lost) in ([], [{"outcome": "transport", "cause": "abandoned"}])
