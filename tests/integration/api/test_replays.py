"""Replays over HTTP: judged again, resumed and forked."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from stepladder.runner.machines import Machines
from stepladder.services.bulks import hand_out
from stepladder.services.replays import Replays

from .conftest import KIT, problem

if TYPE_CHECKING:
    from uuid import UUID

    from .conftest import Api

WRONG = {"total": 35}
RIGHT = {"total": 36}


async def failed(api: Api) -> str:
    """A job that failed after three rejected answers."""
    job: str = (await api.submit())["id"]
    ended = await api.drive(job, WRONG, {"total": 34}, {"total": 33})
    assert ended["failure"] == "attempts_exhausted"
    return job


async def replay(api: Api, job: str, body: Any, **headers: str) -> Any:
    return await api.client.post(f"/v1/jobs/{job}/replays", json=body, headers=headers)


async def test_the_same_document_gives_the_same_verdicts(bill: Api) -> None:
    job = await failed(bill)
    before = await bill.counts()
    answer = await replay(bill, job, {"mode": "revalidate"})
    assert answer.status_code == 200
    body = answer.json()
    assert body["changed"] == 0
    verdicts = [(one["turn"], one["attempt"], one["was"], one["now"]) for one in body["attempts"]]
    assert verdicts == [(1, number, "semantic", "semantic") for number in (1, 2, 3)]
    assert await bill.counts() == before


async def test_a_resume_is_a_new_job_that_points_to_the_old_one(bill: Api) -> None:
    old = await failed(bill)
    answer = await replay(bill, old, {"mode": "resume"})
    assert answer.status_code == 202
    new = answer.json()
    assert (new["replay_of"], new["status"], new["input"]) == (old, "queued", {"team": "search"})
    assert answer.headers["location"] == f"/v1/jobs/{new['id']}"
    assert new["id"] in [str(job) for job in bill.notified]
    assert (await bill.drive(new["id"], RIGHT))["waiting_for"] == "approval"
    assert (await bill.job(old))["replays"] == [new["id"]]


async def test_a_fork_and_its_signals_follow_the_changed_document(bill: Api) -> None:
    old = await failed(bill)
    changes = {
        "states.sum.rules.0.check": "output.total == 35",
        "states.approve.wait.schema.properties.action.enum": ["approve", "refuse", "later"],
        "states.approve.next.later": "refused",
    }
    new = (await replay(bill, old, {"mode": "fork", "from_turn": 1, "set": changes})).json()
    assert new["variant"]
    assert (await bill.drive(new["id"], WRONG))["waiting_for"] == "approval"
    sent = await bill.signal(new["id"], {"action": "later"})
    assert sent.status_code == 202, sent.text
    kept = await bill.client.get("/v1/workflows/bill/1")
    assert kept.json()["document"]["states"]["sum"]["rules"][0]["check"] == "output.total == 36"
    assert len((await bill.client.get("/v1/workflows")).json()["workflows"]) == 1


async def test_a_key_means_one_body_and_one_job(bill: Api) -> None:
    old = await failed(bill)
    key = {"Idempotency-Key": "once"}
    answers = await asyncio.gather(*(replay(bill, old, {"mode": "resume"}, **key) for _ in range(4)))
    assert sorted(answer.status_code for answer in answers) == [200, 200, 200, 202]
    assert len({answer.json()["id"] for answer in answers}) == 1
    body = problem(await replay(bill, old, {"mode": "fork"}, **key), 422)
    assert body["type"].endswith("idempotency-key-reused")


@pytest.mark.parametrize(
    ("body", "pointer", "words"),
    [
        ({}, "", "mode"),
        ({"mode": "fork", "from_turn": 9}, "/from_turn", "no turn 9"),
        ({"mode": "resume", "set": {"model": "x"}}, "/set", "changes nothing"),
        ({"mode": "revalidate", "from_turn": 1}, "", "neither"),
        ({"mode": "fork", "set": {"states.nowhere.ask": "x"}}, "/set", "no state"),
        ({"mode": "fork", "set": {"version": 7}}, "/set", "no version 7"),
        ({"mode": "fork", "input": {"team": 5}}, "/input", "/team"),
        ({"mode": "fork", "surprise": 1}, "/surprise", ""),
    ],
)
async def test_an_invalid_replay_names_the_place_and_stores_nothing(
    bill: Api, body: Any, pointer: str, words: str
) -> None:
    job = await failed(bill)
    before = await bill.counts()
    found = problem(await replay(bill, job, body), 422)
    assert found["errors"][0]["pointer"] == pointer
    assert words in found["errors"][0]["reason"]
    assert await bill.counts() == before


async def test_a_live_or_succeeded_job_cannot_be_resumed(bill: Api) -> None:
    job = (await bill.submit())["id"]
    assert "cancel it first" in problem(await replay(bill, job, {"mode": "resume"}), 409)["remedy"]
    await bill.signal(job, {"action": "refuse"})
    await bill.drive(job, RIGHT)
    found = problem(await replay(bill, job, {"mode": "resume"}), 409)
    assert "rejected" in found["detail"]
    assert "fork" in found["remedy"]


BULK = {"where": {"workflow": "bill", "status": "failed"}, "mode": "resume"}


async def order(api: Api, **fields: Any) -> Any:
    return await api.client.post("/v1/replays", json=BULK | fields)


async def start_replays(api: Api) -> list[UUID]:
    return await hand_out(api.store, Replays(api.store.database, api.store, Machines(api.store, KIT)))


async def work(api: Api, *answers: Any) -> None:
    """Starts the replays that are ordered and runs them, until no more are started."""
    async with api.worker(*answers) as driver:
        while due := await start_replays(api):
            for job in due:
                await driver.drive(job)


async def test_a_dry_run_only_counts(bill: Api) -> None:
    jobs = [await failed(bill) for _ in range(2)]
    await bill.submit()
    before = await bill.counts()
    found = (await order(bill, dry_run=True)).json()
    tokens = sum([(await bill.job(job))["tokens"] for job in jobs])
    assert (found["jobs"], found["turns"], found["tokens"], found["refused"]) == (2, 2, tokens, {})
    everything = (await order(bill, dry_run=True, where={})).json()
    assert everything["jobs"] == 2
    assert list(everything["refused"].values()) == [1]
    assert await bill.counts() == before


async def test_an_order_replays_each_job_once_a_few_at_a_time(bill: Api) -> None:
    old = [await failed(bill) for _ in range(5)]
    answer = await order(bill, concurrency=2)
    assert answer.status_code == 202
    bulk = answer.json()
    assert (bulk["state"], bulk["total"], bulk["handed_out"]) == ("running", 5, 0)
    first = await start_replays(bill)
    assert len(first) == 2
    assert await start_replays(bill) == []  # two are running
    for job in first:
        await bill.drive(job, RIGHT)
    await work(bill, *[RIGHT] * 3)
    done = (await bill.client.get(answer.headers["location"])).json()
    assert (done["state"], done["jobs"]) == ("done", {"waiting": 5})
    rows = await bill.rows("SELECT replay_of, priority FROM jobs WHERE bulk = %s", bulk["id"])
    assert sorted(str(row["replay_of"]) for row in rows) == sorted(old)
    assert {row["priority"] for row in rows} == {-10}
    assert await start_replays(bill) == []


async def test_a_replay_written_by_a_lost_worker_is_not_repeated(bill: Api) -> None:
    for _ in range(2):
        await failed(bill)
    bulk = (await order(bill)).json()["id"]
    await work(bill, RIGHT, RIGHT)
    await bill.rows("UPDATE bulks SET handed_out_at = NULL, after_at = NULL, after_id = NULL WHERE id = %s", bulk)
    await work(bill)
    assert len(await bill.rows("SELECT id FROM jobs WHERE bulk = %s", bulk)) == 2


async def test_a_stopped_order_starts_no_more_replays(bill: Api) -> None:
    for _ in range(3):
        await failed(bill)
    where = (await order(bill, concurrency=1)).headers["location"]
    [job] = await start_replays(bill)
    assert (await bill.client.post(f"{where}/stop")).status_code == 202
    assert (await bill.client.post(f"{where}/stop")).status_code == 200
    await bill.drive(job, RIGHT)
    assert await start_replays(bill) == []
    assert (await bill.client.get(where)).json()["state"] == "stopped"


async def test_an_order_does_not_replay_its_own_replays(bill: Api) -> None:
    """They fail again, so they match the filter too."""
    await failed(bill)
    await order(bill)
    await work(bill, WRONG, {"total": 34}, {"total": 33})
    await work(bill)
    assert len(await bill.rows("SELECT id FROM jobs WHERE replay_of IS NOT NULL")) == 1


async def test_the_same_key_gives_the_same_order(bill: Api) -> None:
    headers = {"Idempotency-Key": "all"}
    first = await bill.client.post("/v1/replays", json=BULK, headers=headers)
    second = await bill.client.post("/v1/replays", json=BULK, headers=headers)
    assert (first.status_code, second.status_code) == (202, 200)
    assert first.json()["id"] == second.json()["id"]
    problem(await bill.client.post("/v1/replays", json=BULK | {"mode": "fork"}, headers=headers), 422)


async def test_a_filter_is_judged_again_in_one_request(bill: Api) -> None:
    job = await failed(bill)
    same = (await order(bill, mode="revalidate")).json()
    assert (same["attempts"], same["changed"]) == (3, 0)
    check = {"states.sum.rules.0.check": "output.total == 35"}
    changed = (await order(bill, mode="revalidate", set=check)).json()
    assert (changed["changed"], changed["changes"]["accepted"]["jobs"]) == (1, [job])


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"where": {"status": "lost"}}, "/where/status"),
        ({"where": {"colour": "red"}}, "/where/colour"),
        ({"where": {"created_after": 5}}, "/where/created_after"),
        ({"set": {"model": "x"}}, "/set"),
        ({"concurrency": 0}, "/concurrency"),
    ],
)
async def test_an_invalid_order_names_the_place(bill: Api, body: Any, pointer: str) -> None:
    found = problem(await order(bill, **body), 422)
    assert found["errors"][0]["pointer"] == pointer
