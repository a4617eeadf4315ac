"""Bad requests: each is a problem that says what and where, and leaves no row behind."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import psycopg
import structlog
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from stepladder.api.body import MAX_BATCH_BYTES, MAX_BYTES
from stepladder.testing import eventually

from .conftest import BILL, GOOD, MISSING_ID, problem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from .conftest import Api, Start

JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True)
class Bad:
    """A request, and the answer that it must get: status, and where (pointer or parameter) for each error."""

    method: str
    path: str
    status: int
    where: tuple[str, ...] = ()
    body: Any = None
    content: bytes | None = None
    headers: dict[str, str] | None = None


def job(**fields: Any) -> dict[str, Any]:
    return GOOD | fields


def post(body: Any, status: int, *where: str, path: str = "/v1/jobs") -> Bad:
    return Bad("POST", path, status, where, body=body)


def raw(content: bytes, status: int, *, path: str = "/v1/jobs", **headers: str) -> Bad:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Bad("POST", path, status, content=content, headers=JSON | named)


BATCH = "/v1/jobs/batch"
COMMANDS = ("cancel", "pause", "unpause", "hold", "release")
MODES = ("revalidate", "resume", "fork")
UNPUBLISHED = ("nobody/pause", "nobody/1/retire", "bill/7/pause", "bill/7/retire", "bill/7/unretire")
CASES = {
    "unknown workflow": post(job(workflow="nobody"), 422, "/workflow"),
    "an impossible workflow name": post(job(workflow="No\0body"), 422, "/workflow"),
    "a version that does not exist": post(job(version=7), 422, "/version"),
    "a version too large": post(job(version=2**63), 422, "/version"),
    "input that breaks the schema": post(job(input={"team": 5, "more": 1}), 422, "/input", "/input/team"),
    "no input": post({"workflow": "bill"}, 422, ""),
    "an unknown field": post(job(inptu={}), 422, "/inptu"),
    "a priority that is text": post(job(priority="5"), 422, "/priority"),
    "a priority that no column holds": post(job(priority=2**40), 422, "/priority"),
    "a negative deadline": post(job(deadline_s=-1), 422, "/deadline_s"),
    "metadata of nested values": post(job(metadata={"a": {"b": 1}}), 422, "/metadata/a"),
    "metadata that cannot be stored": post(job(metadata={"a": "\0", "b\0": 1}), 422, "/metadata/a", "/metadata/b\0"),
    "a list in place of a job": post([], 422, ""),
    "a batch with one bad job": post({"jobs": [job(), job(input={}), job()]}, 422, "/jobs/1/input", path=BATCH),
    "a batch with several": post(
        {"jobs": [job(version=9), job(), job(workflow="x")]}, 422, "/jobs/0/version", "/jobs/2/workflow", path=BATCH
    ),
    "an empty batch": post({"jobs": []}, 422, "/jobs", path=BATCH),
    "a batch of too many jobs": post({"jobs": [job()] * 1001}, 422, "/jobs", path=BATCH),
    "not JSON": raw(b"{'workflow': 1}", 400),
    "an empty body": raw(b"", 400),
    "a duplicate key": raw(b'{"workflow": "bill", "workflow": "bill", "input": {"team": "a"}}', 400),
    "not a number": raw(b'{"workflow": "bill", "input": {"team": NaN}}', 400),
    "half a surrogate pair": raw(b'{"workflow": "bill", "input": {"team": "\\ud800"}}', 400),
    "bytes that are not UTF-8": raw(b'{"workflow": "\xff"}', 400),
    "too deep": raw(b'{"workflow": "bill", "input": ' + b"[" * 5000 + b"]" * 5000 + b"}", 400),
    "another kind of body": raw(b"<a/>", 415, Content_Type="application/xml"),
    "a compressed body": raw(b"\x1f\x8b", 415, Content_Encoding="gzip"),
    "a body one byte too long": raw(b'"' + b"a" * MAX_BYTES + b'"', 413),
    "a batch one byte too long": raw(b'"' + b"a" * MAX_BATCH_BYTES + b'"', 413, path=BATCH),
    "an empty idempotency key": raw(json.dumps(GOOD).encode(), 422, Idempotency_Key=""),
    "an endless idempotency key": raw(json.dumps(GOOD).encode(), 422, Idempotency_Key="k" * 256),
    "a cursor from elsewhere": Bad("GET", "/v1/jobs?cursor=bm9uc2Vuc2U", 422, ("cursor",)),
    "an invalid cursor": Bad("GET", "/v1/jobs?cursor=%00%ff", 422, ("cursor",)),
    "an unknown filter": Bad("GET", "/v1/jobs?stauts=failed", 422, ("stauts",)),
    "an unknown status": Bad("GET", "/v1/jobs?status=done", 422, ("status",)),
    "a limit of 0": Bad("GET", "/v1/jobs?limit=0", 422, ("limit",)),
    "an invalid time": Bad("GET", "/v1/jobs?created_after=yesterday", 422, ("created_after",)),
    "metadata with a NUL": Bad("GET", "/v1/jobs?metadata.a=%00", 422, ("metadata.a",)),
    "a replay of no id": Bad("GET", "/v1/jobs?replay_of=x", 422, ("replay_of",)),
    "an empty search": Bad("GET", "/v1/jobs?search=", 422, ("search",)),
    "a search too long": Bad("GET", f"/v1/jobs?search={'x' * 201}", 422, ("search",)),
    "a rule with a NUL": Bad("GET", "/v1/jobs?rule=%00", 422, ("rule",)),
    "statistics since no time": Bad("GET", "/v1/stats?since=yesterday", 422, ("since",)),
    "statistics of no workflow's name": Bad("GET", "/v1/stats?workflow=%00", 422, ("workflow",)),
    "statistics by an unknown parameter": Bad("GET", "/v1/stats?window=24h", 422, ("window",)),
    "a diff with a missing job": Bad("GET", f"/v1/jobs/{MISSING_ID}/diff/{MISSING_ID}", 404),
    "a diff with no id": Bad("GET", f"/v1/jobs/{MISSING_ID}/diff/me", 404),
    "a missing experiment": Bad("GET", f"/v1/experiments/{MISSING_ID}", 404),
    "a missing order of replays": Bad("GET", f"/v1/replays/{MISSING_ID}", 404),
    "a stop of a missing order": Bad("POST", f"/v1/replays/{MISSING_ID}/stop", 404),
    **{
        f"a {mode} of a missing job": post({"mode": mode}, 404, path=f"/v1/jobs/{MISSING_ID}/replays") for mode in MODES
    },
    **{f"{word} an unpublished version": Bad("POST", f"/v1/workflows/{word}", 404) for word in UNPUBLISHED},
    "a job that does not exist": Bad("GET", f"/v1/jobs/{MISSING_ID}", 404),
    "an invalid job id": Bad("GET", "/v1/jobs/5", 404),
    "turns of a missing job": Bad("GET", f"/v1/jobs/{MISSING_ID}/turns", 404),
    "events of a missing job": Bad("GET", f"/v1/jobs/{MISSING_ID}/events", 404),
    "a missing raw answer": Bad("GET", f"/v1/attempts/{MISSING_ID}/raw", 404),
    **{f"{word} a missing job": Bad("POST", f"/v1/jobs/{MISSING_ID}/{word}", 404) for word in COMMANDS},
    "signal a missing job": post({"action": "approve"}, 404, path=f"/v1/jobs/{MISSING_ID}/signals/approval"),
    "an invalid signal name": post({}, 422, "name", path=f"/v1/jobs/{MISSING_ID}/signals/%00"),
    "a workflow that does not exist": Bad("GET", "/v1/workflows/nobody/1", 404),
    "a workflow's name with a NUL": Bad("GET", "/v1/workflows/a%00/1", 422, ("name",)),
    "an invalid workflow version": Bad("GET", "/v1/workflows/bill/first", 422, ("version",)),
    "a wait for ever": Bad("GET", f"/v1/jobs/{MISSING_ID}?wait=inf", 422, ("wait",)),
    "no route": Bad("GET", "/v1/nowhere", 404),
    "no route at all": Bad("GET", "/", 404),
    "a trailing slash": Bad("GET", "/v1/jobs/", 404),
    "another method": Bad("DELETE", "/v1/jobs", 405),
    "an unknown method": Bad("BREW", "/v1/jobs", 405),
    "no document": Bad("POST", "/v1/workflows", 422, content=b""),
    "a document that is not UTF-8": Bad("POST", "/v1/workflows", 400, content=b"\xff\xfe"),
    "a document of another kind": Bad(
        "POST", "/v1/workflows", 415, content=b"<a/>", headers={"Content-Type": "text/html"}
    ),
    "a changed definition": Bad(
        "POST", "/v1/workflows", 409, ("/version",), content=BILL.replace("Sum up", "Add up").encode()
    ),
}


async def test_a_bad_request_is_a_problem_with_its_place_and_leaves_no_row(bill: Api) -> None:
    before = await bill.counts()
    for name, bad in CASES.items():
        content = bad.content if bad.body is None else json.dumps(bad.body).encode()
        headers = bad.headers or (JSON if bad.body is not None else None)
        answer = await bill.client.request(bad.method, bad.path, content=content, headers=headers)
        body = problem(answer, bad.status)
        where = [error.get("parameter", error["pointer"]) for error in body["errors"]]
        assert not bad.where or where == list(bad.where), name
        assert "Traceback" not in answer.text, name
        assert await bill.counts() == before, name
        assert bill.notified == [], name


async def test_a_batch_reports_a_hundred_errors_and_counts_them_all(bill: Api) -> None:
    jobs = [job(input={}) for _ in range(1000)]
    body = problem(await bill.client.post(BATCH, json={"jobs": jobs}), 422)
    assert (len(body["errors"]), body["error_count"]) == (100, 1000)
    assert body["detail"].startswith("1000 of 1000 jobs")


async def test_a_body_of_fifty_megabytes_is_refused_while_it_is_read(bill: Api) -> None:
    """Both with its length told at the beginning, and without."""
    before = await bill.counts()
    size = 50 * 1024 * 1024
    problem(await bill.client.post("/v1/jobs", content=b"a" * size, headers=JSON), 413)

    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while sent < size:
            sent += 65536
            yield b"a" * 65536

    problem(await bill.client.post("/v1/jobs", content=endless(), headers=JSON), 413)
    assert await bill.counts() == before
    assert (await bill.client.get("/healthz")).status_code == 200


async def test_a_request_that_is_not_http_is_a_problem_too(api: Api) -> None:
    parts = urlsplit(api.url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.write(b"This is no HTTP\r\n\r\n")
    said = await reader.read()
    writer.close()
    await writer.wait_closed()
    head, _, body = said.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400")
    assert b"application/problem+json" in head
    assert json.loads(body)["status"] == 400


async def test_a_client_that_disconnects_in_its_body_is_no_server_error(bill: Api) -> None:
    parts = urlsplit(bill.url)
    with structlog.testing.capture_logs() as logs:
        _, writer = await asyncio.open_connection(parts.hostname, parts.port)
        writer.write(f"POST /v1/jobs HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Length: 100\r\n\r\n{{".encode())
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        await eventually(lambda: [log for log in logs if log["event"] == "request"])
    assert [log["status"] for log in logs] == [400]
    assert (await bill.counts())["jobs"] == 0


async def test_a_bug_is_a_problem_that_quotes_nothing_and_names_its_log_entry(start: Start) -> None:
    async def broken() -> Any:
        raise RuntimeError("the password is hunter2")

    api = await start(identify=broken)
    answer = await api.client.get("/v1/engines")
    body = problem(answer, 500)
    assert "hunter2" not in answer.text
    assert answer.headers["x-request-id"] in body["remedy"]


async def test_a_database_that_is_down_is_a_503_until_it_is_back(bill: Api) -> None:
    name = conninfo_to_dict(bill.database_url)["dbname"]
    admin = make_conninfo(bill.database_url, dbname="postgres")
    async with await psycopg.AsyncConnection.connect(admin, autocommit=True) as connection:
        await connection.execute(f'ALTER DATABASE "{name}" WITH ALLOW_CONNECTIONS false')
        await connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))
        answer = await bill.client.post("/v1/jobs", json=GOOD)
        body = problem(answer, 503)
        assert body["remedy"]
        assert answer.headers["retry-after"]
        ready = await bill.client.get("/readyz")
        assert (ready.status_code, ready.json()["status"]) == (503, "not_ready")
        assert (await bill.client.get("/healthz")).status_code == 200
        await connection.execute(f'ALTER DATABASE "{name}" WITH ALLOW_CONNECTIONS true')

    async def is_ready() -> bool:
        return (await bill.client.get("/readyz")).status_code == 200

    await eventually(is_ready, 30, what="the pool connects again")
    await bill.submit()
