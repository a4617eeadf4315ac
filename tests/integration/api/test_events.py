"""The history as a stream: it follows, goes on where it was left, and ends."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any
from uuid import UUID

import httpx

from stepladder.api.app import create_app
from stepladder.models.database import Database
from stepladder.testing import Answer, eventually

from .conftest import KIT, problem, served

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from .conftest import Api, Start

STREAM = {"Accept": "text/event-stream"}


async def events(answer: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    """Events as a browser reads them; a comment comes as ``{"comment": text}``."""
    event: dict[str, Any] = {}
    async for line in answer.aiter_lines():
        if not line:
            if "data" in event:
                yield event
            event = {}
        elif line.startswith(":"):
            yield {"comment": line[1:].strip()}
        else:
            name, _, text = line.partition(": ")
            event[name] = json.loads(text) if name == "data" else text


async def test_a_stream_follows_a_job_to_its_last_event(bill: Api) -> None:
    job = await bill.submit()
    seen: list[dict[str, Any]] = []
    async with (
        bill.client.stream("GET", f"/v1/jobs/{job['id']}/events", headers=STREAM) as answer,
        bill.worker(Answer('{"total": 36}')) as worker,
    ):
        assert answer.headers["content-type"].startswith("text/event-stream")
        driving = asyncio.ensure_future(worker.drive(UUID(job["id"])))
        async for event in events(answer):
            seen.append(event)
            if event["event"] == "wait_started":
                await driving
                await bill.signal(job["id"], {"action": "approve"})
                driving = asyncio.ensure_future(worker.drive(UUID(job["id"])))
        await driving
    listed = await bill.events(job["id"])
    assert [event["data"] for event in seen] == listed
    assert [event["id"] for event in seen] == [str(n) for n in range(1, len(listed) + 1)]
    assert seen[-1]["event"] == "job_succeeded"


async def test_a_stream_resumes_after_the_last_event_id(bill: Api) -> None:
    job = await bill.submit()
    await bill.client.post(f"/v1/jobs/{job['id']}/pause")
    await bill.client.post(f"/v1/jobs/{job['id']}/unpause")
    async with bill.client.stream(
        "GET", f"/v1/jobs/{job['id']}/events", headers=STREAM | {"Last-Event-ID": "1"}
    ) as answer:
        found = events(answer)
        assert [(await anext(found))["event"] for _ in range(2)] == ["job_paused", "job_unpaused"]
        await bill.client.post(f"/v1/jobs/{job['id']}/cancel")
        await bill.drive(job["id"])
        rest = [event["event"] async for event in found]
    assert rest == ["job_cancelled"]
    count = (await bill.job(job["id"]))["event_count"]
    done = await bill.client.get(f"/v1/jobs/{job['id']}/events", headers=STREAM | {"Last-Event-ID": str(count)})
    assert (done.status_code, done.content) == (204, b"")


async def test_an_idle_stream_sends_heartbeats(start: Start) -> None:
    api = await start(heartbeat_s=0.05)
    await api.publish()
    job = await api.submit()
    async with api.client.stream("GET", f"/v1/jobs/{job['id']}/events", headers=STREAM) as answer:
        found = events(answer)
        assert (await anext(found))["event"] == "job_created"
        assert (await anext(found))["comment"]
        assert (await anext(found))["comment"]


async def test_an_impossible_event_id_is_a_problem(bill: Api) -> None:
    job = await bill.submit()
    for wrong in ("x", "-1", "1e3", "٣", "9" * 40):
        headers = httpx.Headers(STREAM | {"Last-Event-ID": wrong}, encoding="utf-8")
        problem(await bill.client.get(f"/v1/jobs/{job['id']}/events", headers=headers), 422)


async def test_forty_streams_and_waits_hold_no_connection(bill: Api) -> None:
    """Four times as many as there are connections."""
    job = await bill.submit()

    async def follow() -> list[str]:
        async with bill.client.stream("GET", f"/v1/jobs/{job['id']}/events", headers=STREAM) as answer:
            return [event["event"] async for event in events(answer)]

    following = [asyncio.ensure_future(follow()) for _ in range(40)]
    await bill.client.post(f"/v1/jobs/{job['id']}/cancel")
    await bill.drive(job["id"])
    assert {tuple(seen) for seen in await asyncio.gather(*following)} == {("job_created", "job_cancelled")}


async def test_a_stopping_server_ends_its_streams_and_waits_cleanly(start: Start) -> None:
    api = await start()
    await api.publish()
    job = await api.submit()

    def notify(_: object) -> None: ...

    app = create_app(Database(api.database_url), api.store, api.reads, KIT, notify)
    async with served(app) as url:
        request = api.client.build_request("GET", f"{url}/v1/jobs/{job['id']}/events", headers=STREAM)
        stream = events(await api.client.send(request, stream=True))
        assert (await anext(stream))["event"] == "job_created"
        waiting = asyncio.ensure_future(api.client.get(f"{url}/v1/jobs/{job['id']}?wait=50"))
        await eventually(lambda: len(app._watch._watchers) == 2)
    assert (await waiting).json()["status"] == "queued"
    rest = [event async for event in stream]
    assert all("comment" in event for event in rest)  # no error, and no half of an event
