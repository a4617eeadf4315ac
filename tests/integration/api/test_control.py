"""What is said to a job while it lives: signals, cancel, pause, unpause."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from stepladder.testing import Answer, eventually

from .conftest import PAYING, problem

if TYPE_CHECKING:
    from .conftest import Api

RIGHT = Answer('{"total": 36}')


async def waiting(api: Api) -> str:
    """A job that waits for its approval."""
    job = await api.submit()
    async with api.worker(RIGHT) as worker:
        await worker.drive(UUID(job["id"]))
    return str(job["id"])


async def drive(api: Api, job_id: str) -> str:
    async with api.worker() as worker:
        await worker.drive(UUID(job_id))
    return str((await api.job(job_id))["status"])


@pytest.mark.parametrize(
    ("payload", "where", "said"),
    [
        ({"action": "perhaps"}, "/action", "one of"),
        ({"action": "approve", "by": 5}, "/by", "a string"),
        ({}, "", "action"),
        ([], "", "map"),
        ({"action": "approve", "wait_id": "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5a6b"}, "", "wait_id"),
    ],
)
async def test_a_signal_that_the_wait_would_refuse_is_refused_at_once(
    bill: Api, payload: object, where: str, said: str
) -> None:
    job_id = await waiting(bill)
    before = await bill.counts()
    found = problem(await bill.client.post(f"/v1/jobs/{job_id}/signals/approval", json=payload), 422)
    assert found["errors"][0]["pointer"] == where
    assert said in f"{found['detail']} {found['errors']}"
    assert await bill.counts() == before


async def test_a_signal_that_no_wait_of_the_workflow_has_is_refused(bill: Api) -> None:
    job_id = await waiting(bill)
    found = problem(await bill.client.post(f"/v1/jobs/{job_id}/signals/aproval", json={"action": "approve"}), 422)
    assert "it waits for approval" in found["detail"]


async def test_a_signal_that_names_the_wait_ends_it(bill: Api) -> None:
    job_id = await waiting(bill)
    payload = {"action": "approve", "wait_id": (await bill.job(job_id))["wait"]["wait_id"]}
    assert (await bill.client.post(f"/v1/jobs/{job_id}/signals/approval", json=payload)).status_code == 202
    assert await drive(bill, job_id) == "succeeded"


async def test_an_early_signal_is_kept_for_its_wait(bill: Api) -> None:
    job = await bill.submit()
    path = f"/v1/jobs/{job['id']}/signals/approval"
    assert (await bill.client.post(path, json={"action": "approve"})).status_code == 202
    async with bill.worker(RIGHT) as worker:
        await worker.drive(UUID(job["id"]))
    assert (await bill.job(job["id"]))["status"] == "succeeded"


async def test_in_front_of_an_irreversible_tool_a_signal_is_neither_early_nor_nameless(api: Api) -> None:
    await api.publish(PAYING)
    job = await api.submit(workflow="paying", input={})
    path = f"/v1/jobs/{job['id']}/signals/confirmation"
    problem(await api.client.post(path, json={"action": "yes"}), 409)
    await drive(api, job["id"])
    wait = (await api.job(job["id"]))["wait"]
    assert wait["frozen"] == {"pay": {"tool": "pay", "arguments": {"amount": 36}}}
    found = problem(await api.client.post(path, json={"action": "yes"}), 422)
    assert wait["wait_id"] in found["detail"]
    answer = await api.client.post(path, json={"action": "yes", "wait_id": wait["wait_id"]})
    assert answer.status_code == 202
    assert await drive(api, job["id"]) == "succeeded"


@pytest.mark.parametrize("key", ["approval of 4711", "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5a6b"])
async def test_the_same_signal_again_is_taken_once_even_when_the_job_has_ended(bill: Api, key: str) -> None:
    job_id = await waiting(bill)
    path, headers = f"/v1/jobs/{job_id}/signals/approval", {"Idempotency-Key": key}
    answers = await asyncio.gather(
        *(bill.client.post(path, json={"action": "approve"}, headers=headers) for _ in range(8))
    )
    assert sorted(answer.status_code for answer in answers) == [200] * 7 + [202]
    assert len({answer.json()["signal_id"] for answer in answers}) == 1
    assert (await bill.counts())["signals"] == 1
    assert await drive(bill, job_id) == "succeeded"
    again = await bill.client.post(path, json={"action": "approve"}, headers=headers)
    assert (again.status_code, again.json()["status"]) == (200, "duplicate")
    problem(await bill.client.post(path, json={"action": "refuse"}, headers=headers), 422)
    problem(await bill.client.post(path, json={"action": "approve"}), 409)


async def test_cancel_ends_a_job_and_is_no_error_twice(bill: Api) -> None:
    job = await bill.submit()
    first = await bill.client.post(f"/v1/jobs/{job['id']}/cancel")
    assert (first.status_code, bill.notified[-1]) == (202, UUID(job["id"]))
    assert await drive(bill, job["id"]) == "cancelled"
    again = await bill.client.post(f"/v1/jobs/{job['id']}/cancel")
    assert (again.status_code, again.json()["status"]) == (200, "cancelled")
    for word in ("pause", "unpause"):
        assert "is cancelled" in problem(await bill.client.post(f"/v1/jobs/{job['id']}/{word}"), 409)["detail"]


async def test_a_paused_job_is_left_alone_until_it_is_unpaused(bill: Api) -> None:
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
    async with bill.worker(RIGHT) as worker:
        await worker.drive(UUID(job["id"]))
    assert (await bill.job(job["id"]))["status"] == "waiting"
    events = (await bill.client.get(f"/v1/jobs/{job['id']}/events")).json()
    assert [event["kind"] for event in events][:4] == ["job_created", "job_paused", "job_unpaused", "job_started"]
    assert events[1]["data"] == {"by": "local"}


async def test_a_worker_that_has_a_paused_job_finishes_the_attempt_and_lets_go(bill: Api) -> None:
    """Nothing of the answer is lost: whoever claims the job later judges it, and asks nothing again."""
    job = await bill.submit()
    async with bill.worker(Answer('{"total": 36}', delay_s=2.0)) as worker:
        running = asyncio.ensure_future(worker._runner.run_slice(UUID(job["id"])))

        async def is_asked() -> bool:
            return (await bill.counts())["attempts"] > 0

        await eventually(is_asked, what="the request is under way")
        paused = await bill.client.post(f"/v1/jobs/{job['id']}/pause")
        assert paused.json()["status"] == "paused"
        await running
    [row] = await bill.rows("SELECT lease_owner, status, paused_at FROM jobs")
    assert (row["lease_owner"], row["status"]) == (None, "running")
    [attempt] = await bill.rows("SELECT outcome, arrived_at FROM attempts")
    assert attempt["outcome"] is None
    assert attempt["arrived_at"] is not None

    await bill.client.post(f"/v1/jobs/{job['id']}/unpause")
    assert await drive(bill, job["id"]) == "waiting"  # against an engine that has no answer to give
    [attempt] = await bill.rows("SELECT outcome FROM attempts")
    assert attempt["outcome"] == "valid"
    events = (await bill.client.get(f"/v1/jobs/{job['id']}/events")).json()
    assert [event["ordinal"] for event in events] == list(range(1, len(events) + 1))
    kinds = [event["kind"] for event in events]
    assert kinds.index("job_paused") < kinds.index("attempt_judged")


async def test_a_paused_job_can_be_cancelled_and_a_cancelled_one_cannot_be_paused(bill: Api) -> None:
    job = await bill.submit()
    await bill.client.post(f"/v1/jobs/{job['id']}/pause")
    await bill.client.post(f"/v1/jobs/{job['id']}/cancel")
    found = problem(await bill.client.post(f"/v1/jobs/{job['id']}/pause"), 409)
    assert "is being cancelled" in found["detail"]
    assert await drive(bill, job["id"]) == "cancelled"


async def test_the_deadline_stands_still_while_a_job_is_paused(bill: Api) -> None:
    job = await bill.submit(deadline_s=3600)
    await bill.client.post(f"/v1/jobs/{job['id']}/pause")
    await bill.rows("UPDATE jobs SET paused_at = paused_at - interval '1 hour'")
    await bill.client.post(f"/v1/jobs/{job['id']}/unpause")
    [row] = await bill.rows("SELECT deadline_at - created_at >= interval '2 hours' AS moved FROM jobs")
    assert row["moved"]


async def test_a_signal_to_a_paused_job_is_kept(bill: Api) -> None:
    job_id = await waiting(bill)
    await bill.client.post(f"/v1/jobs/{job_id}/pause")
    answer = await bill.client.post(f"/v1/jobs/{job_id}/signals/approval", json={"action": "approve"})
    assert answer.status_code == 202
    assert await bill.store.claim("worker", 60.0, UUID(job_id)) is None
    await bill.client.post(f"/v1/jobs/{job_id}/unpause")
    assert await drive(bill, job_id) == "succeeded"
    assert await eventually(lambda: bill.notified[-1] == UUID(job_id))
