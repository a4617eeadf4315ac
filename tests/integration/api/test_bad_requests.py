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

from .conftest import BILL, GOOD, problem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from .conftest import Api, Start

JSON = {"Content-Type": "application/json"}
NOBODY = "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5a6b"


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
CASES = {
    "unknown workflow": post(job(workflow="nobody"), 422, "/workflow"),
    "a workflow's name that can be none": post(job(workflow="No\0body"), 422, "/workflow"),
    "a version that does not exist": post(job(version=7), 422, "/version"),
    "a version beyond any number": post(job(version=2**63), 422, "/version"),
    "input that breaks the schema": post(job(input={"team": 5, "more": 1}), 422, "/input", "/input/team"),
    "no input": post({"workflow": "bill"}, 422, ""),
    "an unknown field": post(job(inptu={}), 422, "/inptu"),
    "a priority that is text": post(job(priority="5"), 422, "/priority"),
    "a priority that no column holds": post(job(priority=2**40), 422, "/priority"),
    "a negative deadline": post(job(deadline_s=-1), 422, "/deadline_s"),
    "metadata that are no words": post(job(metadata={"a": {"b": 1}}), 422, "/metadata/a"),
    "metadata that cannot be stored": post(job(metadata={"a": "\0", "b\0": 1}), 422, "/metadata/a", "/metadata/b\0"),
    "a list in place of a job": post([], 422, ""),
    "a batch with one bad job": post({"jobs": [job(), job(input={}), job()]}, 422, "/jobs/1/input", path=BATCH),
    "a batch with several": post(
        {"jobs": [job(version=9), job(), job(workflow="x")]}, 422, "/jobs/0/version", "/jobs/2/workflow", path=BATCH
    ),
    "a batch of nothing": post({"jobs": []}, 422, "/jobs", path=BATCH),
    "a batch of too many": post({"jobs": [job()] * 1001}, 422, "/jobs", path=BATCH),
    "no JSON": raw(b"{'workflow': 1}", 400),
    "nothing at all": raw(b"", 400),
    "a key that stands twice": raw(b'{"workflow": "bill", "workflow": "bill", "input": {"team": "a"}}', 400),
    "a number that is none": raw(b'{"workflow": "bill", "input": {"team": NaN}}', 400),
    "half a character": raw(b'{"workflow": "bill", "input": {"team": "\\ud800"}}', 400),
    "bytes that are no text": raw(b'{"workflow": "\xff"}', 400),
    "too deep": raw(b'{"workflow": "bill", "input": ' + b"[" * 5000 + b"]" * 5000 + b"}", 400),
    "another kind of body": raw(b"<a/>", 415, Content_Type="application/xml"),
    "a compressed body": raw(b"\x1f\x8b", 415, Content_Encoding="gzip"),
    "a body of a byte too much": raw(b'"' + b"a" * MAX_BYTES + b'"', 413),
    "a batch of a byte too much": raw(b'"' + b"a" * MAX_BATCH_BYTES + b'"', 413, path=BATCH),
    "an empty idempotency key": raw(json.dumps(GOOD).encode(), 422, Idempotency_Key=""),
    "an endless idempotency key": raw(json.dumps(GOOD).encode(), 422, Idempotency_Key="k" * 256),
    "a cursor from elsewhere": Bad("GET", "/v1/jobs?cursor=bm9uc2Vuc2U", 422, ("cursor",)),
    "a cursor that is no cursor": Bad("GET", "/v1/jobs?cursor=%00%ff", 422, ("cursor",)),
    "an unknown filter": Bad("GET", "/v1/jobs?stauts=failed", 422, ("stauts",)),
    "an unknown status": Bad("GET", "/v1/jobs?status=done", 422, ("status",)),
    "a limit of nothing": Bad("GET", "/v1/jobs?limit=0", 422, ("limit",)),
    "a time that is none": Bad("GET", "/v1/jobs?created_after=yesterday", 422, ("created_after",)),
    "metadata that are in no database": Bad("GET", "/v1/jobs?metadata.a=%00", 422, ("metadata.a",)),
    "a job that does not exist": Bad("GET", f"/v1/jobs/{NOBODY}", 404),
    "a job's id that is none": Bad("GET", "/v1/jobs/5", 404),
    "turns of nobody": Bad("GET", f"/v1/jobs/{NOBODY}/turns", 404),
    "events of nobody": Bad("GET", f"/v1/jobs/{NOBODY}/events", 404),
    "a raw answer of nobody": Bad("GET", f"/v1/attempts/{NOBODY}/raw", 404),
    "cancel nobody": Bad("POST", f"/v1/jobs/{NOBODY}/cancel", 404),
    "pause nobody": Bad("POST", f"/v1/jobs/{NOBODY}/pause", 404),
    "unpause nobody": Bad("POST", f"/v1/jobs/{NOBODY}/unpause", 404),
    "signal nobody": post({"action": "approve"}, 404, path=f"/v1/jobs/{NOBODY}/signals/approval"),
    "a signal's name that is none": post({}, 422, "name", path=f"/v1/jobs/{NOBODY}/signals/%00"),
    "a workflow that does not exist": Bad("GET", "/v1/workflows/nobody/1", 404),
    "a workflow's name with a NUL": Bad("GET", "/v1/workflows/a%00/1", 422, ("name",)),
    "a workflow's version that is none": Bad("GET", "/v1/workflows/bill/first", 422, ("version",)),
    "a wait for ever": Bad("GET", f"/v1/jobs/{NOBODY}?wait=inf", 422, ("wait",)),
    "no route": Bad("GET", "/v1/nowhere", 404),
    "no route at all": Bad("GET", "/", 404),
    "a slash too much": Bad("GET", "/v1/jobs/", 404),
    "another method": Bad("DELETE", "/v1/jobs", 405),
    "a method of nobody": Bad("BREW", "/v1/jobs", 405),
    "no document": Bad("POST", "/v1/workflows", 422, content=b""),
    "a document that is no text": Bad("POST", "/v1/workflows", 400, content=b"\xff\xfe"),
    "a document of another kind": Bad(
        "POST", "/v1/workflows", 415, content=b"<a/>", headers={"Content-Type": "text/html"}
    ),
    "a changed definition": Bad(
        "POST", "/v1/workflows", 409, ("/version",), content=BILL.replace("Sum up", "Add up").encode()
    ),
}


async def test_every_bad_request_is_a_problem_that_says_where_and_leaves_no_row(bill: Api) -> None:
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


async def test_all_that_is_wrong_with_a_document_is_told_at_once(api: Api) -> None:
    bad = BILL.replace("next: approve\n", "next: aprove\n").replace("output.total ==", "output.total = =")
    body = problem(await api.client.post("/v1/workflows", content=bad), 422)
    found = {(error["code"], error["pointer"]): error for error in body["errors"]}
    assert set(found) == {("bad_expression", "/states/sum/rules/0/check"), ("unknown_state", "/states/sum/next")}
    assert found["unknown_state", "/states/sum/next"]["line"] == 1 + bad[: bad.index("aprove")].count("\n")
    assert (await api.counts())["workflows"] == 0


async def test_of_a_batch_with_a_thousand_mistakes_a_hundred_are_told_and_all_are_counted(bill: Api) -> None:
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


async def test_what_is_no_http_is_a_problem_too(api: Api) -> None:
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


async def test_a_client_that_goes_away_in_its_body_is_no_fault_of_the_server(bill: Api) -> None:
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


async def test_a_bug_is_a_problem_that_quotes_nothing_and_leads_to_the_log(start: Start) -> None:
    async def broken() -> Any:
        raise RuntimeError("the password is hunter2")

    api = await start(identify=broken)
    answer = await api.client.get("/v1/engines")
    body = problem(answer, 500)
    assert "hunter2" not in answer.text
    assert answer.headers["x-request-id"] in body["remedy"]


async def test_a_database_that_is_gone_is_a_503_and_the_process_goes_on(bill: Api) -> None:
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
