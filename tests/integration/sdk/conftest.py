"""The real API on a real socket with a runner beside it, and a proxy that breaks connections."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
import structlog

from stepladder.api.access import parse_keys
from stepladder.api.app import create_app
from stepladder.api.serve import serve
from stepladder.models.database import Database
from stepladder.models.store import Store
from stepladder.queries.reads import Reads
from stepladder.runner.runner import SliceEnd
from stepladder.schemas.errors import EffectUnknownError
from stepladder.schemas.tool import Effect, Kit, Tool
from stepladder.testing import Answer, ScriptedEngine
from stepladder.wiring.logs import configure_logs
from stepladder.wiring.system import open_system

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from stepladder.schemas.jsontypes import JsonObject
    from stepladder.testing import Line, RecordedRequest

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
      schema: {type: object, properties: {action: {enum: [approve, refuse]}}, required: [action]}
      show: {total: "turns.sum.total"}
    next: {approve: done, refuse: refused}
  done: {end: succeeded, result: {total: "turns.sum.total"}}
  refused: {end: failed}
"""
KEYS = """[
    {"name": "ci", "key": "long-random-word", "scopes": ["*"]},
    {"name": "eye", "key": "k2", "scopes": ["jobs:read"]}
]"""
PAYING = """
name: paying
version: 1
start: confirm
states:
  confirm: {wait: {signal: confirmation}, next: {go: pay}}
  pay: {tool: pay, next: {ok: done, error: left}}
  done: {end: succeeded, result: tools.pay}
  left: {end: failed, result: errors.pay.kind}
"""


def broken_off() -> None:
    raise EffectUnknownError("the bank broke off")


NO_ARGUMENTS: JsonObject = {"type": "object", "additionalProperties": False}
KIT = Kit({"pay": Tool("pay", Effect.IRREVERSIBLE, NO_ARGUMENTS, broken_off, returns={"type": "object"})}, {})


def respond(request: RecordedRequest) -> Line:
    return Answer({"total": 36} if "not accepted" in request.text else {"total": 35})


class ApiThread:
    """The API and a runner of its jobs, in a loop in a thread of their own."""

    def __init__(self, database_url: str, engine_url: str, keys: str | None) -> None:
        self._database_url = database_url
        self._engine_url = engine_url
        self._keys = () if keys is None else parse_keys(keys)
        self._started: Future[str] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._live()), name="api")

    def __enter__(self) -> str:
        self._thread.start()
        return self._started.result(30)

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._ending.set)
        self._thread.join()

    async def _live(self) -> None:
        self._loop, self._ending = asyncio.get_running_loop(), asyncio.Event()
        try:
            async with (
                Database(self._database_url) as database,
                open_system(self._database_url, self._engine_url, KIT) as system,
            ):
                app = create_app(database, Store(database), Reads(database), KIT, _notify, keys=self._keys)
                serving = asyncio.ensure_future(serve(app, "127.0.0.1", 0, started=self._started.set_result))
                working = asyncio.ensure_future(_work(system.runner.run_slice))
                await self._ending.wait()
                for task in (serving, working):
                    task.cancel()
                await asyncio.wait((serving, working))
        except BaseException as error:
            if not self._started.done():
                self._started.set_exception(error)
            raise


def _notify(_: Sequence[UUID]) -> None:
    return None


async def _work(run_slice: Callable[[], object]) -> None:
    while True:
        done = await run_slice()  # type: ignore[misc]  # a coroutine function, whatever its arguments
        if done.end is SliceEnd.IDLE:
            await asyncio.sleep(0.02)  # polling, as a worker does


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """The API logs each request in its thread, whose output belongs to no test."""
    configure_logs("error")
    yield
    structlog.reset_defaults()


Serve = Callable[..., AbstractContextManager[str]]


@pytest.fixture
def serve_api(database_url: str) -> Serve:
    """Serves the API, with ``keys`` if they are given, and gives its URL."""

    @contextmanager
    def serving(keys: str | None = None) -> Iterator[str]:
        with ScriptedEngine(respond=respond) as engine, ApiThread(database_url, engine.url, keys) as url:
            yield url

    return serving


@pytest.fixture
def api_url(serve_api: Serve) -> Iterator[str]:
    with serve_api() as url:
        yield url


@dataclass
class Between:
    """A proxy between a client and the API that treats each connection as ``script`` says, in order.

    ``lose``: passes the request on, and breaks the connection in place of the answer. ``cut``: breaks it after the
    first piece of the answer. Bytes are sent as the answer. After the script it passes everything on.
    """

    target: str
    script: list[str | bytes]
    seen: list[bytes] = field(default_factory=list)

    def __enter__(self) -> Between:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._accept, daemon=True, name="between")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                self._serve(connection)

    def _serve(self, client: socket.socket) -> None:
        """One request a connection."""
        request = _request(client)
        self.seen.append(request)
        act = self.script.pop(0) if self.script else "pass"
        if isinstance(act, bytes):
            client.sendall(act)
            return
        host, _, port = self.target.rpartition("/")[2].partition(":")
        with socket.create_connection((host, int(port))) as server:
            server.sendall(request.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
            while piece := server.recv(65536):
                if act != "lose":
                    client.sendall(piece)
                if act == "cut":
                    return


def _request(client: socket.socket) -> bytes:
    content = b""
    while b"\r\n\r\n" not in content:
        content += client.recv(65536)
    head, _, body = content.partition(b"\r\n\r\n")
    length = next(
        (int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")), 0
    )
    while len(body) < length:
        body += client.recv(65536)
    kept = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"connection")]
    return b"\r\n".join(kept) + b"\r\n\r\n" + body
