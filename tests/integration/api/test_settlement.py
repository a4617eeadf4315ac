"""Settling a tool call whose effect is unknown: checked, stored once and followed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from stepladder.api.access import parse_keys
from stepladder.schemas.tool import Effect, Kit, Tool

from .conftest import MISSING_ID, PARAMETERS, PAYING, problem

if TYPE_CHECKING:
    from .conftest import Api, Start

RECEIPT: dict[str, Any] = {"type": "object", "properties": {"receipt": {"type": "integer"}}, "required": ["receipt"]}
DONE = {"done": True, "result": {"receipt": 7}}
NOT_DONE = {"done": False}


def kit_of(paid: list[int]) -> Kit:
    async def pay(amount: int) -> None:
        paid.append(amount)
        await asyncio.Event().wait()

    return Kit({"pay": Tool("pay", Effect.IRREVERSIBLE, PARAMETERS, pay, returns=RECEIPT, timeout_s=0.05)})


@pytest.fixture
def paid() -> list[int]:
    return []


@pytest.fixture
async def paying(start: Start, paid: list[int]) -> Api:
    api = await start(kit=kit_of(paid))
    await api.publish(PAYING.replace("left: {end: failed}", "left: {end: failed, result: {why: errors.pay.kind}}"))
    return api


async def confirm(api: Api) -> dict[str, Any]:
    """A job whose payment did not come back in time."""
    job = await api.submit(workflow="paying", input={})
    wait = (await api.drive(job["id"]))["wait"]
    answer = await api.signal(job["id"], {"action": "yes", "wait_id": wait["wait_id"]}, "confirmation")
    assert answer.status_code == 202
    return await api.drive(job["id"])


async def settle(api: Api, job: dict[str, Any], body: object) -> Any:
    return await api.client.post(f"/v1/jobs/{job['id']}/settle", json=body)


async def test_a_job_shows_its_open_settlement(paying: Api) -> None:
    job = await confirm(paying)
    assert (job["status"], job["waiting_for"], job["wait"]) == ("waiting", "settlement", None)
    open_ = job["settlement"]
    [row] = await paying.rows("SELECT key FROM visits WHERE kind = 'tool'")
    assert (open_["state"], open_["tool"], open_["arguments"]) == ("pay", "pay", {"amount": 36})
    assert open_["key"] == row["key"]
    assert open_["reason"] == {"kind": "timeout", "message": "no result within 0.05 s"}
    assert (open_["said"], open_["route"]) == (None, f"/v1/jobs/{job['id']}/settle")


async def test_an_effect_that_happened_continues_the_job_with_its_result(paying: Api, paid: list[int]) -> None:
    job = await confirm(paying)
    answer = await settle(paying, job, DONE | {"key": job["settlement"]["key"]})
    assert answer.status_code == 202
    assert answer.json()["settlement"]["said"] == DONE | {"by": "local"}
    assert paying.notified[-1] == UUID(job["id"])
    again = await settle(paying, job, DONE)
    assert again.status_code == 200
    assert (await paying.drive(job["id"]))["status"] == "succeeded"
    [call] = await paying.rows("SELECT body, error_kind FROM visits WHERE kind = 'tool'")
    assert (call["body"]["result"], call["error_kind"], call["body"]["runs"]) == ({"receipt": 7}, None, 1)
    assert paid == [36]
    events = await paying.events(job["id"])
    [settled] = [event["data"] for event in events if event["kind"] == "settled"]
    assert (settled["by"], settled["done"], settled["result"]) == ("local", True, {"receipt": 7})
    assert (await settle(paying, job, DONE)).status_code == 200
    found = problem(await settle(paying, job, NOT_DONE), 409)
    assert "it is succeeded" in found["detail"]


async def test_an_effect_that_did_not_happen_takes_the_error_edge(paying: Api, paid: list[int]) -> None:
    job = await confirm(paying)
    assert (await settle(paying, job, NOT_DONE)).status_code == 202
    done = await paying.drive(job["id"])
    assert (done["status"], done["result"]) == ("failed", {"why": "not_done"})
    assert paid == [36]


async def test_a_settlement_cannot_be_changed(paying: Api) -> None:
    job = await confirm(paying)
    assert (await settle(paying, job, NOT_DONE)).status_code == 202
    for other in (DONE, {"done": True, "result": {"receipt": 8}}):
        found = problem(await settle(paying, job, other), 409)
        assert found["type"].endswith(":settled-otherwise")
    assert (await settle(paying, job, NOT_DONE)).status_code == 200


@pytest.mark.parametrize(
    ("body", "pointer", "said"),
    [
        ({"done": True, "result": {"receipt": "seven"}}, "/result/receipt", "integer"),
        ({"done": True, "result": {}}, "/result", "receipt"),
        ({"done": True, "result": None}, "/result", "object"),
        ({"done": True, "result": {"receipt": 7, "more": "x" * 1_000_000}}, "/result", "1,000,000 are allowed"),
        ({"done": True}, "", "null is one"),
        ({"done": False, "result": 1}, "", "has no `result`"),
        ({"done": "yes"}, "/done", "boolean"),
        ({}, "", "missing"),
        ({"done": False, "why": "x"}, "/why", "no field"),
        ([], "", ""),
    ],
)
async def test_an_invalid_settlement_is_not_stored(paying: Api, body: object, pointer: str, said: str) -> None:
    job = await confirm(paying)
    found = problem(await settle(paying, job, body), 422)
    assert found["errors"][0]["pointer"] == pointer
    assert said in found["errors"][0]["reason"]
    assert (await paying.counts())["settlements"] == 0


async def test_a_job_that_waits_for_something_else_is_not_settled(paying: Api) -> None:
    job = await paying.submit(workflow="paying", input={})
    assert "a worker is running it" in problem(await settle(paying, job, DONE), 409)["detail"]
    await paying.drive(job["id"])
    found = problem(await settle(paying, job, DONE), 409)
    assert found["detail"].endswith("it does not wait for settlement: it waits for the signal confirmation")
    problem(await settle(paying, {"id": MISSING_ID}, DONE), 404)
    assert (await paying.counts())["settlements"] == 0


async def test_a_settlement_of_another_call_is_refused(paying: Api) -> None:
    job = await confirm(paying)
    found = problem(await settle(paying, job, DONE | {"key": "another"}), 409)
    assert job["settlement"]["key"] in found["detail"]
    assert (await paying.counts())["settlements"] == 0


async def test_without_the_tool_only_a_result_needs_checking(paying: Api, start: Start) -> None:
    job = await confirm(paying)
    bare = await start(kit=Kit({}, {}))
    found = problem(await settle(bare, job, DONE), 503)
    assert "STEPLADDER_APP" in found["remedy"]
    assert (await settle(bare, job, NOT_DONE)).status_code == 202


async def test_a_cancelled_job_ends_once_settled_even_without_its_tools(paying: Api, start: Start) -> None:
    job = await confirm(paying)
    bare = await start(kit=Kit({}, {}))
    await bare.client.post(f"/v1/jobs/{job['id']}/cancel")
    assert (await bare.drive(job["id"]))["status"] == "waiting"
    assert (await settle(bare, job, NOT_DONE)).status_code == 202
    assert (await bare.drive(job["id"]))["status"] == "cancelled"


async def test_settling_needs_its_own_scope(paying: Api, paid: list[int], start: Start) -> None:
    job = await confirm(paying)
    keys = """[
        {"name": "clerk", "key": "c-key", "scopes": ["jobs:read", "jobs:write", "signals:write"]},
        {"name": "treasurer", "key": "t-key", "scopes": ["settlements:write"]}
    ]"""
    guarded = await start(kit=kit_of(paid), keys=parse_keys(keys))
    path = f"/v1/jobs/{job['id']}/settle"
    refused = await guarded.client.post(path, json=DONE, headers={"Authorization": "Bearer c-key"})
    assert "settlements:write" in problem(refused, 403)["detail"]
    taken = await guarded.client.post(path, json=DONE, headers={"Authorization": "Bearer t-key"})
    assert taken.status_code == 202
    assert (await guarded.rows("SELECT by FROM settlements")) == [{"by": "treasurer"}]
