"""Health, readiness, engines, and the specification."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import jsonschema

from stepladder.engine.client import EngineClient
from stepladder.engine.identity import identify
from stepladder.models.database import Database
from stepladder.models.ids import uuid7
from stepladder.models.shares import renew_share
from stepladder.testing import ScriptedEngine

from .conftest import problem

if TYPE_CHECKING:
    from .conftest import Api, Start


GET = """
    /v1/workflows /v1/workflows/{name}/{version} /v1/jobs /v1/jobs/{job_id} /v1/jobs/{job_id}/turns
    /v1/attempts/{attempt_id}/raw /v1/attempts/{attempt_id}/request /v1/jobs/{job_id}/visits
    /v1/jobs/{job_id}/events /v1/jobs/{job_id}/diff/{other} /v1/experiments /v1/experiments/{experiment_id}
    /v1/replays/{replay_id} /v1/stats /v1/engines /metrics /healthz /readyz
"""
POST = """
    /v1/workflows /v1/jobs /v1/jobs/batch /v1/jobs/{job_id}/hold /v1/jobs/{job_id}/release /v1/jobs/{job_id}/cancel
    /v1/jobs/{job_id}/pause /v1/jobs/{job_id}/unpause /v1/jobs/{job_id}/signals/{name} /v1/jobs/{job_id}/settle
    /v1/experiments /v1/workflows/{name}/{version}/shadow /v1/workflows/{name}/{version}/shadow/stop
    /v1/jobs/{job_id}/replays /v1/replays /v1/replays/{replay_id}/stop /v1/workflows/{name}/pause
    /v1/workflows/{name}/unpause /v1/workflows/{name}/{version}/pause /v1/workflows/{name}/{version}/unpause
    /v1/workflows/{name}/{version}/retire /v1/workflows/{name}/{version}/unretire
"""


async def test_readiness_needs_the_database_and_the_engine(start: Start) -> None:
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
    assert (await api.client.get("/v1/engines")).json() == {"engines": [], "slots": []}


async def test_the_limit_of_an_engine_is_shown_with_what_is_in_use(api: Api) -> None:
    async with Database(api.database_url) as database:
        for _ in range(2):
            await renew_share(database, "http://gpu/v1", uuid7(), 9, keep=0, in_use=1, wanted=4, lease_s=60.0)
    used = {"engine": "http://gpu/v1", "bound": 9, "in_use": 2, "wanted": 8, "workers": 2}
    assert (await api.client.get("/v1/engines")).json()["slots"] == [used]
    lines = (await api.client.get("/metrics")).text.splitlines()
    found = [line.split()[1] for line in lines if line.startswith("stepladder_engine_slots")]
    assert found == ["9.0", "2.0", "8.0"]


async def test_the_specification_lists_every_route_and_its_examples_fit(api: Api) -> None:
    spec = (await api.client.get("/openapi.json")).json()
    assert spec["openapi"].startswith("3.1")
    routes = {(method, path) for path, item in spec["paths"].items() for method in item}
    assert routes == {("get", path) for path in GET.split()} | {("post", path) for path in POST.split()}
    references = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(spec)))
    assert references <= set(spec["components"]["schemas"])
    examples = 0
    for name, schema in spec["components"]["schemas"].items():
        for example in [schema["example"]] if "example" in schema else []:
            whole = {"$ref": f"#/components/schemas/{name}", "components": spec["components"]}
            jsonschema.Draft202012Validator(whole).validate(example)
            examples += 1
    assert examples >= 5
