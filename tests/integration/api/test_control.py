"""What is said to a job while it lives: signals, cancel, pause, unpause."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from stepladder.testing import Answer, eventually

from .conftest import MISSING_ID, PAYING, problem

if TYPE_CHECKING:
    from .conftest import Api

RIGHT = Answer('{"total": 36}')


@pytest.mark.parametrize(
    ("payload", "where", "said"),
    [
        ({"action": "perhaps"}, "/action", "one of"),
        ({"action": "approve", "by": 5}, "/by", "a string"),
        ({}, "", "action"),
        ([], "", "map"),
        ({"action": "approve", "wait_id": MISSING_ID}, "", "wait_id"),
    ],
)
async def test_a_signal_that_does_not_fit_the_wait_is_refused_at_once(
    bill: Api, payload: object, where: str, said: str
) -> None:
    job_id = await bill.waiting()
    before = await bill.counts()
    found = problem(await bill.signal(job_id, payload), 422)
    assert found["errors"][0]["pointer"] == where
    assert said in f"{found['detail']} {found['errors']}"
    assert await bill.counts() == before


async def test_a_signal_the_workflow_never_waits_for_is_refused(bill: Api) -> None:
    job_id = await bill.waiting()
    found = problem(await bill.client.post(f"/v1/jobs/{job_id}/signals/aproval", json={"action": "approve"}), 422)
    assert "it waits for approval" in found["detail"]


async def test_before_an_irreversible_tool_a_signal_must_name_the_open_wait(api: Api) -> None:
    await api.publish(PAYING)
    job = await api.submit(workflow="paying", input={})
    path = f"/v1/jobs/{job['id']}/signals/confirmation"
    problem(await api.client.post(path, json={"action": "yes"}), 409)
    wait = (await api.drive(job["id"]))["wait"]
    assert wait["frozen"] == {"pay": {"tool": "pay", "arguments": {"amount": 36}}}
    found = problem(await api.client.post(path, json={"action": "yes"}), 422)
    assert wait["wait_id"] in found["detail"]
    answer = await api.client.post(path, json={"action": "yes", "wait_id": wait["wait_id"]})
    assert answer.status_code == 202
    assert (await api.drive(job["id"]))["status"] == "succeeded"


@pytest.mark.parametrize("key", ["approval of 4711", MISSING_ID])
async def test_a_repeated_signal_counts_once_even_after_the_job_ended(bill: Api, key: str) -> None:
    job_id = await bill.waiting()
    path, headers = f"/v1/jobs/{job_id}/signals/approval", {"Idempotency-Key": key}
    answers = await asyncio.gather(
        *(bill.client.post(path, json={"action": "approve"}, headers=headers) for _ in range(8))
    )
    assert sorted(answer.status_code for answer in answers) == [200] * 7 + [202]
    assert len({answer.json()["signal_id"] for answer in answers}) == 1
    assert (await bill.counts())["signals"] == 1
    assert (await bill.drive(job_id))["status"] == "succeeded"
    again = await bill.client.post(path, json={"action": "approve"}, headers=headers)
    assert (again.status_code, again.json()["status"]) == (200, "duplicate")
    problem(await bill.client.post(path, json={"action": "refuse"}, headers=headers), 422)
    problem(await bill.client.post(path, json={"action": "approve"}), 409)


async def test_cancelling_twice_is_no_error(bill: Api) -> None:
    job = await bill.submit()
    first = await bill.client.post(f"/v1/jobs/{job['id']}/cancel")
    assert (first.status_code, bill.notified[-1]) == (202, UUID(job["id"]))
    assert (await bill.drive(job["id"]))["status"] == "cancelled"
    again = await bill.client.post(f"/v1/jobs/{job['id']}/cancel")
    assert (again.status_code, again.json()["status"]) == (200, "cancelled")
    for word in ("pause", "unpause"):
        assert "is cancelled" in problem(await bill.client.post(f"/v1/jobs/{job['id']}/{word}"), 409)["detail"]


async def test_a_paused_job_is_not_claimed_until_it_is_unpaused(bill: Api) -> None:
    job = await bill.submit()
    paused = await bill.client.post(f"/v1/jobs/{job['id']}/pause")
    assert (paused.status_code, paused.json()["status"]) == (202, "paused")
    assert (await bill.client.post(f"/v1/jobs/{job['id']}/pause")).status_code == 200
    assert await bill.store.claim("worker", 60.0, UUID(job["id"])) is None
    assert await bill.store.claim("worker", 60.0) is None

    unpaused = await bill.client.post(f"/v1/jobs/{job['id']}/unpause")
    assert (unpaused.status_code, unpaused.json()["status"]) == (202, "queued")
    assert (await bill.client.post(f"/v1/jobs/{job['id']}/unpause")).status_code == 200
    assert bill.notified[-1] == UUID(job["id"])
    assert (await bill.drive(job["id"], RIGHT))["status"] == "waiting"
    events = await bill.events(job["id"])
    assert [event["kind"] for event in events][:4] == ["job_created", "job_paused", "job_unpaused", "job_started"]
    assert events[1]["data"] == {"by": "local"}


async def test_a_paused_job_can_be_cancelled_and_a_cancelled_one_cannot_be_paused(bill: Api) -> None:
    job = await bill.submit()
    await bill.client.post(f"/v1/jobs/{job['id']}/pause")
    await bill.client.post(f"/v1/jobs/{job['id']}/cancel")
    found = problem(await bill.client.post(f"/v1/jobs/{job['id']}/pause"), 409)
    assert "is being cancelled" in found["detail"]
    assert (await bill.drive(job["id"]))["status"] == "cancelled"


async def test_a_signal_to_a_paused_job_is_kept(bill: Api) -> None:
    job_id = await bill.waiting()
    await bill.client.post(f"/v1/jobs/{job_id}/pause")
    answer = await bill.signal(job_id, {"action": "approve"})
    assert answer.status_code == 202
    assert await bill.store.claim("worker", 60.0, UUID(job_id)) is None
    await bill.client.post(f"/v1/jobs/{job_id}/unpause")
    assert (await bill.drive(job_id))["status"] == "succeeded"
    assert await eventually(lambda: bill.notified[-1] == UUID(job_id))
