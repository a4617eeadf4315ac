"""Two variants on the same inputs over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from .conftest import PAYING, problem
from .test_reads import CHILD, PARENT

if TYPE_CHECKING:
    from .conftest import Api

TEAMS = [{"team": f"t{number}"} for number in range(6)]
CHANGED = {"b": {"set": {"states.sum.rules.0.check": "output.total == 35", "states.sum.ask": "For {{ input.team }}."}}}
ORDER = {"workflow": "bill", "inputs": TEAMS, "name": "shorter", **CHANGED}


async def order(api: Api, **fields: Any) -> Any:
    return await api.client.post("/v1/experiments", json=ORDER | fields)


async def run_all(api: Api, experiment: Any) -> None:
    """An engine that always says 35, which variant a rejects twice, and b accepts."""
    async with api.worker(respond=lambda _: {"total": 35}) as driver:
        for run in experiment["runs"]:
            await driver.drive(UUID(run["job"]))


async def test_both_variants_run_on_every_input_and_are_compared(bill: Api) -> None:
    answer = await order(bill)
    assert answer.status_code == 202, answer.text
    ordered = answer.json()
    assert (ordered["jobs"], ordered["at_rest"], ordered["samples"]) == (12, 0, 6)
    assert sorted(str(job) for job in bill.notified) == sorted(run["job"] for run in ordered["runs"])
    await run_all(bill, ordered)
    found = (await bill.client.get(answer.headers["location"])).json()
    assert found["at_rest"] == 12
    first, second = found["arms"]["a"], found["arms"]["b"]
    assert (first["jobs"], second["jobs"]) == ({"failed": 6}, {"waiting": 6})
    assert first["outcomes"] == [{"outcome": "semantic", "cause": "arithmetic", "attempts": 12}]
    assert first["rates"]["validity"]["value"] == 0
    assert second["rates"]["validity"]["value"] == second["rates"]["first_pass_format"]["value"] == 1
    assert found["difference"]["rates"]["validity"]["clear"] is True
    assert found["difference"]["rates"]["first_pass_format"]["clear"] is False
    tokens = found["difference"]["per_job"]["tokens"]
    assert tokens["clear"] is True
    assert tokens["value"] < 0
    assert tokens["count"] == 6
    assert found["difference"]["per_job"]["cost"] is None


async def test_every_job_names_its_variant_and_input(bill: Api) -> None:
    found = (await order(bill)).json()
    rows = await bill.rows("SELECT arm, sample, variant, priority, input FROM jobs ORDER BY sample, arm")
    assert [(row["arm"], row["sample"]) for row in rows] == [(arm, n) for n in range(1, 7) for arm in ("a", "b")]
    assert all(row["input"] == TEAMS[row["sample"] - 1] for row in rows)
    assert {row["priority"] for row in rows} == {-10}
    assert {(row["arm"], row["variant"] is None) for row in rows} == {("a", True), ("b", False)}
    [event] = await bill.events(found["runs"][1]["job"])
    assert event["data"] == {"experiment": found["id"], "arm": "b", "sample": 1, "set": CHANGED["b"]["set"]}


async def test_experiments_are_not_counted_in_the_rates_of_live_jobs(bill: Api) -> None:
    live = (await bill.submit())["id"]
    await bill.drive(live, {"total": 36})
    before = (await bill.client.get("/v1/stats")).json()["workflows"]
    rates = await bill.rows("SELECT * FROM failure_rates")
    metrics = (await bill.client.get("/metrics")).text
    await run_all(bill, (await order(bill)).json())
    assert (await bill.client.get("/v1/stats")).json()["workflows"] == before
    assert await bill.rows("SELECT * FROM failure_rates") == rates
    after = (await bill.client.get("/metrics")).text
    attempts = [[line for line in text.splitlines() if "attempts_total{" in line] for text in (metrics, after)]
    assert attempts[0]
    assert attempts[0] == attempts[1]


async def test_jobs_called_by_an_experiment_belong_to_it(api: Api) -> None:
    for document in (CHILD, PARENT):
        await api.publish(document)
    body = {"workflow": "two-words", "inputs": [{}], "b": {"set": {"limits.max_turns": 3}}}
    assert "workflow one-word" in problem(await api.client.post("/v1/experiments", json=body), 422)["detail"]
    found = (await api.client.post("/v1/experiments", json=body | {"effects": True})).json()
    async with api.worker(respond=lambda _: {"word": "yes"}) as driver:
        for run in found["runs"]:
            await driver.drive(UUID(run["job"]))
    rows = await api.rows("SELECT parent IS NULL AS own, arm FROM jobs WHERE experiment = %s", found["id"])
    assert sorted((row["own"], row["arm"]) for row in rows if row["own"]) == [(True, "a"), (True, "b")]
    assert [row["arm"] for row in rows if not row["own"]] == [None] * 4
    assert (await api.client.get("/v1/stats")).json()["workflows"] == []
    assert (await api.client.get(f"/v1/experiments/{found['id']}")).json()["jobs"] == 2


async def test_another_version_is_a_variant_too(bill: Api) -> None:
    document = (await bill.client.get("/v1/workflows/bill/1")).json()["document"]
    document["version"] = 2
    document["states"]["sum"]["rules"][0]["check"] = "output.total == 35"
    assert (await bill.client.post("/v1/workflows", json=document)).status_code == 201
    found = (await order(bill, version=1, b={"set": {"version": 2}})).json()
    rows = await bill.rows("SELECT arm, version, variant FROM jobs WHERE experiment = %s", found["id"])
    assert {(row["arm"], row["version"], row["variant"]) for row in rows} == {("a", 1, None), ("b", 2, None)}


async def test_the_same_key_gives_the_same_experiment(bill: Api) -> None:
    key = {"Idempotency-Key": "once"}
    first = await bill.client.post("/v1/experiments", json=ORDER, headers=key)
    second = await bill.client.post("/v1/experiments", json=ORDER, headers=key)
    assert (first.status_code, second.status_code) == (202, 200)
    assert first.json()["id"] == second.json()["id"]
    assert (await bill.counts())["experiments"] == 1
    problem(await bill.client.post("/v1/experiments", json=ORDER | {"name": "other"}, headers=key), 422)
    listed = (await bill.client.get("/v1/experiments")).json()["experiments"]
    assert [(one["id"], one["name"], one["changes"]["b"]) for one in listed] == [
        (first.json()["id"], "shorter", CHANGED["b"]["set"])
    ]


@pytest.mark.parametrize(
    ("fields", "status", "pointer", "words"),
    [
        ({"workflow": "nobody"}, 404, None, ""),
        ({"version": 7}, 404, None, ""),
        ({"inputs": []}, 422, "/inputs", ""),
        ({"inputs": [*TEAMS, {"team": 5}]}, 422, "/inputs", "input 7 does not fit"),
        ({"b": {"set": {"states.sun.ask": "x"}}}, 422, "/b/set", "no state"),
        ({"a": {"set": {"version": 9}}}, 422, "/a/set", "no version 9"),
        ({"b": {"colour": "red"}}, 422, "/b/colour", ""),
    ],
)
async def test_an_invalid_experiment_names_the_place_and_stores_nothing(
    bill: Api, fields: Any, status: int, pointer: str | None, words: str
) -> None:
    before = await bill.counts()
    found = problem(await order(bill, **fields), status)
    if pointer is not None:
        assert found["errors"][0]["pointer"] == pointer
        assert words in found["errors"][0]["reason"]
    assert await bill.counts() == before


async def test_effects_need_permission(api: Api) -> None:
    await api.publish(PAYING)
    body = {"workflow": "paying", "inputs": [{}], "b": {"set": {"limits.max_turns": 3}}}
    found = problem(await api.client.post("/v1/experiments", json=body), 422)
    assert found["errors"][0]["pointer"] == "/effects"
    assert "tool pay" in found["detail"]
    assert (await api.counts())["jobs"] == 0
    assert (await api.client.post("/v1/experiments", json=body | {"effects": True})).status_code == 202


async def test_a_nul_is_accepted_in_changes_and_refused_in_the_name(bill: Api) -> None:
    assert (await order(bill, b={"set": {"system": "a\0b"}})).status_code == 202
    problem(await order(bill, name="a\0b"), 422)
