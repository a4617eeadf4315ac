"""A live worker loses no lease: not to a busy loop, not to its own claims, not to a commit under way."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import psycopg

import stepladder
from stepladder.runner.runner import SliceEnd
from stepladder.testing import Answer, eventually

from .conftest import asking

if TYPE_CHECKING:
    from .conftest import Open

LOOK = {"look": {"tool": "look", "arguments": {}, "effect": "read", "next": {"ok": "done", "error": "broken"}}}


async def test_a_loop_that_is_busy_loses_no_lease(works: Open) -> None:
    @stepladder.tool("look", effect="read")
    async def look() -> None:
        time.sleep(1.5)  # noqa: ASYNC251 -- three leases long, as no async tool should

    w = await works()
    job = await w.submit(LOOK)
    assert (await w.runner(lease_s=0.5).run_slice(job)).end is SliceEnd.FINISHED
    assert (await w.rows("SELECT fence FROM jobs WHERE id = %s", job)) == [{"fence": 2}], "one claim, one release"


async def test_no_process_takes_over_what_it_runs_itself(works: Open) -> None:
    w = await works(Answer({"n": 1}, delay_s=1.0))
    job = await w.submit({"only": asking()})
    runner = w.runner(lease_s=60)
    running = asyncio.create_task(runner.run_slice(job))
    await eventually(lambda: w.engine.in_flight == 1, what="the request is on its way")
    await w.expire_lease(job)
    assert (await runner.run_slice(job)).end is SliceEnd.IDLE
    assert (await running).end is SliceEnd.FINISHED
    assert await w.outcomes(job) == [("valid", None)]


async def test_a_row_that_is_locked_for_a_while_loses_no_lease(works: Open) -> None:
    w = await works(Answer({"n": 1}, delay_s=1.0))
    job = await w.submit({"only": asking()})
    running = asyncio.create_task(w.runner(lease_s=1.0).run_slice(job))

    async def half_spent() -> bool:
        query = "SELECT lease_until < clock_timestamp() + interval '0.5 s' AS so FROM jobs WHERE id = %s"
        return bool((await w.rows(query, job))[0]["so"])

    await eventually(lambda: w.engine.in_flight == 1, what="the request is on its way")
    async with await psycopg.AsyncConnection.connect(w.database_url) as other:
        await other.execute("SELECT FROM jobs WHERE id = %s FOR UPDATE", (job,))
        await eventually(half_spent, what="the heartbeats find the row locked")
    assert (await running).end is SliceEnd.FINISHED
    assert await w.outcomes(job) == [("valid", None)]
