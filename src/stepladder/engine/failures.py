"""The libraries' exceptions in the project's words.

The adapter between httpx and aiohttp calls several unlike things a connect time-out, a server that hangs up among
them, and lets some of aiohttp's exceptions through as they are. So what counts here is the exception underneath.
"""

from __future__ import annotations

import aiohttp
import httpx
from aiohttp.http_exceptions import HttpProcessingError

from stepladder.schemas.outcomes import Cause

FOREIGN = (httpx.HTTPError, aiohttp.ClientError, HttpProcessingError, OSError)
"""Everything that the two libraries raise when an exchange fails. ``TimeoutError`` is an ``OSError``."""

LONGEST_DETAIL = 300


def diagnose(error: Exception) -> tuple[Cause, str]:
    """Why no whole answer came, and what the library said about it.

    ``connect``: no connection came about, so the engine never saw the request. ``malformed_body``: what came is not
    HTTP. Everything else broke a connection that stood.
    """
    origin = error.__cause__ if isinstance(error, httpx.TransportError) and error.__cause__ else error
    if isinstance(origin, aiohttp.ServerDisconnectedError):
        return Cause.DISCONNECTED, "The engine hung up before its answer began."
    return _cause(origin), f"{type(origin).__name__}: {origin}".strip(": ")[:LONGEST_DETAIL]


def _cause(origin: BaseException) -> Cause:
    match origin:
        case aiohttp.ConnectionTimeoutError() | aiohttp.ClientConnectorError():
            return Cause.CONNECT
        case TimeoutError() | httpx.TimeoutException():
            return Cause.TIMEOUT
        case aiohttp.ClientResponseError() | HttpProcessingError() | httpx.DecodingError():
            return Cause.MALFORMED_BODY
        case _:
            return Cause.DISCONNECTED
