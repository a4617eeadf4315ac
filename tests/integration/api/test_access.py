"""Access: keys with scopes, and without keys only from this machine."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from uuid import UUID

import httpx
import pytest
import structlog
from starlette.responses import PlainTextResponse

from stepladder.api.access import parse_keys
from stepladder.api.app import create_app
from stepladder.api.serve import serve
from stepladder.models.database import Database
from stepladder.models.store import Store
from stepladder.queries.reads import Reads
from stepladder.schemas.errors import BadInputError

from .conftest import BILL, GOOD, KIT, MISSING_ID, problem

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from stepladder.api.app import Application

    from .conftest import Api, Start

KEYS = [
    {"name": "reader", "key": "r-key", "scopes": ["jobs:read"]},
    {"name": "worker", "key": "w-key", "scopes": ["jobs:write", "jobs:read", "usage:read"]},
    {"name": "boss", "key": "b-key", "scopes": ["admin"]},
    {"name": "all", "key": "a-key", "scopes": ["*"]},
]
OPEN = ("/healthz", "/readyz")


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def application(database: Database) -> Application:
    return create_app(database, Store(database), Reads(database), KIT, lambda _: None)


@pytest.fixture
async def keyed(start: Start) -> Api:
    return await start(keys=parse_keys(json.dumps(KEYS)))


async def test_every_route_but_health_needs_a_key(keyed: Api) -> None:
    spec = (await keyed.client.get("/openapi.json", headers=bearer("r-key"))).json()
    routes = [(method, path) for path, item in spec["paths"].items() for method in item if path not in OPEN]
    assert len(routes) > 15
    before = await keyed.counts()
    for method, path in [*routes, ("get", "/openapi.json"), ("get", "/nowhere"), ("get", "/"), ("delete", "/v1/jobs")]:
        ids = dict.fromkeys(("job_id", "other", "attempt_id", "replay_id", "experiment_id"), MISSING_ID)
        filled = path.format(**ids, name="approval", version=1)
        for headers in ({}, bearer("wrong"), {"Authorization": "Basic cjprZXk="}, {"Authorization": "Bearer"}):
            answer = await keyed.client.request(method, filled, headers=headers)
            problem(answer, 401)
            assert answer.headers["www-authenticate"].startswith("Bearer")
    assert await keyed.counts() == before
    for path in OPEN:
        assert (await keyed.client.get(path)).status_code == 200


async def test_each_scope_opens_its_own_routes(keyed: Api) -> None:
    async def post(path: str, key: str, **options: object) -> httpx.Response:
        return await keyed.client.post(path, headers=bearer(key), **options)  # type: ignore[arg-type]  # httpx's own

    for key in ("r-key", "w-key"):
        found = problem(await post("/v1/workflows", key, content=BILL), 403)
        assert "workflows:write" in found["detail"]
    assert (await post("/v1/workflows", "b-key", content=BILL)).status_code == 201
    before = await keyed.counts()
    problem(await post("/v1/jobs", "r-key", json=GOOD), 403)
    assert await keyed.counts() == before
    job = (await post("/v1/jobs", "w-key", json=GOOD)).json()
    assert job["principal"] == "worker"
    assert (await keyed.client.get(f"/v1/jobs/{job['id']}", headers=bearer("r-key"))).status_code == 200
    for word in ("cancel", "pause", "unpause"):
        problem(await post(f"/v1/jobs/{job['id']}/{word}", "r-key"), 403)
    problem(await post(f"/v1/jobs/{job['id']}/signals/approval", "w-key", json={"action": "approve"}), 403)
    sent = await post(f"/v1/jobs/{job['id']}/signals/approval", "b-key", json={"action": "approve"})
    assert sent.status_code == 202


@pytest.mark.parametrize(
    ("key", "scopes"), [("w-key", ["jobs:read", "jobs:write", "usage:read"]), ("b-key", ["admin"]), ("a-key", None)]
)
async def test_a_job_keeps_the_scopes_of_its_key(keyed: Api, key: str, scopes: list[str] | None) -> None:
    await keyed.client.post("/v1/workflows", content=BILL, headers=bearer("b-key"))
    job = (await keyed.client.post("/v1/jobs", json=GOOD, headers=bearer(key))).json()
    [row] = await keyed.rows("SELECT scopes FROM jobs WHERE id = %s", UUID(job["id"]))
    assert row["scopes"] == scopes


async def test_no_key_is_ever_logged(keyed: Api) -> None:
    with structlog.testing.capture_logs() as logs:
        await keyed.client.get("/v1/jobs?metadata.token=in-the-query", headers=bearer("r-key"))
        await keyed.client.get("/v1/jobs", headers=bearer("a-wrong-key"))
    assert [log["principal"] for log in logs if log["event"] == "request"] == ["reader", None]
    for secret in ("r-key", "a-wrong-key", "in-the-query"):
        assert secret not in repr(logs)


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example:8700"},
        {"Host": "[half"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"X-Forwarded-For": "203.0.113.9"},
        {"Forwarded": "for=127.0.0.1"},
    ],
)
async def test_without_keys_no_web_page_and_no_proxy_reaches_the_api(bill: Api, headers: dict[str, str]) -> None:
    before = await bill.counts()
    problem(await bill.client.post("/v1/jobs", json=GOOD, headers=headers), 403)
    problem(await bill.client.get("/v1/jobs", headers=headers), 403)
    assert await bill.counts() == before
    assert (await bill.client.get("/healthz", headers=headers)).status_code == 200


@pytest.mark.parametrize("host", ["localhost:{port}", "127.0.0.1:{port}", "[::1]:{port}", "LOCALHOST"])
async def test_without_keys_local_host_names_are_accepted(bill: Api, host: str) -> None:
    host = host.format(port=httpx.URL(bill.url).port)
    headers = {"Host": host, "Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"}
    answer = await bill.client.post("/v1/jobs", json=GOOD, headers=headers)
    assert (answer.status_code, answer.json()["principal"]) == (202, "local")
    assert [row["scopes"] for row in await bill.rows("SELECT scopes FROM jobs")] == [None]


@pytest.mark.parametrize(
    ("client", "status"),
    [("127.0.0.1", 200), ("127.8.8.8", 200), ("::1", 200), ("::ffff:127.0.0.1", 200), ("192.0.2.7", 403), ("?", 403)],
)
async def test_without_keys_only_loopback_clients_are_served(database_url: str, client: str, status: int) -> None:
    async with Database(database_url) as database:
        transport = httpx.ASGITransport(application(database), client=(client, 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
            assert (await http.get("/v1/jobs")).status_code == status


@pytest.mark.parametrize(
    ("host", "message", "remedy"),
    [("0.0.0.0", "without API keys", "STEPLADDER_API_KEYS"), ("127.0.0.1", "cannot listen on 127", "another port")],  # noqa: S104 -- refused
    ids=["public", "in use"],
)
async def test_an_address_that_cannot_be_served_is_refused(
    api: Api, database_url: str, host: str, message: str, remedy: str
) -> None:
    app = application(Database(database_url))
    with pytest.raises(BadInputError, match=message) as caught:
        await serve(app, host, httpx.URL(api.url).port or 0)
    assert remedy in caught.value.remedy


async def test_every_answer_has_the_security_headers(bill: Api) -> None:
    for path in ("/v1/jobs", "/healthz", "/nowhere", "/metrics"):
        headers = (await bill.client.get(path)).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["cache-control"] == "no-store"
        assert "server" not in headers
        UUID(headers["x-request-id"])


async def test_the_dashboard_gets_every_path_outside_the_api(start: Start) -> None:
    async def dashboard(scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse(f"dashboard {scope['path']}")(scope, receive, send)

    api = await start(keys=parse_keys(json.dumps(KEYS)), dashboard=lambda _: dashboard)
    for path in ("/", "/login", "/jobs/5"):
        assert (await api.client.get(path)).text == f"dashboard {path}"
    for path in ("/v1/jobs", "/v1/nowhere", "/v1", "/metrics", "/openapi.json"):
        problem(await api.client.get(path), 401)
    problem(await api.client.get("/v1/nowhere", headers=bearer("r-key")), 404)
    problem(await api.client.delete("/v1/jobs", headers=bearer("r-key")), 405)
