"""Jobs over HTTP: submitted, seen through their turns, and found again."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from stepladder.api.access import parse_keys
from stepladder.schemas import history, responses
from stepladder.testing import Answer

from .conftest import GOOD, problem

if TYPE_CHECKING:
    from .conftest import Api, Start


WRONG, RIGHT = Answer('{ "total": 35 }', chunk_chars=4), Answer('{"total": 36}')


async def test_a_job_and_its_history_from_submission_to_success(bill: Api) -> None:
    answer = await bill.client.post("/v1/jobs", json=GOOD | {"metadata": {"order": "4711"}, "priority": 5})
    assert answer.status_code == 202
    job = answer.json()
    assert answer.headers["location"] == f"/v1/jobs/{job['id']}"
    assert (job["workflow"], job["version"], job["status"], job["input"]) == ("bill", 1, "queued", {"team": "search"})
    assert bill.notified == [UUID(job["id"])]

    job = await bill.drive(job["id"], WRONG, RIGHT)
    assert (job["status"], job["state"], job["waiting_for"]) == ("waiting", "approve", "approval")
    responses.Job.model_validate(job)
    assert job["wait"]["show"] == {"total": 36}

    [turn] = (await bill.client.get(f"/v1/jobs/{job['id']}/turns")).json()
    assert (turn["ordinal"], turn["state"], turn["outcome"], turn["output"]) == (1, "sum", "valid", {"total": 36})
    history.TurnVisit.model_validate(turn)
    first, second = turn["attempts"]
    assert (first["outcome"], first["cause"], second["outcome"]) == ("semantic", "arithmetic", "valid")
    assert first["rungs"] == {"termination": "passed", "parse": "passed", "schema": "passed", "semantic": "failed"}
    assert first["errors"] == [{"pointer": "/total", "reason": "must be hours times 3", "source": "arithmetic"}]
    assert first["engine"] == {"model": "scripted", "version": "0.32.0", "backend": None}

    signal = await bill.signal(job["id"], {"action": "approve"})
    assert (signal.status_code, signal.json()["status"]) == (202, "accepted")
    assert bill.notified[-1] == UUID(job["id"])
    done = await bill.drive(job["id"])
    assert (done["status"], done["result"], done["failure"], done["wait"]) == ("succeeded", {"total": 36}, None, None)
    assert done["finished_at"].endswith("Z")
    events = await bill.events(job["id"])
    assert [event["ordinal"] for event in events] == list(range(1, done["event_count"] + 1))
    assert (events[0]["kind"], events[-1]["kind"]) == ("job_created", "job_succeeded")
    later = (await bill.client.get(f"/v1/jobs/{job['id']}/events?after=2&limit=2")).json()
    assert later == events[2:4]


async def test_the_raw_answer_is_the_bytes_received(bill: Api) -> None:
    job = await bill.submit()
    await bill.drive(job["id"], WRONG, RIGHT)
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


async def test_a_deadline_and_a_budget_of_0_are_limits(bill: Api) -> None:
    job = await bill.submit(deadline_s=0, token_budget=0)
    assert job["deadline_at"] == job["created_at"]
    assert job["token_budget"] == 0
    assert (await bill.drive(job["id"], RIGHT))["failure"] in ("deadline", "token_budget")


async def test_numbers_and_strings_round_trip_exactly(api: Api) -> None:
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
    await bill.drive(job["id"])
    assert (await waiting).json()["status"] == "cancelled"


async def test_wait_returns_the_job_unchanged_at_its_timeout(bill: Api) -> None:
    job = await bill.submit()
    answer = await bill.client.get(f"/v1/jobs/{job['id']}?wait=0.3")
    assert (answer.status_code, answer.json()["status"]) == (200, "queued")


@pytest.mark.parametrize("count", [1, 1000])
async def test_a_batch_is_written_in_order(bill: Api, count: int) -> None:
    jobs = [GOOD | {"input": {"team": f"team {n}"}} for n in range(count)]
    answer = await bill.client.post("/v1/jobs/batch", json={"jobs": jobs})
    assert answer.status_code == 202
    written = answer.json()["jobs"]
    assert [job["input"]["team"] for job in written] == [f"team {n}" for n in range(count)]
    counts = await bill.counts()
    assert (counts["jobs"], counts["events"]) == (count, count)
    assert bill.notified == [UUID(job["id"]) for job in written]


KEY = {"Idempotency-Key": "order 4711"}
BATCH = {"jobs": [GOOD, GOOD]}


async def test_the_same_key_and_body_again_is_the_same_job(bill: Api) -> None:
    first = await bill.client.post("/v1/jobs", json=GOOD, headers=KEY)
    again = await bill.client.post("/v1/jobs", json=dict(reversed(GOOD.items())), headers=KEY)
    assert (first.status_code, again.status_code) == (202, 200)
    assert first.json()["id"] == again.json()["id"]
    assert (await bill.counts())["jobs"] == 1
    assert len(bill.notified) == 1


async def test_the_key_finds_its_job_after_it_and_its_workflow_changed(bill: Api) -> None:
    first = await bill.client.post("/v1/jobs", json=GOOD, headers=KEY)
    await bill.rows("UPDATE workflows SET retired = true")
    await bill.client.post(f"/v1/jobs/{first.json()['id']}/pause")
    again = await bill.client.post("/v1/jobs", json=GOOD, headers=KEY)
    assert (again.status_code, again.json()["id"], again.json()["status"]) == (200, first.json()["id"], "paused")


@pytest.mark.parametrize("body", [GOOD | {"priority": 1}, {"workflow": "nobody", "input": {}}])
async def test_the_same_key_with_another_body_is_a_problem(bill: Api, body: object) -> None:
    await bill.client.post("/v1/jobs", json=GOOD, headers=KEY)
    before = await bill.counts()
    found = problem(await bill.client.post("/v1/jobs", json=body, headers=KEY), 422)
    assert found["type"].endswith("idempotency-key-reused")
    assert await bill.counts() == before


async def test_a_batch_has_a_key_too_and_an_invalid_one_leaves_it_unused(bill: Api) -> None:
    bad = {"jobs": [GOOD, GOOD | {"input": {}}]}
    problem(await bill.client.post("/v1/jobs/batch", json=bad, headers=KEY), 422)
    assert (await bill.counts())["idempotency_keys"] == 0
    first = await bill.client.post("/v1/jobs/batch", json=BATCH, headers=KEY)
    again = await bill.client.post("/v1/jobs/batch", json=BATCH, headers=KEY)
    assert (first.status_code, again.status_code) == (202, 200)
    assert [job["id"] for job in first.json()["jobs"]] == [job["id"] for job in again.json()["jobs"]]
    problem(await bill.client.post("/v1/jobs", json=GOOD, headers=KEY), 422)
    assert (await bill.counts())["jobs"] == 2


async def test_of_concurrent_submissions_under_one_key_one_body_wins(bill: Api) -> None:
    bodies = [GOOD | {"priority": n % 2} for n in range(20)]
    answers = await asyncio.gather(*(bill.client.post("/v1/jobs", json=body, headers=KEY) for body in bodies))
    codes = [answer.status_code for answer in answers]
    assert (codes.count(202), codes.count(200), codes.count(422)) == (1, 9, 10)
    assert (await bill.counts())["jobs"] == 1


async def test_principals_do_not_share_keys(start: Start) -> None:
    text = '[{"name": "a", "key": "aa", "scopes": ["*"]}, {"name": "b", "key": "bb", "scopes": ["*"]}]'
    api = await start(keys=parse_keys(text))
    ids = set()
    for key in ("aa", "bb"):
        api.client.headers["Authorization"] = f"Bearer {key}"
        await api.publish()
        answer = await api.client.post("/v1/jobs", json=GOOD, headers=KEY)
        assert answer.status_code == 202
        ids.add(answer.json()["id"])
    assert len(ids) == 2


async def test_a_key_expires_after_a_day_and_is_deleted(bill: Api) -> None:
    first = await bill.client.post("/v1/jobs", json=GOOD, headers=KEY)
    await bill.client.post("/v1/jobs", json=GOOD, headers={"Idempotency-Key": "another"})
    await bill.rows("UPDATE idempotency_keys SET created_at = created_at - interval '24 hours'")
    second = await bill.client.post("/v1/jobs", json=GOOD | {"priority": 1}, headers=KEY)
    assert second.status_code == 202
    assert second.json()["id"] != first.json()["id"]
    assert [row["key"] for row in await bill.rows("SELECT key FROM idempotency_keys")] == [KEY["Idempotency-Key"]]
    again = await bill.client.post("/v1/jobs", json=GOOD | {"priority": 1}, headers=KEY)
    assert (again.status_code, again.json()["id"]) == (200, second.json()["id"])
