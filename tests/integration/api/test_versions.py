"""Versions: which one a new job takes, what retiring one means, and a workflow that is paused with all its jobs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from .conftest import BILL, GOOD, problem

if TYPE_CHECKING:
    from .conftest import Api


TWO = BILL.replace("version: 1", "version: 2")
RIGHT = '{"total": 36}'


async def post(api: Api, path: str, status: int = 202) -> list[dict[str, Any]]:
    answer = await api.client.post(f"/v1/workflows/{path}")
    assert answer.status_code == status, answer.text
    found: list[dict[str, Any]] = answer.json()["workflows"]
    return found


async def test_new_jobs_take_the_newest_active_version_or_the_one_named(bill: Api) -> None:
    old = await bill.submit()
    await bill.publish(TWO)
    assert [(await bill.submit(**named))["version"] for named in ({}, {"version": 1}, {"version": 2})] == [2, 1, 2]
    [retired] = await post(bill, "bill/2/retire")
    assert (retired["version"], retired["retired"]) == (2, True)
    await post(bill, "bill/2/retire", 200)
    assert (await bill.submit())["version"] == 1
    await post(bill, "bill/2/unretire")
    assert (await bill.submit())["version"] == 2
    assert (await bill.job(old["id"]))["version"] == 1


async def test_a_retired_version_is_refused_and_the_current_one_named(bill: Api) -> None:
    await bill.publish(TWO)
    await post(bill, "bill/1/retire")
    before = await bill.counts()
    found = problem(await bill.client.post("/v1/jobs", json=GOOD | {"version": 1}), 422)
    assert found["errors"][0]["pointer"] == "/version"
    assert "version 1 of workflow bill is retired; the current one is 2" in found["detail"]
    batch = {"jobs": [GOOD, GOOD | {"version": 1}]}
    found = problem(await bill.client.post("/v1/jobs/batch", json=batch), 422)
    assert found["errors"][0]["pointer"] == "/jobs/1/version"
    assert await bill.counts() == before


async def test_where_every_version_is_retired_submissions_are_refused(bill: Api) -> None:
    await post(bill, "bill/1/retire")
    for body in (GOOD, GOOD | {"version": 1}):
        found = problem(await bill.client.post("/v1/jobs", json=body), 422)
        assert "retired" in found["detail"]
        assert "unretire" in found["remedy"]


async def test_a_job_of_a_retired_version_continues(bill: Api) -> None:
    job = await bill.submit()
    await post(bill, "bill/1/retire")
    assert (await bill.drive(job["id"], RIGHT))["status"] == "waiting"
    sent = await bill.signal(job["id"], {"action": "approve"})
    assert sent.status_code == 202
    assert (await bill.drive(job["id"]))["status"] == "succeeded"


async def test_no_submission_slips_past_a_retirement(bill: Api) -> None:
    """Once a version is reported as retired, no job of it comes later."""
    await bill.publish(TWO)

    async def retire() -> int:
        await post(bill, "bill/2/retire")
        [row] = await bill.rows("SELECT count(*) AS n FROM jobs WHERE version = 2")
        return int(row["n"])

    retiring = asyncio.ensure_future(retire())
    answers = await asyncio.gather(*(bill.client.post("/v1/jobs", json=GOOD) for _ in range(30)))
    seen = await retiring
    assert {answer.status_code for answer in answers} == {202}
    [row] = await bill.rows("SELECT count(*) AS n FROM jobs WHERE version = 2")
    assert row["n"] == seen
    assert (await bill.counts())["jobs"] == 30


@pytest.mark.parametrize("path", ["bill", "bill/1"])
async def test_a_paused_workflow_holds_old_and_new_jobs(bill: Api, path: str) -> None:
    before = await bill.submit()
    [paused] = await post(bill, f"{path}/pause")
    assert paused["paused_by"] == "local"
    assert paused["paused_at"] is not None
    await post(bill, f"{path}/pause", 200)
    listed = (await bill.client.get("/v1/workflows")).json()["workflows"]
    assert listed == [paused]
    after = await bill.submit()
    for job in (before, after):
        shown = await bill.job(job["id"])
        assert (shown["status"], shown["workflow_paused"]) == ("queued", True)
        assert await bill.store.claim("worker", 60.0, UUID(job["id"])) is None
    assert await bill.store.claim("worker", 60.0) is None

    [free] = await post(bill, f"{path}/unpause")
    assert (free["paused_at"], free["paused_by"]) == (None, None)
    await post(bill, f"{path}/unpause", 200)
    for job in (before, after):
        assert (await bill.job(job["id"]))["workflow_paused"] is False
        assert (await bill.drive(job["id"], RIGHT))["status"] == "waiting"
    events = await bill.events(before["id"])
    assert [event["kind"] for event in events][:3] == ["job_created", "job_paused", "job_unpaused"]
    assert events[1]["data"]["workflow"] == "bill"


async def test_a_version_published_to_a_paused_workflow_is_paused_too(bill: Api) -> None:
    await post(bill, "bill/pause")
    await bill.publish(TWO)
    job = await bill.submit()
    assert (job["version"], (await bill.job(job["id"]))["workflow_paused"]) == (2, True)
    await post(bill, "bill/unpause")
    assert (await bill.drive(job["id"], RIGHT))["status"] == "waiting"


async def test_pausing_one_version_leaves_the_others(bill: Api) -> None:
    await bill.publish(TWO)
    one, two = await bill.submit(version=1), await bill.submit()
    await post(bill, "bill/1/pause")
    assert await bill.store.claim("worker", 60.0, UUID(one["id"])) is None
    assert (await bill.drive(two["id"], RIGHT))["status"] == "waiting"
    await bill.publish(TWO.replace("version: 2", "version: 3"))
    assert (await bill.submit())["workflow_paused"] is False


async def test_a_paused_job_of_a_paused_workflow_keeps_both_pauses(bill: Api) -> None:
    job = await bill.submit(deadline_s=3600)
    await bill.client.post(f"/v1/jobs/{job['id']}/pause")
    await bill.rows("UPDATE jobs SET paused_at = paused_at - interval '1 hour'")
    await post(bill, "bill/pause")
    await bill.client.post(f"/v1/jobs/{job['id']}/unpause")
    assert await bill.store.claim("worker", 60.0, UUID(job["id"])) is None
    await bill.client.post(f"/v1/jobs/{job['id']}/pause")
    await post(bill, "bill/unpause")
    assert (await bill.job(job["id"]))["status"] == "paused"
    await bill.client.post(f"/v1/jobs/{job['id']}/unpause")
    [row] = await bill.rows("SELECT deadline_at - created_at AS left FROM jobs")
    assert 7200 <= row["left"].total_seconds() < 7200 + 600


async def test_a_job_of_a_paused_workflow_can_be_cancelled(bill: Api) -> None:
    job = await bill.submit()
    await post(bill, "bill/pause")
    await bill.client.post(f"/v1/jobs/{job['id']}/cancel")
    assert (await bill.drive(job["id"]))["status"] == "cancelled"


async def test_jobs_of_a_paused_workflow_do_not_count_as_queued(bill: Api) -> None:
    await bill.submit()
    await post(bill, "bill/pause")
    await bill.submit()
    metrics = (await bill.client.get("/metrics")).text
    assert "\nstepladder_queue_jobs 0" in metrics


async def test_no_submission_slips_past_a_pause(bill: Api) -> None:
    answers = await asyncio.gather(
        *(bill.client.post("/v1/jobs", json=GOOD) for _ in range(20)),
        bill.client.post("/v1/workflows/bill/pause"),
        bill.client.post("/v1/workflows", content=TWO),
        *(bill.client.post("/v1/jobs", json=GOOD) for _ in range(20)),
    )
    assert {answer.status_code for answer in answers} <= {201, 202}
    assert await bill.store.claim("worker", 60.0) is None
    await post(bill, "bill/unpause")
    [row] = await bill.rows("SELECT count(*) AS n FROM jobs WHERE held_at IS NULL AND paused_at IS NULL")
    assert row["n"] == 40


async def test_concurrent_pauses_leave_all_jobs_in_one_state(bill: Api) -> None:
    for _ in range(12):
        await bill.submit()
    words = ("pause", "unpause") * 6
    await asyncio.gather(*(bill.client.post(f"/v1/workflows/bill/{word}") for word in words))
    [flag] = await bill.rows("SELECT paused_at IS NOT NULL AS paused FROM workflows")
    rows = await bill.rows("SELECT held_at IS NOT NULL AS held FROM jobs")
    assert {row["held"] for row in rows} == {flag["paused"]}


AUDITED = """
name: audited
version: 1
start: only
states:
  only:
    ask: Which words?
    output:
      type: object
      properties: {{words: {{type: array, items: {{type: string, maxLength: 9}}, {list}}}}}
      required: [words]
      additionalProperties: false
    next: done
  done: {{end: succeeded}}
"""
WHERE = "/states/only/output/properties/words"


async def test_an_unenforced_keyword_is_a_problem_with_its_place(api: Api) -> None:
    answer = await api.client.post("/v1/workflows", content=AUDITED.format(list="maxItems: 3, uniqueItems: true"))
    [error] = problem(answer, 422)["errors"]
    assert (error["code"], error["pointer"], error["line"]) == ("not_enforced", f"{WHERE}/uniqueItems", 10)
    assert "exists_one" in error["remedy"]
    assert (await api.client.get("/v1/workflows/audited/1")).status_code == 404


async def test_a_missing_bound_is_published_with_a_warning(api: Api) -> None:
    answer = await api.client.post("/v1/workflows", content=AUDITED.format(list="minItems: 1"))
    assert answer.status_code == 201
    [warning] = answer.json()["warnings"]
    assert (warning["code"], warning["pointer"], warning["line"]) == ("no_max_items", WHERE, 10)
    assert warning["remedy"] == "add `maxItems`"
