"""The real application on a real socket, over a real database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID

import httpx
import psycopg
import pytest
from psycopg.rows import dict_row

from stepladder.api.app import create_app
from stepladder.api.serve import serve
from stepladder.engine.client import EngineClient
from stepladder.engine.identity import identify
from stepladder.models.database import Database
from stepladder.models.store import Store
from stepladder.models.tables import metadata
from stepladder.queries.reads import Reads
from stepladder.runner.drive import Driver
from stepladder.runner.machines import Machines
from stepladder.runner.runner import Runner
from stepladder.schemas.tool import Effect, Kit, Tool
from stepladder.testing import ScriptedEngine

if TYPE_CHECKING:
    from collections.abc import Sequence


BILL = """
name: bill
version: 1
input: {type: object, properties: {team: {type: string, maxLength: 40}}, required: [team], additionalProperties: false}
start: sum
states:
  sum:
    ask: "Sum up for team {{ input.team }}."
    output: {type: object, properties: {total: {type: integer}}, required: [total], additionalProperties: false}
    rules:
      - {id: arithmetic, check: "output.total == 36", pointer: /total, reason: "must be hours times 3"}
    next: approve
  approve:
    wait:
      signal: approval
      schema: {type: object, properties: {action: {enum: [approve, refuse]}, by: {type: string}}, required: [action]}
      show: {total: "turns.sum.total"}
    next: {approve: done, refuse: refused}
  done: {end: succeeded, result: {total: "turns.sum.total"}}
  refused: {end: failed}
"""
PAYING = """
name: paying
version: 1
start: confirm
states:
  confirm:
    wait:
      signal: confirmation
      schema: {type: object, properties: {action: {enum: ["yes", "no"]}}, required: [action]}
    next: {"yes": pay, "no": left}
  pay: {tool: pay, effect: irreversible, arguments: {amount: "36"}, next: {ok: done, error: left}}
  done: {end: succeeded}
  left: {end: failed}
"""
PARAMETERS: dict[str, Any] = {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}
KIT = Kit({"pay": Tool("pay", Effect.IRREVERSIBLE, PARAMETERS, dict)}, {})
APPROVE = {"action": "approve"}
MISSING_ID = "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5a6b"
GOOD = {"workflow": "bill", "input": {"team": "search"}}


@dataclass
class Api:
    """The API, a client of it, and the database behind it. ``notified`` are the jobs that workers were told of."""

    url: str
    client: httpx.AsyncClient
    database_url: str
    store: Store
    reads: Reads
    kit: Kit
    notified: list[UUID] = field(default_factory=list)

    async def rows(self, statement: str, *parameters: object) -> list[dict[str, Any]]:
        connection = await psycopg.AsyncConnection.connect(self.database_url, autocommit=True, row_factory=dict_row)
        async with connection:
            cursor = await connection.execute(statement, parameters)
            return await cursor.fetchall() if cursor.description else []

    async def counts(self) -> dict[str, int]:
        """The number of rows in every table."""
        parts = [f"(SELECT count(*) FROM {t.name}) AS {t.name}" for t in metadata.sorted_tables]  # noqa: S608 -- ours
        [row] = await self.rows(f"SELECT {', '.join(parts)}")
        return row

    async def publish(self, document: str = BILL) -> None:
        answer = await self.client.post("/v1/workflows", content=document, headers={"Content-Type": "application/yaml"})
        assert answer.status_code in (200, 201), answer.text

    async def submit(self, **fields: Any) -> dict[str, Any]:
        answer = await self.client.post("/v1/jobs", json=GOOD | fields)
        assert answer.status_code == 202, answer.text
        job: dict[str, Any] = answer.json()
        return job

    async def job(self, job_id: str) -> dict[str, Any]:
        answer = await self.client.get(f"/v1/jobs/{job_id}")
        assert answer.status_code == 200, answer.text
        job: dict[str, Any] = answer.json()
        return job

    async def drive(self, job_id: str | UUID, *answers: Any) -> dict[str, Any]:
        """The job after a worker ran it as far as these answers go."""
        async with self.worker(*answers) as driver:
            await driver.drive(UUID(str(job_id)))
        return await self.job(str(job_id))

    async def waiting(self) -> str:
        """A job of ``bill`` that waits for its approval."""
        return str((await self.drive((await self.submit())["id"], {"total": 36}))["id"])

    async def signal(self, job_id: str, payload: object, name: str = "approval", **headers: str) -> httpx.Response:
        return await self.client.post(f"/v1/jobs/{job_id}/signals/{name}", json=payload, headers=headers)

    async def events(self, job_id: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self.client.get(f"/v1/jobs/{job_id}/events")).json()
        return found

    @asynccontextmanager
    async def worker(self, *answers: Any, **script: Any) -> AsyncIterator[Driver]:
        """Drives jobs against a scripted engine, as a worker with the same tools would."""
        async with ScriptedEngine(answers, **script) as engine, EngineClient(engine.url) as client:
            runner = Runner(self.store, Machines(self.store, self.kit), client, await identify(client))
            yield Driver(runner, self.store, self.reads, {})


Start = Callable[..., Awaitable[Api]]


@pytest.fixture
async def start(database_url: str) -> AsyncIterator[Start]:
    """Starts the application, with ``create_app``'s options."""
    async with AsyncExitStack() as stack:

        async def start(**options: Any) -> Api:
            notified: list[UUID] = []

            def notify(due: Sequence[UUID]) -> None:
                notified.extend(due)

            database = await stack.enter_async_context(Database(database_url, wait_s=2.0))
            store, reads = Store(database), Reads(database)
            kit = options.pop("kit", KIT)
            url = await stack.enter_async_context(served(create_app(database, store, reads, kit, notify, **options)))
            client = await stack.enter_async_context(httpx.AsyncClient(base_url=url, timeout=30))
            return Api(url, client, database_url, store, reads, kit, notified)

        yield start


@asynccontextmanager
async def served(app: Any) -> AsyncIterator[str]:
    started: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = asyncio.ensure_future(serve(app, "127.0.0.1", 0, started=started.set_result))
    await asyncio.wait((serving, started), return_when=asyncio.FIRST_COMPLETED)
    try:
        yield started.result() if started.done() else await started
    finally:
        serving.cancel()
        await asyncio.wait((serving,))


@pytest.fixture
async def api(start: Start) -> Api:
    return await start()


@pytest.fixture
async def bill(api: Api) -> Api:
    """With the workflow ``bill`` published."""
    await api.publish()
    return api


def problem(answer: httpx.Response, status: int) -> dict[str, Any]:
    """The problem in an answer, which has every field that one promises."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = answer.json()
    assert {"type", "title", "status", "detail", "errors", "remedy"} <= set(body)
    assert body["status"] == status
    assert body["type"].startswith("urn:stepladder:problem:")
    assert body["detail"]
    assert all({"pointer", "reason"} <= set(error) for error in body["errors"])
    return body
