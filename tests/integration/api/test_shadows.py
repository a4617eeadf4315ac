"""A variant shadowing a share of live jobs."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from stepladder.cli.comparison import print_experiment
from stepladder.models.ids import uuid7
from stepladder.runner.machines import Machines
from stepladder.schemas.experiment import Experiment
from stepladder.services.experiments import hand_out_shadows, is_chosen
from stepladder.services.replays import Replays

from .conftest import BILL, KIT, PAYING, problem

if TYPE_CHECKING:
    from uuid import UUID

    from .conftest import Api

READING = """
name: reading
version: 1
start: sum
states:
  sum:
    ask: "Sum up."
    output: {type: object, properties: {total: {type: integer}}, required: [total], additionalProperties: false}
    rules: [{id: arithmetic, check: "output.total == 36", pointer: /total, reason: must be 36}]
    next: done
  done: {end: succeeded, result: {total: turns.sum.total}}
"""
LOOSER = {"set": {"states.sum.rules.0.check": "output.total > 0"}, "share": 1.0}
SHADOW = "/v1/workflows/reading/1/shadow"


async def live(api: Api, *answers: Any) -> str:
    job: str = (await api.submit(workflow="reading", input={}))["id"]
    await api.drive(job, *answers)
    return job


async def hand_out(api: Api) -> list[UUID]:
    replays = Replays(api.store.database, api.store, Machines(api.store, KIT))
    return await hand_out_shadows(api.store, replays, settled_s=0.0)


@pytest.fixture
async def reading(api: Api) -> Api:
    await api.publish(READING)
    return api


async def test_a_live_job_has_one_shadow_and_is_compared_with_it(reading: Api) -> None:
    before = await live(reading, {"total": 36})
    started = await reading.client.post(SHADOW, json=LOOSER)
    assert started.status_code == 202, started.text
    job = await live(reading, {"total": 35}, {"total": 36})
    [shadow] = await hand_out(reading)
    assert await hand_out(reading) == []
    await reading.drive(shadow, {"total": 35})
    found = await reading.job(str(shadow))
    assert (found["replay_of"], found["status"], found["priority"], found["result"]) == (
        job, "succeeded", -1000, {"total": 35},
    )  # fmt: skip
    assert await hand_out(reading) == []  # a shadow has no shadow
    shown = (await reading.client.get(started.headers["location"])).json()
    assert [(run["arm"], run["job"]) for run in shown["runs"]] == [("a", job), ("b", str(shadow))]
    assert (shown["kind"], shown["samples"], shown["share"]) == ("shadow", 1, 1.0)
    assert shown["arms"]["a"]["rates"]["validity"]["value"] == 0.5
    assert shown["arms"]["b"]["rates"]["validity"]["value"] == 1.0
    assert shown["difference"]["per_job"]["tokens"]["value"] < 0
    assert before not in str(shown)
    page = Console(file=StringIO(), record=True, width=100)
    print_experiment(page, Experiment(**shown))
    assert "shadowing 100% of live jobs, 1 so far" in (text := page.export_text())
    assert all(len(line) <= 100 for line in text.splitlines()), text


async def test_a_shadow_changes_neither_rates_nor_the_live_job(reading: Api) -> None:
    await reading.client.post(SHADOW, json=LOOSER)
    job = await live(reading, {"total": 36})
    rates = (await reading.client.get("/v1/stats")).json()["workflows"]
    row = await reading.rows("SELECT * FROM jobs WHERE id = %s", job)
    [shadow] = await hand_out(reading)
    await reading.drive(shadow, {"total": 35})
    assert (await reading.client.get("/v1/stats")).json()["workflows"] == rates
    assert await reading.rows("SELECT * FROM jobs WHERE id = %s", job) == row


async def test_a_shadow_that_a_lost_worker_wrote_is_not_written_again(reading: Api) -> None:
    await reading.client.post(SHADOW, json=LOOSER)
    await live(reading, {"total": 36})
    assert len(await hand_out(reading)) == 1
    await reading.rows("UPDATE experiments SET after_at = created_at, after_id = id")
    assert await hand_out(reading) == []
    assert len(await reading.rows("SELECT id FROM jobs WHERE experiment IS NOT NULL")) == 1


async def test_after_a_stop_no_shadow_job_starts_until_another_shadow_does(reading: Api) -> None:
    assert (await reading.client.post(SHADOW, json=LOOSER)).status_code == 202
    assert "shadow-runs" in problem(await reading.client.post(SHADOW, json=LOOSER), 409)["type"]
    stopped = await reading.client.post(f"{SHADOW}/stop")
    assert stopped.status_code == 202
    assert stopped.json()["stopped_at"] is not None
    await live(reading, {"total": 36})
    assert await hand_out(reading) == []
    problem(await reading.client.post(f"{SHADOW}/stop"), 404)
    assert (await reading.client.post(SHADOW, json=LOOSER)).status_code == 202


@pytest.mark.parametrize(
    ("document", "name", "words"), [(BILL, "bill", "the wait approve"), (PAYING, "paying", "tool pay")]
)
async def test_a_workflow_that_acts_or_waits_has_no_shadow(api: Api, document: str, name: str, words: str) -> None:
    await api.publish(document)
    body = {"set": {"limits.max_turns": 3}, "share": 0.5}
    found = problem(await api.client.post(f"/v1/workflows/{name}/1/shadow", json=body), 422)
    assert words in found["detail"]
    assert (await api.counts())["experiments"] == 0


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        (SHADOW, {"share": 0.1}, 422),
        (SHADOW, LOOSER | {"share": 0}, 422),
        (SHADOW, LOOSER | {"share": 1.5}, 422),
        (SHADOW, {"set": {"states.sun.ask": "x"}, "share": 1.0}, 422),
        ("/v1/workflows/reading/9/shadow", LOOSER, 404),
    ],
)
async def test_an_invalid_shadow_is_refused(reading: Api, path: str, body: Any, status: int) -> None:
    problem(await reading.client.post(path, json=body), status)


def test_the_same_share_of_jobs_is_chosen_each_time() -> None:
    shadow, jobs = uuid7(), [uuid7() for _ in range(2000)]
    chosen = [is_chosen(shadow, job, 0.25) for job in jobs]
    assert 400 < sum(chosen) < 600
    assert chosen == [is_chosen(shadow, job, 0.25) for job in jobs]
    assert all(is_chosen(shadow, job, 1.0) for job in jobs)
