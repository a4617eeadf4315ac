"""Jobs over HTTP: submitted, seen through their turns, and found again."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from stepladder.schemas import history, responses
from stepladder.testing import Answer

from .conftest import GOOD

if TYPE_CHECKING:
    from .conftest import Api

WRONG, RIGHT = Answer('{ "total": 35 }', chunk_chars=4), Answer('{"total": 36}')


async def test_a_job_goes_its_way_and_every_step_can_be_seen(bill: Api) -> None:
    answer = await bill.client.post("/v1/jobs", json=GOOD | {"metadata": {"order": "4711"}, "priority": 5})
    assert answer.status_code == 202
    job = answer.json()
    assert answer.headers["location"] == f"/v1/jobs/{job['id']}"
    assert (job["workflow"], job["version"], job["status"], job["input"]) == ("bill", 1, "queued", {"team": "search"})
    assert bill.notified == [UUID(job["id"])]

    async with bill.worker(WRONG, RIGHT) as worker:
        await worker.drive(UUID(job["id"]))
    job = await bill.job(job["id"])
    assert (job["status"], job["state"], job["waiting_for"]) == ("waiting", "approve", "approval")
    responses.Job.model_validate(job)
    assert job["wait"]["show"] == {"total": 36}

    [turn] = (await bill.client.get(f"/v1/jobs/{job['id']}/turns")).json()
    assert (turn["ordinal"], turn["state"], turn["outcome"], turn["output"]) == (1, "sum", "valid", {"total": 36})
    history.Turn.model_validate(turn)
    first, second = turn["attempts"]
    assert (first["outcome"], first["cause"], second["outcome"]) == ("semantic", "arithmetic", "valid")
    assert first["rungs"] == {"termination": "passed", "parse": "passed", "schema": "passed", "semantic": "failed"}
    assert first["errors"] == [{"pointer": "/total", "reason": "must be hours times 3", "source": "arithmetic"}]
    assert first["engine"] == {"model": "scripted", "version": "0.32.0", "backend": None}

    signal = await bill.client.post(f"/v1/jobs/{job['id']}/signals/approval", json={"action": "approve"})
    assert (signal.status_code, signal.json()["status"]) == (202, "accepted")
    assert bill.notified[-1] == UUID(job["id"])
    async with bill.worker() as worker:
        await worker.drive(UUID(job["id"]))
    done = await bill.job(job["id"])
    assert (done["status"], done["result"], done["failure"], done["wait"]) == ("succeeded", {"total": 36}, None, None)
    assert done["finished_at"].endswith("Z")
    events = (await bill.client.get(f"/v1/jobs/{job['id']}/events")).json()
    assert [event["ordinal"] for event in events] == list(range(1, done["event_count"] + 1))
    assert (events[0]["kind"], events[-1]["kind"]) == ("job_created", "job_succeeded")
    later = (await bill.client.get(f"/v1/jobs/{job['id']}/events?after=2&limit=2")).json()
    assert later == events[2:4]


async def test_the_raw_answer_is_the_bytes_as_they_came_though_they_are_stored_compressed(bill: Api) -> None:
    job = await bill.submit()
    async with bill.worker(WRONG, RIGHT) as worker:
        await worker.drive(UUID(job["id"]))
    [turn] = (await bill.client.get(f"/v1/jobs/{job['id']}/turns")).json()
    attempt = turn["attempts"][0]
    raw = await bill.client.get(f"/v1/attempts/{attempt['id']}/raw")
    assert raw.status_code == 200
    assert raw.headers["content-type"] == "application/octet-stream"
    assert raw.headers["content-disposition"].startswith("attachment;")
    assert raw.headers["x-content-type-options"] == "nosniff"
    assert "content-encoding" not in raw.headers
    assert raw.content.startswith(b"data: {")
    said = [json.loads(line[6:]) for line in raw.text.splitlines() if line.startswith("data: {")]
    assert (
        "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in said if chunk["choices"]) == WRONG.content
    )
    [row] = await bill.rows("SELECT raw_encoding FROM attempts WHERE id = %s", attempt["id"])
    assert row["raw_encoding"] == "gzip"


async def test_a_job_may_be_given_bounds_of_its_own(bill: Api) -> None:
    job = await bill.submit(deadline_s=0, token_budget=0)
    assert job["deadline_at"] == job["created_at"]
    assert job["token_budget"] == 0
    async with bill.worker(RIGHT) as worker:
        await worker.drive(UUID(job["id"]))
    assert (await bill.job(job["id"]))["failure"] in ("deadline", "token_budget")


async def test_numbers_and_texts_come_back_to_the_letter(api: Api) -> None:
    await api.publish("name: any\nversion: 1\ninput: {}\nstart: e\nstates: {e: {end: succeeded, result: input}}")
    value: dict[str, Any] = {"a": [2**60, 1.0, -0.0, "\0", "😀", None, True], "b": {"": {}}}
    job = await api.submit(workflow="any", input=value)
    assert repr(job["input"]) == repr(value)
    assert repr((await api.job(job["id"]))["input"]) == repr(value)


async def test_wait_returns_as_soon_as_the_job_has_ended(bill: Api) -> None:
    job = await bill.submit()
    waiting = asyncio.ensure_future(bill.client.get(f"/v1/jobs/{job['id']}?wait=30"))
    await bill.client.post(f"/v1/jobs/{job['id']}/cancel")
    assert not waiting.done()
    async with bill.worker() as worker:
        await worker.drive(UUID(job["id"]))
    assert (await waiting).json()["status"] == "cancelled"


async def test_wait_gives_the_job_as_it_stands_once_the_seconds_have_passed(bill: Api) -> None:
    job = await bill.submit()
    answer = await bill.client.get(f"/v1/jobs/{job['id']}?wait=0.3")
    assert (answer.status_code, answer.json()["status"]) == (200, "queued")


async def test_those_who_wait_hold_no_connection(bill: Api) -> None:
    job = await bill.submit()
    limits = 40
    waiting = [asyncio.ensure_future(bill.client.get(f"/v1/jobs/{job['id']}?wait=30")) for _ in range(limits)]
    assert (await bill.client.get("/readyz")).status_code == 200  # with four times as many waiting as connections
    assert (await bill.job(job["id"]))["status"] == "queued"
    await bill.client.post(f"/v1/jobs/{job['id']}/cancel")
    async with bill.worker() as worker:
        await worker.drive(UUID(job["id"]))
    assert {answer.json()["status"] for answer in await asyncio.gather(*waiting)} == {"cancelled"}


@pytest.mark.parametrize("count", [1, 1000])
async def test_a_batch_is_written_whole_and_in_its_order(bill: Api, count: int) -> None:
    jobs = [GOOD | {"input": {"team": f"team {n}"}} for n in range(count)]
    answer = await bill.client.post("/v1/jobs/batch", json={"jobs": jobs})
    assert answer.status_code == 202
    written = answer.json()["jobs"]
    assert [job["input"]["team"] for job in written] == [f"team {n}" for n in range(count)]
    counts = await bill.counts()
    assert (counts["jobs"], counts["events"]) == (count, count)
    assert bill.notified == [UUID(job["id"]) for job in written]
