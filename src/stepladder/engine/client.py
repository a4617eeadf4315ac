"""The HTTP client for an OpenAI-compatible engine: one connection pool for a process, one exchange for an attempt."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self

from stepladder.engine.failures import FOREIGN, diagnose
from stepladder.engine.pool import Settings, checked_key, checked_url, http_client
from stepladder.engine.wire import FirstToken, encode, retry_after
from stepladder.schemas.answer import Lost, Received
from stepladder.schemas.outcomes import Cause

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    import httpx

    from stepladder.schemas.answer import Arrival
    from stepladder.schemas.jsontypes import Json


@dataclass(frozen=True, slots=True)
class Timing:
    """How long an exchange took, in milliseconds from the call, connecting included.

    ``ttft_ms`` is the time to the first chunk that carries content, reasoning or a tool call; None without a stream.
    """

    ttft_ms: float | None
    duration_ms: float


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its outcome."""

    arrival: Arrival
    timing: Timing
    request_id: str


@dataclass(slots=True)
class _Received:
    """What has arrived so far. It survives any end of the exchange, so no byte is lost."""

    status: int | None = None
    streamed: bool = False
    retry_after_s: float | None = None
    body: bytearray = field(default_factory=bytearray)
    ttft_s: float | None = None

    def received(self, status: int) -> Received:
        return Received(status, bytes(self.body), streamed=self.streamed, retry_after_s=self.retry_after_s)

    def lost(self, cause: Cause, detail: str) -> Lost:
        return Lost(cause, detail, bytes(self.body), status=self.status, streamed=self.streamed)


class EngineClient:
    """Sends requests to one engine. It never retries, follows no redirect, keeps no cookie and uses no proxy.

    ``base_url`` is the OpenAI-compatible base, such as ``http://gpu-1:8000/v1``. Proxy variables are ignored: a proxy
    meant for the internet would see every prompt on its way to a machine nearby. TLS trusts what the system trusts.
    ``now`` is the time against which a date in ``Retry-After`` is read.
    Raises ``BadInputError`` for a URL or a key that cannot be used. Use it as ``async with EngineClient(url)``, in one
    event loop, and end the requests in flight before it closes.
    """

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None = None,
        settings: Settings | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.base_url = checked_url(base_url)
        self.settings = settings or Settings()
        self._now = now
        key = checked_key(api_key)
        self._http = self._unpooled = http_client(self.base_url, key, self.settings)
        if self.settings.keep_alive_s > 0:
            self._unpooled = http_client(self.base_url, key, replace(self.settings, keep_alive_s=0.0))

    def __repr__(self) -> str:
        return f"EngineClient({self.base_url!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._http.aclose()
        await self._unpooled.aclose()

    async def ask(
        self,
        body: Mapping[str, Json],
        *,
        request_id: str,
        timeout_s: float | None = None,
        on_first_token: Callable[[float], None] | None = None,
        fresh: bool = False,
    ) -> Exchange:
        """``POST /chat/completions`` with ``encode(body)``, once.

        ``request_id`` is printable ASCII, sent as ``X-Request-Id``, which vLLM uses as its own id.
        ``fresh`` opens a connection for this request alone, regardless of ``keep_alive_s``.
        ``timeout_s`` is the time that the caller has left; at 0 nothing is sent. ``on_first_token`` is called with
        ``ttft_ms`` when the first token of a stream arrives. A failure is a ``Lost``, never raised, and holds the bytes
        that arrived before it; a body beyond ``max_body_bytes`` is ``malformed_body``. Cancellation passes through and
        closes the connection, upon which the engine stops generating.
        Raises ``BadInputError`` as ``encode`` does.
        """
        accept = "text/event-stream, application/json" if body.get("stream") is True else "application/json"
        headers = {"Accept": accept, "Content-Type": "application/json", "X-Request-Id": request_id}
        http = self._unpooled if fresh else self._http
        request = http.build_request("POST", f"{self.base_url}/chat/completions", content=encode(body), headers=headers)
        return await self._exchange(http, request, request_id, timeout_s, on_first_token)

    async def get(self, url: str, *, timeout_s: float) -> Arrival:
        """``GET`` of another page, such as the list of models. ``url`` is absolute."""
        request = self._http.build_request("GET", url, headers={"Accept": "application/json"})
        return (await self._exchange(self._http, request, "", timeout_s, None)).arrival

    async def post(self, url: str, body: Mapping[str, Json], *, timeout_s: float) -> Arrival:
        """``POST`` to another page, such as the tokenizer. ``url`` is absolute."""
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        request = self._http.build_request("POST", url, content=encode(body), headers=headers)
        return (await self._exchange(self._http, request, "", timeout_s, None)).arrival

    async def _exchange(
        self,
        http: httpx.AsyncClient,
        request: httpx.Request,
        request_id: str,
        timeout_s: float | None,
        on_first_token: Callable[[float], None] | None,
    ) -> Exchange:
        clock = asyncio.get_running_loop().time
        started = clock()
        budget_s = self.settings.total_timeout_s if timeout_s is None else timeout_s
        buffer = _Received()

        def first_token() -> None:
            buffer.ttft_s = clock() - started
            if on_first_token is not None:
                on_first_token(buffer.ttft_s * 1000)

        arrival: Arrival
        if budget_s <= 0:
            arrival = buffer.lost(Cause.TIMEOUT, "No time was left, and the request was not sent.")
        else:
            arrival = await self._receive(http, request, buffer, started + budget_s, first_token)
        ttft_ms = None if buffer.ttft_s is None else buffer.ttft_s * 1000
        return Exchange(arrival, Timing(ttft_ms, (clock() - started) * 1000), request_id)

    async def _receive(
        self,
        http: httpx.AsyncClient,
        request: httpx.Request,
        buffer: _Received,
        deadline: float,
        first_token: Callable[[], None],
    ) -> Arrival:
        clock = asyncio.get_running_loop().time
        limits = self.settings
        # One timer for both limits: it is rescheduled with each chunk, and never beyond the deadline.
        timer = asyncio.timeout_at(min(deadline, clock() + limits.first_byte_timeout_s))
        try:
            async with timer:
                response = await http.send(request, stream=True)
                try:
                    self._note_headers(response, buffer)
                    first = FirstToken() if buffer.streamed else None
                    async for chunk in response.aiter_bytes():
                        timer.reschedule(min(deadline, clock() + limits.stall_timeout_s))
                        room = limits.max_body_bytes - len(buffer.body)
                        buffer.body += chunk[:room]
                        if len(chunk) > room:
                            return buffer.lost(
                                Cause.MALFORMED_BODY, f"The body is longer than {limits.max_body_bytes} bytes."
                            )
                        if first is not None and first.seen_in(chunk):
                            first = None
                            first_token()
                    return buffer.received(response.status_code)
                finally:
                    await response.aclose()
        except FOREIGN as error:
            if isinstance(error, TimeoutError) and timer.expired():
                return buffer.lost(Cause.TIMEOUT, self._timeout_detail(buffer, deadline_passed=clock() >= deadline))
            return buffer.lost(*diagnose(error))

    def _note_headers(self, response: httpx.Response, buffer: _Received) -> None:
        buffer.status = response.status_code
        buffer.streamed = response.headers.get("content-type", "").lower().startswith("text/event-stream")
        if (asked := response.headers.get("retry-after")) is not None:
            buffer.retry_after_s = retry_after(asked, now=self._now(), cap_s=self.settings.retry_after_cap_s)

    def _timeout_detail(self, buffer: _Received, *, deadline_passed: bool) -> str:
        if deadline_passed:
            return f"The time for the exchange ran out after {len(buffer.body)} bytes of the body."
        if buffer.body:
            return f"The body stalled for {self.settings.stall_timeout_s:g} s after {len(buffer.body)} bytes."
        return f"Nothing arrived for {self.settings.first_byte_timeout_s:g} s."
