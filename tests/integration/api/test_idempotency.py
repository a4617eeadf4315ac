"""The same thing said twice is done once, whoever comes at the same moment."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from stepladder.api.access import parse_keys

from .conftest import GOOD, problem

if TYPE_CHECKING:
    from .conftest import Api, Start

KEY = {"Idempotency-Key": "order 4711"}
BATCH = {"jobs": [GOOD, GOOD]}


async def test_the_same_key_and_body_again_is_the_same_job(bill: Api) -> None:
    first = await bill.client.post("/v1/jobs", json=GOOD, headers=KEY)
    again = await bill.client.post("/v1/jobs", json=dict(reversed(GOOD.items())), headers=KEY)
    assert (first.status_code, again.status_code) == (202, 200)
    assert first.json()["id"] == again.json()["id"]
    assert (await bill.counts())["jobs"] == 1
    assert len(bill.notified) == 1


async def test_it_is_the_same_job_whatever_became_of_it_and_its_workflow(bill: Api) -> None:
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


async def test_a_batch_has_its_key_as_well_and_a_bad_one_leaves_the_key_free(bill: Api) -> None:
    bad = {"jobs": [GOOD, GOOD | {"input": {}}]}
    problem(await bill.client.post("/v1/jobs/batch", json=bad, headers=KEY), 422)
    assert (await bill.counts())["idempotency_keys"] == 0
    first = await bill.client.post("/v1/jobs/batch", json=BATCH, headers=KEY)
    again = await bill.client.post("/v1/jobs/batch", json=BATCH, headers=KEY)
    assert (first.status_code, again.status_code) == (202, 200)
    assert [job["id"] for job in first.json()["jobs"]] == [job["id"] for job in again.json()["jobs"]]
    problem(await bill.client.post("/v1/jobs", json=GOOD, headers=KEY), 422)
    assert (await bill.counts())["jobs"] == 2


async def test_of_many_at_once_one_writes_and_all_get_its_jobs(bill: Api) -> None:
    answers = await asyncio.gather(
        *(bill.client.post("/v1/jobs/batch", json=BATCH, headers=KEY) for _ in range(20)),
    )
    assert sorted(answer.status_code for answer in answers) == [200] * 19 + [202]
    assert len({tuple(job["id"] for job in answer.json()["jobs"]) for answer in answers}) == 1
    counts = await bill.counts()
    assert (counts["jobs"], counts["events"], counts["idempotency_keys"]) == (2, 2, 1)
    assert len(bill.notified) == 2


async def test_of_many_at_once_with_two_bodies_one_body_wins(bill: Api) -> None:
    bodies = [GOOD | {"priority": n % 2} for n in range(20)]
    answers = await asyncio.gather(*(bill.client.post("/v1/jobs", json=body, headers=KEY) for body in bodies))
    codes = [answer.status_code for answer in answers]
    assert (codes.count(202), codes.count(200), codes.count(422)) == (1, 9, 10)
    assert (await bill.counts())["jobs"] == 1


async def test_two_principals_share_no_key(start: Start) -> None:
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


async def test_a_key_is_forgotten_after_a_day_and_cleared_away(bill: Api) -> None:
    first = await bill.client.post("/v1/jobs", json=GOOD, headers=KEY)
    await bill.client.post("/v1/jobs", json=GOOD, headers={"Idempotency-Key": "another"})
    await bill.rows("UPDATE idempotency_keys SET created_at = created_at - interval '24 hours'")
    second = await bill.client.post("/v1/jobs", json=GOOD | {"priority": 1}, headers=KEY)
    assert second.status_code == 202
    assert second.json()["id"] != first.json()["id"]
    assert [row["key"] for row in await bill.rows("SELECT key FROM idempotency_keys")] == [KEY["Idempotency-Key"]]
    again = await bill.client.post("/v1/jobs", json=GOOD | {"priority": 1}, headers=KEY)
    assert (again.status_code, again.json()["id"]) == (200, second.json()["id"])
