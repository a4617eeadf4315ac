"""Orders of many replays, handed out by workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stepladder.models.bulks import find_bulk
from stepladder.models.database import Database
from stepladder.schemas.actor import LOCAL
from stepladder.schemas.replay import Mode
from stepladder.services.bulks import order
from stepladder.services.replays import Wanted
from stepladder.testing import Answer, eventually, wait_until
from support.deployment import PATIENT_S, chain

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from stepladder.testing import Line, RecordedRequest
    from support.deployment import Deployment

    Open = Callable[..., AbstractContextManager[Deployment]]

pytestmark = pytest.mark.long

JOBS = 5
WHERE = {"workflow": ["chain"], "status": ["failed"]}


async def test_workers_replay_each_job_of_an_order_once(deployment: Open) -> None:
    seen: list[str] = []

    def bad_at_first(request: RecordedRequest) -> Line:
        seen.append(request.headers["x-request-id"])
        return Answer({"n": 5000}) if len(seen) <= JOBS else Answer({"n": 7}, delay_s=0.1)

    with deployment(respond=bad_at_first) as d:
        for _ in range(2):
            d.start_worker(concurrency=8).wait_until_ready()
        await d.submit(chain(1, retry={"attempts": 1}), JOBS)
        wait_until(lambda: d.statuses() == {"failed"}, PATIENT_S, what="all have failed")
        async with Database(d.database_url) as database:
            ordered = [
                await order(database, WHERE, Wanted(Mode.RESUME), LOCAL, "once", concurrency=2) for _ in range(2)
            ]
            [(bulk, first), (same, second)] = [one for one in ordered if one is not None]
            assert (bulk.total, first, same.id, second) == (JOBS, False, bulk.id, True)
            most = 0

            async def over() -> bool:
                nonlocal most
                found = await find_bulk(database, bulk.id)
                assert found is not None
                most = max(most, sum(found.jobs.get(status, 0) for status in ("queued", "running")))
                return found.state != "running"

            await eventually(over, PATIENT_S, what="the order is done")
            found = await find_bulk(database, bulk.id)
        assert found is not None
        assert (found.state, found.jobs, found.refused) == ("done", {"succeeded": JOBS}, {})
        replayed = d.rows("SELECT DISTINCT replay_of FROM jobs WHERE replay_of IS NOT NULL")
        assert (len(replayed), len(seen)) == (JOBS, 2 * JOBS)
        assert 0 < most <= 2
