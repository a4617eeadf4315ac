"""Two jobs beside each other over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from .conftest import problem

if TYPE_CHECKING:
    from .conftest import Api

NOBODY = "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5a6b"


async def ran(api: Api, *answers: Any, signal: Any = None, **fields: Any) -> str:
    job: str = (await api.submit(**fields))["id"]
    async with api.worker(*answers) as driver:
        await driver.drive(UUID(job))
        if signal is not None:
            await api.client.post(f"/v1/jobs/{job}/signals/approval", json=signal)
            await driver.drive(UUID(job))
    return job


async def test_a_retry_and_another_decision_are_differences(bill: Api) -> None:
    was = await ran(bill, {"total": 36}, signal={"action": "approve"})
    now = await ran(bill, {"total": 35}, {"total": 36}, signal={"action": "refuse", "by": "me"}, input={"team": "x"})
    answer = await bill.client.get(f"/v1/jobs/{was}/diff/{now}")
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert found["same"] is False
    assert found["input"] == [{"kind": "changed", "pointer": "/team", "was": "search", "now": "x"}]
    assert found["result"] == [{"kind": "changed", "pointer": "", "was": {"total": 36}, "now": None}]
    turn, wait = found["visits"]
    assert (turn["kind"], turn["state"], turn["differs"], turn["output"]) == ("turn", "sum", ["attempts"], [])
    assert (turn["was"]["attempts"], turn["now"]["attempts"]) == (1, 2)
    assert turn["now"]["tokens"] > turn["was"]["tokens"] > 0
    assert (wait["kind"], wait["differs"]) == ("wait", ["action", "output"])
    assert {change["pointer"]: change["kind"] for change in wait["output"]} == {"/action": "changed", "/by": "added"}
    assert (found["job"]["status"], found["other"]["failure"]) == ("succeeded", "rejected")


async def test_a_job_is_the_same_as_itself(bill: Api) -> None:
    job = await ran(bill, {"total": 36})
    found = (await bill.client.get(f"/v1/jobs/{job}/diff/{job}")).json()
    assert (found["same"], [visit["differs"] for visit in found["visits"]]) == (True, [[], []])


async def test_an_unknown_job_is_not_found(bill: Api) -> None:
    job = (await bill.submit())["id"]
    problem(await bill.client.get(f"/v1/jobs/{job}/diff/{NOBODY}"), 404)
    problem(await bill.client.get(f"/v1/jobs/{NOBODY}/diff/{job}"), 404)
    problem(await bill.client.get(f"/v1/jobs/{job}/diff/me"), 404)
