"""A wait that only a second principal may answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from stepladder.api.access import parse_keys
from stepladder.models.ids import uuid7
from stepladder.schemas.actor import Actor

from .conftest import PAYING, problem

if TYPE_CHECKING:
    import httpx

    from .conftest import Api, Start

SENDS = ["jobs:read", "jobs:write", "signals:write", "workflows:write"]
KEYS = [
    {"name": "clerk", "key": "clerk-key", "scopes": SENDS},
    {"name": "peer", "key": "peer-key", "scopes": SENDS},
    {"name": "boss", "key": "boss-key", "scopes": [*SENDS, "refund:approve"]},
    {"name": "root", "key": "root-key", "scopes": ["admin"]},
    {"name": "all", "key": "all-key", "scopes": ["*"]},
]
ASKING = """
name: asking
version: 1
start: confirm
states:
  confirm:
    wait: {signal: approval, by: other, scopes: [refund:approve], show: {cents: "36"}}
    next: {approve: done}
  done: {end: succeeded}
"""
OPEN = ASKING.replace("asking", "open").replace(", scopes: [refund:approve]", "")
SAID = {"action": "approve"}


@pytest.fixture
async def asking(start: Start) -> Api:
    api = await start(keys=parse_keys(json.dumps(KEYS)))
    api.client.headers["Authorization"] = "Bearer clerk-key"
    for document in (ASKING, OPEN):
        await api.publish(document)
    return api


async def waiting(api: Api, workflow: str = "asking", *, drive: bool = True) -> str:
    job = await api.submit(workflow=workflow, input={})
    if drive:
        await api.drive(job["id"])
    return str(job["id"])


async def send(api: Api, job_id: str, key: str, said: Any = SAID, **headers: str) -> httpx.Response:
    sent = headers | {"Authorization": f"Bearer {key}"}
    return await api.client.post(f"/v1/jobs/{job_id}/signals/approval", json=said, headers=sent)


@pytest.mark.parametrize(
    ("workflow", "key", "said"),
    [
        ("asking", "clerk-key", "must not come from clerk, whose job it is, and needs the scope refund:approve"),
        ("asking", "peer-key", "peer lacks refund:approve"),
        ("asking", "root-key", "root lacks refund:approve"),
        ("open", "clerk-key", "this one comes from clerk"),
    ],
)
@pytest.mark.parametrize("drive", [True, False], ids=["open", "early"])
async def test_the_wrong_sender_is_refused_told_who_may_and_not_stored(
    asking: Api, workflow: str, key: str, said: str, drive: bool
) -> None:
    job_id = await waiting(asking, workflow, drive=drive)
    before = await asking.counts()
    found = problem(await send(asking, job_id, key, **{"Idempotency-Key": "k"}), 403)
    assert said in found["detail"].replace("is and", "is, and")
    assert "state confirm" in found["detail"]
    assert "a key that may" in found["remedy"]
    assert await asking.counts() == before
    assert (await asking.drive(job_id))["status"] == "waiting"


@pytest.mark.parametrize("drive", [True, False], ids=["open", "early"])
@pytest.mark.parametrize(("workflow", "key", "name"), [
    ("asking", "boss-key", "boss"), ("asking", "all-key", "all"), ("open", "peer-key", "peer"),
])  # fmt: skip
async def test_the_right_sender_is_accepted_and_named_in_the_history(
    asking: Api, workflow: str, key: str, name: str, drive: bool
) -> None:
    job_id = await waiting(asking, workflow, drive=drive)
    assert (await send(asking, job_id, key)).status_code == 202
    assert (await asking.drive(job_id))["status"] == "succeeded"
    events = await asking.events(job_id)
    [taken] = [event for event in events if event["kind"] == "signal_taken"]
    assert taken["data"]["by"] == name
    [row] = await asking.rows("SELECT by, scopes FROM signals WHERE job_id = %s", UUID(job_id))
    assert row["by"] == name
    assert row["scopes"] == (None if name == "all" else sorted(next(k["scopes"] for k in KEYS if k["name"] == name)))


async def test_a_job_shows_who_may_answer(asking: Api) -> None:
    again = await asking.client.post("/v1/workflows", content=ASKING)
    assert (again.status_code, again.json()["warnings"]) == (200, [])
    wait = (await asking.job(await waiting(asking)))["wait"]
    assert (wait["by"], wait["scopes"]) == ("other", ["refund:approve"])


async def test_the_machine_checks_the_sender_again(asking: Api) -> None:
    """By the sender that is stored with the signal, whatever the API let through."""
    job_id = await waiting(asking, drive=False)
    await asking.store.signal(UUID(job_id), uuid7(), "approval", SAID, Actor("clerk"))
    assert (await asking.drive(job_id))["status"] == "waiting"
    events = await asking.events(job_id)
    assert [event["data"]["by"] for event in events if event["kind"] == "signal_refused"] == ["clerk"]


async def test_an_idempotency_key_belongs_to_its_principal(asking: Api) -> None:
    """The same key of another principal never looks like a duplicate."""
    job_id = await waiting(asking)
    assert (await send(asking, job_id, "boss-key", **{"Idempotency-Key": "k"})).status_code == 202
    assert (await send(asking, job_id, "boss-key", **{"Idempotency-Key": "k"})).status_code == 200
    found = problem(await send(asking, job_id, "all-key", **{"Idempotency-Key": "k"}), 422)
    assert found["type"].endswith("idempotency-key-reused")


async def test_a_second_principal_confirms_an_irreversible_tool(asking: Api) -> None:
    document = PAYING.replace("signal: confirmation", "signal: approval\n      by: other")
    await asking.publish(document)
    job_id = await waiting(asking, "paying")
    wait = (await asking.job(job_id))["wait"]
    said = {"action": "yes", "wait_id": wait["wait_id"]}
    problem(await send(asking, job_id, "clerk-key", said), 403)
    problem(await send(asking, job_id, "peer-key", {"action": "yes"}), 422)
    assert (await send(asking, job_id, "peer-key", said)).status_code == 202
    assert (await asking.drive(job_id))["status"] == "succeeded"


async def test_without_keys_nobody_else_can_answer(api: Api) -> None:
    answer = await api.client.post("/v1/workflows", content=ASKING)
    assert [warning["code"] for warning in answer.json()["warnings"]] == ["nobody_else"]
    job_id = await waiting(api)
    found = problem(await api.signal(job_id, SAID), 403)
    assert "STEPLADDER_API_KEYS" in found["remedy"]
