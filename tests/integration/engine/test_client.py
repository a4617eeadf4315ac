"""The client against servers on loopback: every way to lose an answer has its cause, and no byte that came is lost."""

from __future__ import annotations

import asyncio
import logging
import socket
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from stepladder.engine.client import EngineClient
from stepladder.engine.pool import Settings
from stepladder.engine.wire import encode
from stepladder.schemas.answer import Lost, Received
from stepladder.schemas.errors import BadInputError
from stepladder.schemas.outcomes import Cause
from stepladder.testing.engine import ScriptedEngine
from stepladder.testing.script import Answer, Fault, FaultKind, Raw
from stepladder.testing.wait import eventually
from stepladder.testing.wire import wire_reply

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from stepladder.schemas.answer import Arrival
    from stepladder.schemas.jsontypes import Json
    from stepladder.testing.script import Reply

# Only the limit under test is short, so that a slow machine runs into no other.
HANG = Settings(first_byte_timeout_s=0.2)
STALL = Settings(stall_timeout_s=0.2)
LONG = "An answer of some length, é and 😀 in it. " * 20


def body(*, stream: bool = False, text: str = "Hello?") -> dict[str, Json]:
    return {"model": "m", "messages": [{"role": "user", "content": text}], "stream": stream}


async def ask(client: EngineClient, *, stream: bool = False, timeout_s: float | None = None) -> Arrival:
    return (await client.ask(body(stream=stream), request_id="r-1", timeout_s=timeout_s)).arrival


def lost(arrival: Arrival) -> Lost:
    assert isinstance(arrival, Lost)
    return arrival


def written(engine: ScriptedEngine, reply: Reply) -> bytes:
    """What the engine has put into the body of its first answer."""
    return b"".join(wire_reply(reply, engine.requests[0], model=engine.model).pieces)


@asynccontextmanager
async def bare_server(
    handle: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[str]:
    """A server that may break every rule of HTTP. A connection ends with its handler, and a handler with the test."""
    handlers: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await handle(reader, writer)
        finally:
            writer.close()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handlers.add(asyncio.create_task(serve(reader, writer)))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    for handler in handlers:
        handler.cancel()
    await asyncio.gather(*handlers, return_exceptions=True)


async def read_request(reader: asyncio.StreamReader) -> bytes:
    """One request with a Content-Length; empty if the client has gone."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return b""
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    return head + await reader.readexactly(length)


# What arrives


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_arrives_to_the_byte(stream: bool) -> None:
    answer = Answer(LONG, reasoning="Well.", chunk_chars=3)
    async with ScriptedEngine([answer]) as engine, EngineClient(engine.url) as client:
        arrival = await ask(client, stream=stream)
        assert arrival == Received(200, written(engine, answer), streamed=stream)


async def test_the_request_is_exactly_its_encoding_and_carries_its_id() -> None:
    async with ScriptedEngine(["hi"]) as engine, EngineClient(engine.url) as client:
        exchange = await client.ask(body(text="é😀"), request_id="r-7")
        assert exchange.request_id == "r-7"
        assert engine.requests[0].raw == encode(body(text="é😀"))
        assert engine.requests[0].headers["x-request-id"] == "r-7"
        assert engine.requests[0].headers["accept-encoding"] == "identity"
        assert "authorization" not in engine.requests[0].headers


@pytest.mark.parametrize("status", [204, 307, 400, 401, 404, 429, 500, 503])
async def test_every_status_is_an_answer_and_no_redirect_is_followed(status: int) -> None:
    text = b"" if status == 204 else b"<html>whatever"
    raw = Raw(text, status, "text/html", {"Location": "/v1/models"})
    async with ScriptedEngine([raw]) as engine, EngineClient(engine.url) as client:
        assert await ask(client) == Received(status, text)
        assert len(engine.requests) == 1


@pytest.mark.parametrize(
    ("header", "seconds"), [("12", 12.0), ("Sun, 01 Mar 2026 12:00:30 GMT", 30.0), ("86400", 300.0), ("later", None)]
)
async def test_retry_after_is_told_in_seconds_and_capped(header: str, seconds: float | None) -> None:
    busy = Answer("busy", status=503, headers={"Retry-After": header})
    noon = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
    async with ScriptedEngine([busy]) as engine, EngineClient(engine.url, now=lambda: noon) as client:
        arrival = await ask(client)
        assert isinstance(arrival, Received)
        assert arrival.retry_after_s == seconds


async def test_the_first_token_is_reported_before_the_answer_ends() -> None:
    reported: list[float] = []
    async with ScriptedEngine([Fault("stall")]) as engine, EngineClient(engine.url, settings=STALL) as client:
        exchange = await client.ask(body(stream=True), request_id="r", on_first_token=reported.append)
        assert isinstance(exchange.arrival, Lost)
        assert reported == [exchange.timing.ttft_ms]
        assert reported[0] < exchange.timing.duration_ms


@pytest.mark.parametrize(("limit", "kept"), [(5000, Received(200, b"x" * 5000)), (4999, None), (100, None)])
async def test_a_body_beyond_the_limit_is_cut_off_there(limit: int, kept: Received | None) -> None:
    settings = Settings(max_body_bytes=limit)
    async with ScriptedEngine([Raw(b"x" * 5000)]) as engine, EngineClient(engine.url, settings=settings) as client:
        arrival = await ask(client)
        if kept is not None:
            assert arrival == kept
        else:
            assert isinstance(arrival, Lost)
            assert (arrival.cause, arrival.body, arrival.status) == (Cause.MALFORMED_BODY, b"x" * limit, 200)


# What is lost

FAULTS: list[tuple[FaultKind, Cause | None]] = [
    ("refuse", Cause.DISCONNECTED),  # the request that the engine dies of; the next one is refused
    ("reset_before", Cause.DISCONNECTED),
    ("reset_mid", Cause.DISCONNECTED),
    ("close_mid_stream", Cause.DISCONNECTED),
    ("hang", Cause.TIMEOUT),
    ("stall", Cause.TIMEOUT),
    ("stream_error", None),  # arrived whole; what it holds is for the ladder to judge
    ("no_finish_reason", None),
    ("no_done", None),
    ("slow", None),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("kind", "cause"), FAULTS)
async def test_each_fault_has_its_cause(kind: FaultKind, cause: Cause | None, stream: bool) -> None:
    settings = {"hang": HANG, "stall": STALL}.get(kind)
    async with ScriptedEngine([Fault(kind)]) as engine, EngineClient(engine.url, settings=settings) as client:
        arrival = await ask(client, stream=stream)
        assert (arrival.cause if isinstance(arrival, Lost) else None) == cause
        assert len(engine.requests) == 1


async def test_a_closed_port_is_connect() -> None:
    async with ScriptedEngine(["hi"]) as engine, EngineClient(engine.url) as client:
        await asyncio.to_thread(engine.down)
        assert lost(await ask(client)).cause is Cause.CONNECT


async def test_a_failed_tls_handshake_is_connect() -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

    async with bare_server(plain) as url, EngineClient(url.replace("http:", "https:")) as client:
        assert lost(await ask(client)).cause is Cause.CONNECT


async def test_a_host_that_does_not_pick_up_is_connect() -> None:
    with socket.socket() as deaf, socket.socket() as first, socket.socket() as second:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        for caller in (first, second):  # they fill the backlog; whoever comes next is not even refused
            caller.setblocking(False)
            caller.connect_ex(deaf.getsockname())
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}/v1"
        async with EngineClient(url, settings=Settings(connect_timeout_s=0.2)) as client:
            assert lost(await ask(client)).cause is Cause.CONNECT


@pytest.mark.parametrize(
    ("reply", "cause"),
    [
        (b"", Cause.DISCONNECTED),
        (b"HTTP/1.1 200 OK\r\nContent-", Cause.DISCONNECTED),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", Cause.DISCONNECTED),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc", Cause.DISCONNECTED),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", Cause.DISCONNECTED),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc", Cause.MALFORMED_BODY),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc", Cause.MALFORMED_BODY),
        (b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 70_000 + b"\r\n\r\n", Cause.MALFORMED_BODY),
        (b"220 mail.example ESMTP\r\n", Cause.MALFORMED_BODY),
    ],
)
async def test_broken_http_is_told_from_a_broken_connection(reply: bytes, cause: Cause) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(reply)

    async with bare_server(answer) as url, EngineClient(url) as client:
        arrival = lost(await ask(client))
        assert arrival.cause is cause
        assert arrival.detail


@pytest.mark.parametrize("stream", [False, True])
async def test_what_came_before_the_loss_is_kept_for_every_one_of_many(stream: bool) -> None:
    fault = Fault("close_mid_stream", LONG)
    async with ScriptedEngine(respond=lambda _: fault) as engine, EngineClient(engine.url) as client:
        arrivals = await asyncio.gather(*(ask(client, stream=stream) for _ in range(50)))
        kept = {(arrival.body, arrival.status, arrival.streamed) for arrival in arrivals}
        assert kept == {(written(engine, fault), 200, stream)}


# Time


async def test_no_time_left_sends_nothing() -> None:
    async with ScriptedEngine(["hi"]) as engine, EngineClient(engine.url) as client:
        assert lost(await ask(client, timeout_s=0)).cause is Cause.TIMEOUT
        assert engine.requests == []


@pytest.mark.parametrize(
    ("kind", "timeout_s", "told"),
    [
        ("hang", None, "Nothing arrived for 0.2 s."),
        ("stall", None, "The body stalled for 0.2 s after"),
        ("hang", 0.1, "The time for the exchange ran out"),
        ("stall", 0.15, "The time for the exchange ran out"),
    ],
)
async def test_a_timeout_names_its_limit_and_closes_the_connection(
    kind: FaultKind, timeout_s: float | None, told: str
) -> None:
    settings = HANG if kind == "hang" else STALL
    async with ScriptedEngine([Fault(kind)]) as engine, EngineClient(engine.url, settings=settings) as client:
        arrival = lost(await ask(client, stream=True, timeout_s=timeout_s))
        assert arrival.cause is Cause.TIMEOUT
        assert told in arrival.detail
        await eventually(lambda: engine.aborted == [1])


async def test_a_slow_stream_outlives_the_stall_limit_while_it_moves() -> None:
    settings = Settings(stall_timeout_s=1.0)
    slow = Answer("x" * 40, chunk_chars=1, chunk_delay_s=0.04)
    async with ScriptedEngine([slow]) as engine, EngineClient(engine.url, settings=settings) as client:
        exchange = await client.ask(body(stream=True), request_id="r")
        assert isinstance(exchange.arrival, Received)
        assert exchange.timing.duration_ms > settings.stall_timeout_s * 1000


# Cancelling


@pytest.mark.parametrize("kind", ["hang", "stall"])
async def test_cancelling_passes_through_and_makes_the_engine_stop(kind: FaultKind) -> None:
    async with ScriptedEngine([Fault(kind)]) as engine, EngineClient(engine.url) as client:
        asking = asyncio.create_task(ask(client, stream=True))
        await eventually(lambda: engine.in_flight == 1)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await eventually(lambda: engine.aborted == [1])


# Many at once, and connections


async def test_two_hundred_requests_are_in_flight_at_once() -> None:
    async with ScriptedEngine(respond=lambda _: Fault("hang")) as engine, EngineClient(engine.url) as client:
        asking = [asyncio.create_task(ask(client)) for _ in range(200)]
        await eventually(lambda: engine.in_flight == 200)
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        await eventually(lambda: len(engine.aborted) == 200)


async def test_by_default_no_connection_is_used_twice() -> None:
    async with ScriptedEngine(["a", "b", "c"]) as engine, EngineClient(engine.url) as client:
        for _ in range(3):
            assert isinstance(await ask(client), Received)
        assert engine.connections == 3
        assert {request.headers["connection"] for request in engine.requests} == {"close"}


async def test_with_keep_alive_a_connection_is_used_again() -> None:
    settings = Settings(keep_alive_s=30)
    async with ScriptedEngine(["a", "b", "c"]) as engine, EngineClient(engine.url, settings=settings) as client:
        for _ in range(3):
            assert isinstance(await ask(client), Received)
        assert engine.connections == 1


class ForgetfulServer:
    """It hangs up on a request that comes over a connection idle for ``patience_s``: the moment at which a server's
    farewell and a client's next request cross each other on the wire."""

    patience_s = 0.2

    def __init__(self) -> None:
        self.idle_since = 0.0

    def idle_s(self) -> float:
        return asyncio.get_running_loop().time() - self.idle_since

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        fresh = True
        while await read_request(reader):
            if not fresh and self.idle_s() >= self.patience_s:
                return
            fresh = False
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
            await writer.drain()
            self.idle_since = asyncio.get_running_loop().time()


@pytest.mark.parametrize(
    ("settings", "lost"),
    [
        (Settings(), 0),
        (Settings(keep_alive_s=ForgetfulServer.patience_s / 10), 0),
        (Settings(keep_alive_s=30), 1),  # what the other two avoid
    ],
)
async def test_a_connection_idle_for_too_long_is_not_reused(settings: Settings, lost: int) -> None:
    server = ForgetfulServer()
    async with bare_server(server) as url, EngineClient(url, settings=settings) as client:
        arrivals = [await ask(client)]
        await eventually(lambda: server.idle_s() >= server.patience_s)
        arrivals.append(await ask(client))
        assert sum(isinstance(arrival, Lost) for arrival in arrivals) == lost


async def test_a_server_that_hangs_up_after_each_stream_loses_nothing() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n")
        writer.write(b"Keep-Alive: timeout=5\r\n\r\ne\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")

    async with bare_server(answer) as url, EngineClient(url) as client:
        arrivals = [await ask(client, stream=True) for _ in range(20)]
        assert arrivals == [Received(200, b"data: [DONE]\n\n", streamed=True)] * 20


# Keeping to oneself


async def test_the_key_is_sent_and_shown_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    key = "sk-very-secret"
    async with ScriptedEngine(["hi"], api_key=key) as engine, EngineClient(engine.url, api_key=f"{key}\n") as client:
        assert isinstance(await ask(client), Received)
        assert engine.requests[0].headers["authorization"] == f"Bearer {key}"
        shown = [repr(client), str(client), repr(client.settings), repr(vars(client)), caplog.text]
        assert not [text for text in shown if key in text]


async def test_the_environments_proxy_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.delenv("NO_PROXY", raising=False)
    async with ScriptedEngine(["hi"]) as engine, EngineClient(engine.url) as client:
        assert isinstance(await ask(client), Received)


async def test_no_cookie_is_kept() -> None:
    giving = Raw(b"{}", headers={"Set-Cookie": "session=1; Path=/"})
    async with ScriptedEngine([giving, "hi"]) as engine, EngineClient(engine.url) as client:
        await ask(client)
        await ask(client)
        assert "cookie" not in engine.requests[1].headers


@pytest.mark.parametrize(
    "url",
    [
        "",
        "gpu-1:8000",
        "ftp://gpu-1/v1",
        "http://",
        "http://u:hunter2@gpu-1/v1",
        "http://gpu-1/v1?x=1",
        "http://[::1",
        "http://:8000/v1",
    ],
)
def test_an_invalid_url_is_refused_without_showing_secrets(url: str) -> None:
    with pytest.raises(BadInputError) as refusal:
        EngineClient(url)
    assert refusal.value.remedy
    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize("key", ["two\nlines", "clé"])
def test_an_invalid_key_is_refused_without_being_shown(key: str) -> None:
    with pytest.raises(BadInputError) as refusal:
        EngineClient("http://gpu-1/v1", api_key=key)
    assert key not in str(refusal.value)


@pytest.mark.parametrize("name", ["connect_timeout_s", "stall_timeout_s", "max_connections", "max_body_bytes"])
@pytest.mark.parametrize("value", [0, -1, float("nan")])
def test_a_limit_of_nothing_is_refused_and_never_means_unlimited(name: str, value: float) -> None:
    with pytest.raises(BadInputError, match=name):
        Settings(**{name: value})  # type: ignore[arg-type]  # one name stands for fields of two types
