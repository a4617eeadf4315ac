"""A job looked into: what it was asked, what stands between its turns, and what retention leaves of it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest

from stepladder.models.retention import Ages, retain

from .conftest import problem

if TYPE_CHECKING:
    from .conftest import Api

WRONG, RIGHT = {"total": 35}, {"total": 36}


async def approved(bill: Api) -> dict[str, Any]:
    """A job with a wrong answer, a right one, and its approval."""
    job = await bill.submit()
    async with bill.worker(WRONG, RIGHT) as driver:
        await driver.drive(UUID(job["id"]))
        answer = await bill.client.post(f"/v1/jobs/{job['id']}/signals/approval", json={"action": "approve", "by": "ü"})
        assert answer.status_code == 202
        await driver.drive(UUID(job["id"]))
    return await bill.job(job["id"])


async def attempts(bill: Api, job: dict[str, Any]) -> list[dict[str, Any]]:
    turns = (await bill.client.get(f"/v1/jobs/{job['id']}/turns")).json()
    return [attempt for turn in turns for attempt in turn["attempts"]]


async def test_an_attempts_request_is_what_was_sent(bill: Api) -> None:
    job = await approved(bill)
    wrong, right = await attempts(bill, job)
    bodies = []
    for attempt in (wrong, right):
        answer = await bill.client.get(f"/v1/attempts/{attempt['id']}/request")
        assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
        assert "attachment" in answer.headers["content-disposition"]
        bodies.append(answer.json())
    first, second = (body["messages"][-1]["content"] for body in bodies)
    assert second == first + right["note"]
    assert "must be hours times 3" in right["note"]
    nothing = problem(await bill.client.get(f"/v1/attempts/{uuid4()}/request"), 404)
    assert "/turns" in nothing["remedy"]


async def test_what_stands_between_the_turns_is_told_with_the_signal_that_came(bill: Api) -> None:
    job = await approved(bill)
    early = await bill.submit()
    sent = await bill.client.post(f"/v1/jobs/{early['id']}/signals/approval", json={"action": "refuse"})
    assert sent.status_code == 202
    visits = (await bill.client.get(f"/v1/jobs/{job['id']}/visits")).json()
    [wait], [signal] = visits["waits"], visits["signals"]
    assert (visits["turns"], visits["tools"], visits["calls"]) == ({"1": 1}, [], [])
    assert (wait["visit"], wait["state"], wait["action"], wait["show"]) == (2, "approve", "approve", {"total": 36})
    assert (signal["payload"], signal["by"]) == ({"action": "approve", "by": "ü"}, "local")
    assert signal["taken_at"] is not None
    assert wait["signal_id"] == signal["id"]
    other = (await bill.client.get(f"/v1/jobs/{early['id']}/visits")).json()
    assert [one["taken_at"] for one in other["signals"]] == [None]
    problem(await bill.client.get(f"/v1/jobs/{uuid4()}/visits"), 404)


async def test_jobs_are_found_by_what_their_answers_broke_and_said(bill: Api) -> None:
    job = await approved(bill)
    other = await bill.submit()

    async def found(**query: str) -> list[str]:
        answer = await bill.client.get("/v1/jobs", params=query)
        assert answer.status_code == 200, answer.text
        body = answer.json()
        assert ("looked_back_to" in body) is ("search" in query)
        return [one["id"] for one in body["jobs"]]

    assert await found(rule="arithmetic") == await found(cause="arithmetic") == [job["id"]]
    assert await found(search='"total": 35') == await found(search="HOURS times") == [job["id"]]
    assert await found(state="done") == [job["id"]]
    assert await found(principal="local") == [other["id"], job["id"]]
    assert await found(replay_of=job["id"]) == []
    assert await found(rule="arithmetic", search='"total": 36') == []


@pytest.mark.parametrize(("name", "text"), [("replay_of", "x"), ("search", ""), ("search", "x" * 201), ("rule", "\0")])
async def test_a_filter_that_cannot_be_is_told_by_its_name(bill: Api, name: str, text: str) -> None:
    answer = problem(await bill.client.get("/v1/jobs", params={name: text}), 422)
    assert name in [error.get("parameter") for error in answer["errors"]]


async def test_a_held_job_keeps_what_goes_from_the_others_and_what_is_gone_is_told(bill: Api) -> None:
    job = await approved(bill)
    held = await approved(bill)
    url = f"/v1/jobs/{held['id']}"
    answers = [await bill.client.post(f"{url}/hold") for _ in range(2)]
    assert [answer.status_code for answer in answers] == [202, 200]
    assert answers[0].json()["hold_by"] == "local"
    await retain(bill.store.database, Ages(timedelta(0), timedelta(0)))

    wrong, _ = await attempts(bill, job)
    assert (wrong["outcome"], wrong["cause"], wrong["content"]) == ("semantic", "arithmetic", None)
    gone = problem(await bill.client.get(f"/v1/attempts/{wrong['id']}/raw"), 410)
    assert gone["type"] == "urn:stepladder:problem:gone"
    assert "retention" in gone["detail"]
    assert (await bill.client.get(f"/v1/attempts/{wrong['id']}/request")).status_code == 200
    assert (await bill.job(job["id"]))["raw_gone_at"] is not None
    events = f"/v1/jobs/{job['id']}/events"
    assert (await bill.client.get(events)).json() == []
    # A browser comes back to a stream that ends without this.
    stream = await bill.client.get(events, headers={"Accept": "text/event-stream"})
    assert stream.status_code == 204

    [kept, _] = await attempts(bill, held)
    assert kept["content"] == '{"total": 35}'
    assert (await bill.client.get(f"/v1/attempts/{kept['id']}/raw")).content
    released = [await bill.client.post(f"{url}/release") for _ in range(2)]
    assert [answer.status_code for answer in released] == [202, 200]
    assert released[0].json()["hold_at"] is None
    problem(await bill.client.post(f"/v1/jobs/{uuid4()}/hold"), 404)

    judged = await bill.client.post(f"/v1/jobs/{job['id']}/replays", json={"mode": "revalidate"})
    assert [one["unjudged"] for one in judged.json()["attempts"]] == ["gone", "gone"]
    assert judged.json()["changed"] == 0
