"""Maps the HTTP libraries' exceptions to causes.

The adapter between httpx and aiohttp reports several different errors as a connect timeout, a server that hangs up
among them, and lets some of aiohttp's exceptions through. So the underlying exception decides.
"""

from __future__ import annotations

import aiohttp
import httpx
from aiohttp.http_exceptions import HttpProcessingError

from stepladder.schemas.outcomes import Cause

FOREIGN = (httpx.HTTPError, aiohttp.ClientError, HttpProcessingError, OSError)
"""Everything that the two libraries raise when an exchange fails. ``TimeoutError`` is an ``OSError``."""

MAX_DETAIL_LENGTH = 300


def diagnose(error: Exception) -> tuple[Cause, str]:
    """Why no complete answer arrived, and the library's message.

    ``connect``: there was no connection, so the engine never saw the request. ``malformed_body``: the answer is not
    valid HTTP. Everything else broke an open connection.
    """
    origin = error.__cause__ if isinstance(error, httpx.TransportError) and error.__cause__ else error
    if isinstance(origin, aiohttp.ServerDisconnectedError):
        return Cause.DISCONNECTED, "The engine hung up before its answer began."
    return _cause(origin), f"{type(origin).__name__}: {origin}".strip(": ")[:MAX_DETAIL_LENGTH]


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
