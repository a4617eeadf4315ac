"""A scripted engine: an OpenAI-compatible server over real sockets, for tests of workflows and of clients."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Self

from aiohttp import web

from stepladder.testing.script import Fault, RecordedRequest, Script
from stepladder.testing.wire import Ending, WireReply, error, page, wire_reply

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
    from types import TracebackType

    from stepladder.schemas.jsontypes import Json
    from stepladder.testing.script import Line

HOST = "127.0.0.1"
MAX_REQUEST_BYTES = 64 * 1024 * 1024
RESET_ON_CLOSE = struct.pack("ii", 1, 0)
"""SO_LINGER on, for 0 seconds: the kernel drops the connection with a reset."""


class ScriptedEngine:
    """An engine with scripted replies. It runs in its own thread, for sync and async callers alike.

    ``with ScriptedEngine([{"action": "done"}, Fault("hang")]) as engine: engine.url``; see ``Script`` for how a
    request finds its reply. With ``api_key`` every route requires it. A request without a reply gets status 400, which
    is not retried, and its ordinal is added to ``exhausted``.

    ``requests`` has all completion requests in order, ``aborted`` the ordinals of those whose client disconnected
    early; ``in_flight`` and ``peak_in_flight`` count open requests. All may be read at any time from any thread.
    """

    def __init__(
        self,
        answers: Iterable[Line] = (),
        *,
        respond: Callable[[RecordedRequest], Line | None] | None = None,
        by_text: Mapping[str, Line | Sequence[Line]] | None = None,
        model: str = "scripted",
        max_model_len: int = 4096,
        version: str = "0.32.0",
        api_key: str | None = None,
        keep_alive_s: float = 5.0,
    ) -> None:
        self.model = model
        self.requests: list[RecordedRequest] = []
        self.aborted: list[int] = []
        self.exhausted: list[int] = []
        self.in_flight = 0
        self.peak_in_flight = 0
        self._script = Script(answers, respond=respond, by_text=by_text)
        self._script_errors: list[Exception] = []
        self._max_model_len = max_model_len
        self._version = version
        self._api_key = api_key
        self._keep_alive_s = keep_alive_s
        self._peers: set[object] = set()
        self._port = 0

    @property
    def url(self) -> str:
        """The OpenAI-compatible base."""
        return f"http://{HOST}:{self._port}/v1"

    @property
    def connections(self) -> int:
        """The number of connections that have carried a request."""
        return len(self._peers)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if failure is None and self._script_errors:
            raise self._script_errors[0]

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self.start)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.__exit__, kind, failure, trace)

    def start(self) -> None:
        ready: Future[None] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._live(ready)), name="scripted-engine")
        self._thread.daemon = True
        self._thread.start()
        ready.result()

    def stop(self) -> None:
        """Stop at once, even with requests in flight. Stopping twice does nothing."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join()

    def down(self) -> None:
        """Close the port and abort every connection, as if the process had died. ``up`` reverts it."""
        self._call(self._close_port())

    def up(self) -> None:
        """Listen again, on the same port."""
        self._call(self._open_port())

    def _call(self, work: Coroutine[None, None, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _live(self, ready: Future[None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        app = web.Application(client_max_size=MAX_REQUEST_BYTES)
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_get("/{page:.*}", self._page)
        self._runner = web.AppRunner(
            app,
            access_log=None,
            handler_cancellation=True,
            keepalive_timeout=self._keep_alive_s,
            shutdown_timeout=0.01,
        )
        self._site: web.TCPSite | None = None
        try:
            await self._runner.setup()
            await self._open_port()
        except OSError as failure:
            ready.set_exception(failure)
            await self._runner.cleanup()
            return
        ready.set_result(None)
        await self._stopping.wait()
        for task in self._tasks:
            task.cancel()
        await self._runner.cleanup()

    async def _open_port(self) -> None:
        if self._site is None:
            self._site = web.TCPSite(self._runner, HOST, self._port, reuse_address=True)
            await self._site.start()
            self._port = self._runner.addresses[0][1]

    async def _close_port(self) -> None:
        if self._site is not None:
            site, self._site = self._site, None
            await site.stop()
            for connection in self._runner.server.connections if self._runner.server else ():
                if connection.transport is not None:
                    connection.transport.abort()

    async def _page(self, request: web.Request) -> web.StreamResponse:
        self._record_peer(request)
        if not self._is_authorized(request):
            return await _send(request, error(401, "Unauthorized"))
        match request.path:
            case "/v1/models":
                entry: dict[str, Json] = {"id": self.model, "object": "model", "owned_by": "vllm"}
                entry["max_model_len"] = self._max_model_len
                return await _send(request, page({"object": "list", "data": [entry]}))
            case "/version":
                return await _send(request, page({"version": self._version}))
            case "/health":
                return web.Response()
            case _:
                return await _send(request, error(404, "Not Found"))

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        self._record_peer(request)
        if not self._is_authorized(request):
            return await _send(request, error(401, "Unauthorized"))
        raw = await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        try:
            body = json.loads(raw)
        except ValueError:
            body = None
        if not isinstance(body, dict):
            return await _send(request, error(400, "The request is not a JSON object."))
        recorded = RecordedRequest(len(self.requests) + 1, body, raw, headers)
        self.requests.append(recorded)
        self.in_flight += 1
        self.peak_in_flight = max(self.peak_in_flight, self.in_flight)
        performance = self._stage(recorded)
        try:
            return await _send(request, performance)
        except (asyncio.CancelledError, ConnectionError):
            ours = performance.ending in (Ending.CLOSE, Ending.RESET) or self._site is None or self._stopping.is_set()
            if not ours:
                self.aborted.append(recorded.ordinal)
            raise
        finally:
            self.in_flight -= 1

    def _stage(self, request: RecordedRequest) -> WireReply:
        try:
            reply = self._script.reply(request)
        except Exception as failure:  # noqa: BLE001 - the user's function; raised again in __exit__
            self._script_errors.append(failure)
            return error(400, f"The script failed on request {request.ordinal}: {failure!r}")
        if reply is None:
            self.exhausted.append(request.ordinal)
            return error(400, f"The script has no reply for request {request.ordinal}.")
        if isinstance(reply, Fault) and reply.kind == "refuse":
            self._spawn(self._close_port_for(reply.delay_s))
        return wire_reply(reply, request, model=self.model)

    async def _close_port_for(self, seconds: float | None) -> None:
        await self._close_port()
        if seconds is not None:
            await asyncio.sleep(seconds)
            await self._open_port()

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _is_authorized(self, request: web.Request) -> bool:
        return self._api_key is None or request.headers.get("Authorization") == f"Bearer {self._api_key}"

    def _record_peer(self, request: web.Request) -> None:
        if request.transport is not None:
            self._peers.add(request.transport.get_extra_info("peername"))


async def _send(request: web.Request, performance: WireReply) -> web.StreamResponse:
    await asyncio.sleep(performance.delay_s)
    response = web.StreamResponse(status=performance.status or 200, headers=performance.headers)
    if performance.status is not None:
        response.content_length = performance.length
        await response.prepare(request)
        for piece in performance.pieces:
            await response.write(piece)
            await asyncio.sleep(performance.pause_s)
    match performance.ending:
        case Ending.COMPLETE:
            await response.write_eof()
            return response
        case Ending.CLOSE if request.transport is not None:
            request.transport.close()
        case Ending.RESET if request.transport is not None:
            connection = request.transport.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
            request.transport.abort()
    # The server cancels this handler once the connection is closed by either side.
    await asyncio.Event().wait()
    return response
