"""The connection pool of one engine: its settings, and httpx over aiohttp configured by them."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport

from stepladder.schemas.errors import BadInputError


@dataclass(frozen=True, slots=True)
class Settings:
    """The client's limits. All but ``keep_alive_s`` are above 0; times are in seconds.

    ``max_connections``: further requests wait for a free one. An H100 is busy with 128 to 400 turns in flight, and the
    runner bounds the turns, so this only has to be high enough.
    ``keep_alive_s``: how long an idle connection may be used again; 0 opens one for each request. A request that is
    sent while the server hangs up is lost, indistinguishable from a real fault. vLLM hangs up after 5 idle seconds,
    llama.cpp after every stream, although it promises 5. A new connection costs a round trip and, measured, 0.1 ms of
    CPU, and turns take seconds; so 0. Behind TLS and at a high rate, 3 stays clear of vLLM's 5.
    ``connect_timeout_s``: TCP and TLS; a timeout here is ``connect``, since the engine never saw the request.
    ``first_byte_timeout_s``: until the first byte of the body. An answer that is not streamed arrives all at
    once, and a busy engine queues, so this is long.
    ``stall_timeout_s``: between two chunks of a body.
    ``total_timeout_s``: for a whole exchange, unless the caller gives a timeout.
    ``max_body_bytes``: a stream is some 80 times its text; 32 MiB hold about 100,000 tokens.
    ``retry_after_cap_s``: the longest wait that a server may ask for.
    """

    max_connections: int = 1024
    keep_alive_s: float = 0.0
    connect_timeout_s: float = 5.0
    first_byte_timeout_s: float = 300.0
    stall_timeout_s: float = 60.0
    total_timeout_s: float = 600.0
    max_body_bytes: int = 32 * 1024 * 1024
    retry_after_cap_s: float = 300.0

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            # The libraries read 0 as "no limit"; here it would mean that no request can succeed.
            if not value >= 0 or (value == 0 and name != "keep_alive_s"):
                raise BadInputError(f"The engine client's {name} must be above 0, and is {value}.")


def http_client(base_url: str, api_key: str | None, settings: Settings) -> httpx.AsyncClient:
    # A nearby engine gains nothing from compression, and the stored bytes are the bytes received.
    headers = {"Accept-Encoding": "identity", "User-Agent": "stepladder"}
    if settings.keep_alive_s == 0:
        headers["Connection"] = "close"  # so that the server does not wait for more
    if api_key is not None:
        headers["Authorization"] = f"Bearer {api_key}"
    context = ssl.create_default_context() if base_url.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    def session() -> aiohttp.ClientSession:
        reuse = {"keepalive_timeout": settings.keep_alive_s} if settings.keep_alive_s > 0 else {"force_close": True}
        connector = aiohttp.TCPConnector(limit=settings.max_connections, ssl=context, **reuse)
        return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False)

    return httpx.AsyncClient(
        # The adapter creates the session at the first request, inside the loop that it belongs to.
        transport=AiohttpTransport(verify=context, client=session),
        # The libraries time only connecting; one timer in the client does the rest.
        timeout=httpx.Timeout(None, connect=settings.connect_timeout_s),
        headers=headers,
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        follow_redirects=False,
        trust_env=False,
    )


def checked_url(base_url: str) -> str:
    remedy = "Give the base of the OpenAI-compatible routes, such as http://gpu-1:8000/v1."
    try:
        url = httpx.URL(base_url.strip())
    except httpx.InvalidURL as error:
        raise BadInputError(f"The engine's URL cannot be read: {error}", remedy=remedy) from None
    if url.userinfo:
        raise BadInputError(
            "The engine's URL contains a user or a password.", remedy="Give the key as STEPLADDER_ENGINE_API_KEY."
        )
    if url.scheme not in ("http", "https") or not url.host or url.query or url.fragment:
        raise BadInputError(f"The engine's URL cannot be used: {base_url!r}", remedy=remedy)
    return str(url).rstrip("/")


def checked_key(api_key: str | None) -> str | None:
    # A key read from a file ends in a newline.
    key = (api_key or "").strip()
    if not (key.isascii() and key.isprintable()):
        raise BadInputError(
            "The engine's key contains characters that a header cannot carry.", remedy="Check ENGINE_API_KEY."
        )
    return key or None
