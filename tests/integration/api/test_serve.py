"""The server as a process of its own: told to end, it ends streams, finishes, and leaves with 0."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from typing import TYPE_CHECKING

import httpx
import pytest

from stepladder.api.app import create_app
from stepladder.api.serve import serve
from stepladder.models.store import Store
from stepladder.queries.reads import Reads

from .conftest import BILL, GOOD, KIT, served

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from stepladder.models.database import Database

SERVER = """
import asyncio, sys
from stepladder.api.app import create_app
from stepladder.api.serve import serve
from stepladder.models.database import Database
from stepladder.queries.reads import Reads
from stepladder.models.store import Store
from stepladder.schemas.tool import Kit
from stepladder.wiring.logs import configure_logs

def notify(due): ...

async def main():
    configure_logs("info")
    async with Database(sys.argv[1]) as database:
        app = create_app(database, Store(database), Reads(database), Kit({}, {}), notify)
        await serve(app, "127.0.0.1", 0, started=lambda url: print(url, flush=True))

asyncio.run(main())
"""


class Server:
    """A child process, its URL, and what it logged."""

    def __init__(self, process: asyncio.subprocess.Process, url: str) -> None:
        self.process = process
        self.url = url

    async def end(self, signum: signal.Signals) -> tuple[int | None, list[dict[str, object]]]:
        self.process.send_signal(signum)
        async with asyncio.timeout(20):
            _, said = await self.process.communicate()
        return self.process.returncode, [json.loads(line) for line in said.decode().splitlines()]


@pytest.fixture
async def server(database_url: str) -> AsyncIterator[Server]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SERVER, database_url, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    url = (await process.stdout.readline()).decode().strip()
    try:
        yield Server(process, url)
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


@pytest.mark.long
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_the_server_and_its_open_stream_cleanly(server: Server, signum: signal.Signals) -> None:
    async with httpx.AsyncClient(base_url=server.url, timeout=30) as client:
        await client.post("/v1/workflows", content=BILL)
        job = (await client.post("/v1/jobs", json=GOOD)).json()
        path = f"/v1/jobs/{job['id']}/events"
        async with client.stream("GET", path, headers={"Accept": "text/event-stream"}) as answer:
            lines = answer.aiter_lines()
            while not (await anext(lines)).startswith("data:"):
                pass
            code, logs = await server.end(signum)
            rest = [line async for line in lines]
    assert code == 0
    assert all(line == "" or line.startswith(":") for line in rest)
    assert {log["level"] for log in logs} == {"info"}
    assert [log["status"] for log in logs if log["event"] == "request"] == [201, 202, 200]
    assert "approve" not in json.dumps(logs)  # of a document, nothing is logged


async def test_cancelled_again_while_it_ends_it_leaves_nothing_in_the_event_loop(database: Database) -> None:
    """Its listener must leave the loop before the number of its file is another server's."""
    app = create_app(database, Store(database), Reads(database), KIT, lambda _: None)
    started: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = asyncio.ensure_future(serve(app, "127.0.0.1", 0, started=started.set_result))
    await started
    while not serving.done():
        serving.cancel()
        await asyncio.sleep(0)
    assert serving.cancelled()
    async with served(app) as url, httpx.AsyncClient(base_url=url, timeout=10) as client:
        assert (await client.get("/healthz")).status_code == 200
