"""What a person says of a payment whose worker died: taken once, checked, and followed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from stepladder.api.access import parse_keys
from stepladder.schemas.tool import Effect, Kit, Tool

from .conftest import PARAMETERS, PAYING, problem

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


async def run(api: Api, job_id: str, paid: list[int]) -> dict[str, Any]:
    async with api.worker(kit=kit_of(paid)) as worker:
        await worker.drive(UUID(job_id))
    return await api.job(job_id)


async def confirm(api: Api, paid: list[int]) -> dict[str, Any]:
    """A job whose payment did not come back in time."""
    job = await api.submit(workflow="paying", input={})
    wait = (await run(api, job["id"], paid))["wait"]
    path = f"/v1/jobs/{job['id']}/signals/confirmation"
    answer = await api.client.post(path, json={"action": "yes", "wait_id": wait["wait_id"]})
    assert answer.status_code == 202
    return await run(api, job["id"], paid)


async def settle(api: Api, job: dict[str, Any], body: object) -> Any:
    return await api.client.post(f"/v1/jobs/{job['id']}/settle", json=body)


async def test_a_job_says_what_is_to_be_settled_and_how(paying: Api, paid: list[int]) -> None:
    job = await confirm(paying, paid)
    assert (job["status"], job["waiting_for"], job["wait"]) == ("waiting", "settlement", None)
    open_ = job["settlement"]
    [row] = await paying.rows("SELECT key FROM visits WHERE kind = 'tool'")
    assert (open_["state"], open_["tool"], open_["arguments"]) == ("pay", "pay", {"amount": 36})
    assert open_["key"] == row["key"]
    assert open_["reason"] == {"kind": "timeout", "message": "no result within 0.05 s"}
    assert (open_["said"], open_["route"]) == (None, f"/v1/jobs/{job['id']}/settle")


async def test_it_took_effect_and_the_job_goes_on_with_its_result(paying: Api, paid: list[int]) -> None:
    job = await confirm(paying, paid)
    answer = await settle(paying, job, DONE | {"key": job["settlement"]["key"]})
    assert answer.status_code == 202
    assert answer.json()["settlement"]["said"] == DONE | {"by": "local"}
    assert paying.notified[-1] == UUID(job["id"])
    again = await settle(paying, job, DONE)
    assert again.status_code == 200
    assert (await run(paying, job["id"], paid))["status"] == "succeeded"
    [call] = await paying.rows("SELECT body, error_kind FROM visits WHERE kind = 'tool'")
    assert (call["body"]["result"], call["error_kind"], call["body"]["runs"]) == ({"receipt": 7}, None, 1)
    assert paid == [36]
    events = (await paying.client.get(f"/v1/jobs/{job['id']}/events")).json()
    [settled] = [event["data"] for event in events if event["kind"] == "settled"]
    assert (settled["by"], settled["done"], settled["result"]) == ("local", True, {"receipt": 7})
    assert (await settle(paying, job, DONE)).status_code == 200
    found = problem(await settle(paying, job, NOT_DONE), 409)
    assert "it is succeeded" in found["detail"]


async def test_it_did_not_and_the_job_goes_by_its_error(paying: Api, paid: list[int]) -> None:
    job = await confirm(paying, paid)
    assert (await settle(paying, job, NOT_DONE)).status_code == 202
    done = await run(paying, job["id"], paid)
    assert (done["status"], done["result"]) == ("failed", {"why": "not_done"})
    assert paid == [36]


async def test_what_was_said_stands(paying: Api, paid: list[int]) -> None:
    job = await confirm(paying, paid)
    assert (await settle(paying, job, NOT_DONE)).status_code == 202
    for other in (DONE, {"done": True, "result": {"receipt": 8}}):
        found = problem(await settle(paying, job, other), 409)
        assert found["type"].endswith(":settled-otherwise")
    assert (await settle(paying, job, NOT_DONE)).status_code == 200


async def test_of_many_at_once_one_is_kept(paying: Api, paid: list[int]) -> None:
    job = await confirm(paying, paid)
    said = [{"done": True, "result": {"receipt": number}} for number in range(4)] * 2
    answers = await asyncio.gather(*(settle(paying, job, one) for one in said))
    assert sorted(answer.status_code for answer in answers) == [200, 202, *[409] * 6]
    assert (await paying.counts())["settlements"] == 1


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
async def test_what_cannot_be_is_not_kept(paying: Api, paid: list[int], body: object, pointer: str, said: str) -> None:
    job = await confirm(paying, paid)
    found = problem(await settle(paying, job, body), 422)
    assert found["errors"][0]["pointer"] == pointer
    assert said in found["errors"][0]["reason"]
    assert (await paying.counts())["settlements"] == 0


async def test_a_job_that_waits_for_something_else_says_for_what(paying: Api, paid: list[int]) -> None:
    job = await paying.submit(workflow="paying", input={})
    assert "a worker is running it" in problem(await settle(paying, job, DONE), 409)["detail"]
    await run(paying, job["id"], paid)
    found = problem(await settle(paying, job, DONE), 409)
    assert found["detail"].endswith("it does not wait for settlement: it waits for the signal confirmation")
    nobody = {"id": "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5a6b"}
    problem(await settle(paying, nobody, DONE), 404)
    assert (await paying.counts())["settlements"] == 0


async def test_who_names_another_call_settles_nothing(paying: Api, paid: list[int]) -> None:
    job = await confirm(paying, paid)
    found = problem(await settle(paying, job, DONE | {"key": "another"}), 409)
    assert job["settlement"]["key"] in found["detail"]
    assert (await paying.counts())["settlements"] == 0


async def test_a_request_to_cancel_is_kept_and_said_until_it_is_settled(paying: Api, paid: list[int]) -> None:
    job = await confirm(paying, paid)
    assert (await paying.client.post(f"/v1/jobs/{job['id']}/cancel")).status_code == 202
    kept = await run(paying, job["id"], paid)
    assert (kept["status"], kept["waiting_for"], kept["cancel_requested"]) == ("waiting", "settlement", True)
    assert (await settle(paying, job, DONE)).status_code == 202
    done = await run(paying, job["id"], paid)
    assert (done["status"], done["state"]) == ("cancelled", "pay")
    [call] = await paying.rows("SELECT body -> 'result' AS result, error_kind FROM visits WHERE kind = 'tool'")
    assert call == {"result": {"receipt": 7}, "error_kind": None}
    assert paid == [36]


async def test_a_server_that_lacks_the_tool_takes_only_what_needs_no_check(
    paying: Api, paid: list[int], start: Start
) -> None:
    job = await confirm(paying, paid)
    bare = await start(kit=Kit({}, {}))
    found = problem(await settle(bare, job, DONE), 503)
    assert "STEPLADDER_APP" in found["remedy"]
    assert (await settle(bare, job, NOT_DONE)).status_code == 202


async def test_a_settled_job_that_is_to_end_ends_where_its_tools_are_gone(
    paying: Api, paid: list[int], start: Start
) -> None:
    job = await confirm(paying, paid)
    bare = await start(kit=Kit({}, {}))
    await bare.client.post(f"/v1/jobs/{job['id']}/cancel")
    async with bare.worker(kit=Kit({}, {})) as worker:
        await worker.drive(UUID(job["id"]))
        assert (await bare.job(job["id"]))["status"] == "waiting"
        assert (await settle(bare, job, NOT_DONE)).status_code == 202
        await worker.drive(UUID(job["id"]))
    assert (await bare.job(job["id"]))["status"] == "cancelled"


async def test_settling_wants_a_scope_of_its_own(paying: Api, paid: list[int], start: Start) -> None:
    job = await confirm(paying, paid)
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
