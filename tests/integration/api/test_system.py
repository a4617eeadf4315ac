"""Health, readiness, metrics, engines, and the specification."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

import jsonschema

from stepladder.engine.client import EngineClient
from stepladder.engine.identity import identify
from stepladder.models.tally import Judged, Tallies
from stepladder.testing import Answer, ScriptedEngine, eventually

from .conftest import problem

if TYPE_CHECKING:
    import pytest

    from .conftest import Api, Start


async def numbers(api: Api) -> dict[str, float]:
    answer = await api.client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    lines = [line for line in answer.text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


async def test_ready_is_who_reaches_the_database_and_the_engine(start: Start) -> None:
    async with ScriptedEngine() as engine, EngineClient(engine.url) as client:
        api = await start(identify=lambda: identify(client))
        ready = await api.client.get("/readyz")
        assert (ready.status_code, ready.json()["status"]) == (200, "ready")
        assert [check["name"] for check in ready.json()["checks"]] == ["database", "engine"]
        [found] = (await api.client.get("/v1/engines")).json()["engines"]
        assert (found["model"], found["version"], found["kind"]) == ("scripted", "0.32.0", "vllm")
        engine.down()
        down = await api.client.get("/readyz")
        assert (down.status_code, down.json()["status"]) == (503, "not_ready")
        assert [check["ok"] for check in down.json()["checks"]] == [True, False]
        problem(await api.client.get("/v1/engines"), 503)
        assert (await api.client.get("/healthz")).json() == {"status": "ok"}


async def test_without_an_engine_the_database_is_enough(api: Api) -> None:
    assert (await api.client.get("/readyz")).status_code == 200
    assert (await api.client.get("/v1/engines")).json() == {"engines": []}


async def test_metrics_count_in_the_words_of_the_outcomes(bill: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stepladder.api.metrics.FRESH_S", 0.0)
    done, paused, _ = [await bill.submit() for _ in range(3)]
    await bill.client.post(f"/v1/jobs/{paused['id']}/pause")
    wrong = [Answer({"total": n}, prompt_tokens=10, completion_tokens=5) for n in (1, 2, 3)]
    async with bill.worker(*wrong) as worker:
        await worker.drive(UUID(done["id"]))
    first = await numbers(bill)
    failed = 'stepladder_attempts_total{cause="arithmetic",outcome="semantic",workflow="bill"}'
    assert first[failed] == 3
    assert first['stepladder_tokens_total{kind="prompt",workflow="bill"}'] == 30
    assert first['stepladder_jobs_ended_total{failure="attempts_exhausted",status="failed",workflow="bill"}'] == 1
    by_status = [first[f'stepladder_jobs{{status="{word}"}}'] for word in ("queued", "paused", "failed", "running")]
    assert by_status == [1, 1, 1, 0]
    assert (first["stepladder_queue_jobs"], first["stepladder_jobs_in_hand"]) == (1, 0)
    assert first["stepladder_queue_age_seconds"] > 0
    posted = 'stepladder_http_requests_total{method="POST",route="/v1/jobs",status="202"}'
    assert first[posted] == 3


async def test_what_settles_between_two_readings_is_counted_once(bill: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stepladder.models.tally.SETTLED_AFTER_S", 1.0)
    tallies = Tallies(bill.reads._database)
    wrong = Judged("bill", "semantic", "arithmetic")

    async def is_settled(jobs: int) -> bool:
        tally = await tallies.read()
        assert (tally.attempts[wrong], sum(tally.ended.values())) == (3 * jobs, jobs)
        assert tally.prompt_tokens["bill"] == 3 * jobs * 10
        return tallies._attempts[wrong] == 3 * jobs

    for jobs in (1, 2):
        job = await bill.submit()
        async with bill.worker(*(Answer({"total": n}, prompt_tokens=10) for n in (1, 2, 3))) as worker:
            await worker.drive(UUID(job["id"]))
        assert not await is_settled(jobs)
        await eventually(partial(is_settled, jobs), 20, what="the tallies are settled")


async def test_paths_that_anybody_makes_up_make_no_new_metrics(api: Api) -> None:
    for n in range(5):
        await api.client.get(f"/nowhere/{n}")
        await api.client.request(f"BREW{n}", "/v1/jobs")
    counted = [name for name in await numbers(api) if name.startswith("stepladder_http_requests_total")]
    assert not [name for name in counted if re.search(r"nowhere|BREW", name)]
    assert len(counted) <= 3


async def test_the_specification_is_whole_and_its_examples_fit(api: Api) -> None:
    spec = (await api.client.get("/openapi.json")).json()
    assert spec["openapi"].startswith("3.1")
    promised = {
        "/v1/workflows": {"get", "post"},
        "/v1/workflows/{name}/{version}": {"get"},
        "/v1/jobs": {"get", "post"},
        "/v1/jobs/batch": {"post"},
        "/v1/jobs/{job_id}": {"get"},
        "/v1/jobs/{job_id}/turns": {"get"},
        "/v1/attempts/{attempt_id}/raw": {"get"},
        "/v1/jobs/{job_id}/events": {"get"},
        "/v1/jobs/{job_id}/cancel": {"post"},
        "/v1/jobs/{job_id}/pause": {"post"},
        "/v1/jobs/{job_id}/unpause": {"post"},
        "/v1/jobs/{job_id}/signals/{name}": {"post"},
        "/v1/engines": {"get"},
        "/metrics": {"get"},
        "/healthz": {"get"},
        "/readyz": {"get"},
    }
    assert {path: set(item) for path, item in spec["paths"].items()} == promised
    assert _broken_references(spec) == []
    examples = 0
    for name, schema in spec["components"]["schemas"].items():
        for example in [schema["example"]] if "example" in schema else []:
            whole = {"$ref": f"#/components/schemas/{name}", "components": spec["components"]}
            jsonschema.Draft202012Validator(whole).validate(example)
            examples += 1
    assert examples >= 5


def _broken_references(spec: dict[str, Any]) -> list[str]:
    text = json.dumps(spec)
    names = set(re.findall(r'"#/components/schemas/([^"]+)"', text))
    return sorted(names - set(spec["components"]["schemas"]))
