"""The page of a running job follows it until it ends."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

import httpx

from stepladder.api.serve import END_WITHIN_S
from stepladder.testing import Answer
from support.site import RIGHT, USAGE, open_site

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from .conftest import Visit, Visitor


async def numbers(lines: AsyncIterator[str]) -> AsyncIterator[int]:
    async for line in lines:
        if line.startswith("data: "):
            yield int(line.removeprefix("data: "))


async def test_the_stream_follows_the_job_to_its_end(visitor: Visitor) -> None:
    job = await visitor.site.submit()
    page = await visitor.job(job)
    follow = re.search(r'data-follow="([^"]+)"', page)
    assert follow is not None
    async with visitor.client.stream("GET", follow[1]) as answer, asyncio.timeout(30):
        assert answer.headers["content-type"].startswith("text/event-stream")
        told = numbers(answer.aiter_lines())
        await visitor.site.drive(job, USAGE, RIGHT)
        assert await anext(told) > 1
        part = await visitor.page(f"/jobs/{job}/part")
        assert "<html" not in part
        assert 'id="visit-1"' in part
        assert "data-final" not in part
        await visitor.post(f"/jobs/{job}/cancel", page)
        await visitor.site.drive(job)
        last = [number async for number in told][-1]  # which ends
    overview = await visitor.site.reads.overview(job)
    assert overview is not None
    assert last == overview.event_count
    assert "data-final" in await visitor.page(f"/jobs/{job}/part")
    gone = await visitor.client.get(f"/jobs/{job}/follow", headers={"Last-Event-ID": str(last)})
    assert gone.status_code == 204, "by which a browser knows not to come back"


async def test_an_idle_stream_sends_heartbeats(visit: Visit) -> None:
    visitor = await visit(heartbeat_s=0.05)
    job = await visitor.site.submit()
    async with visitor.client.stream("GET", f"/jobs/{job}/follow?after=1") as answer, asyncio.timeout(10):
        lines = answer.aiter_lines()
        while not (await anext(lines)).startswith(": still here"):
            pass


async def test_a_stream_ends_with_its_server(database_url: str) -> None:
    async with (
        asyncio.timeout(END_WITHIN_S / 2),
        httpx.AsyncClient(timeout=30) as client,
        open_site(database_url) as site,
    ):
        job = await site.submit()
        async with client.stream("GET", f"{site.url}/jobs/{job}/follow") as answer:
            lines = answer.aiter_lines()
            while not (await anext(lines)).startswith("data: "):
                pass
            site.end()
            assert "data" not in "".join([line async for line in lines])


async def test_current_work_is_announced_in_a_live_region(visitor: Visitor) -> None:
    job = await visitor.site.submit()
    async with visitor.site.worker(USAGE, Answer(None, delay_s=3600)) as driver:
        driving = asyncio.create_task(driver.drive(job))
        await visitor.site.until(job, lambda found: found.attempts == 2)
        page = await visitor.job(job)
        driving.cancel()
        await asyncio.wait((driving,))
    said = re.search(r'role="status" aria-live="polite"><p id="doing"[^>]*>.*?</i> ([^<]*)</p>', page)
    assert said is not None
    assert said[1].startswith("Running: turn 2")
    assert "in flight" in page
