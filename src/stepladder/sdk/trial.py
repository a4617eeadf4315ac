"""The retries of one call: what follows a failure, without sleeping."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx

from stepladder.schemas.errors import BadInputError, UnreachableError
from stepladder.sdk.calls import NOT_RETRIED, RETRIED, header, pause_before, retry_after_s
from stepladder.sdk.problems import problem_of

if TYPE_CHECKING:
    from stepladder.sdk.calls import Call

TIMEOUT_S = 30.0
PATIENCE_S = 30.0
STREAM_S = 60.0
"""A stream sends a comment every 15 seconds."""

RECONNECT_S = 0.5
CONNECT_S = 10.0


class Address:
    """Where the API is, and the headers of requests. Its ``repr`` shows neither key nor password.

    Raises ``BadInputError`` for a URL that is not HTTP, and for a key that cannot be sent.
    """

    def __init__(self, base_url: str, api_key: str | None, timeout_s: float) -> None:
        parts = urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise BadInputError("the API's address is not an HTTP URL", remedy="write http://127.0.0.1:8700")
        self.shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        self.loopback = parts.hostname == "localhost" or parts.hostname.startswith("127.") or parts.hostname == "::1"
        self.base_url = base_url.rstrip("/")
        self.timeout_s = timeout_s
        self.headers = {"User-Agent": "stepladder"}
        if api_key is not None:
            self.headers["Authorization"] = f"Bearer {header(api_key, 'the API key')}"

    def __repr__(self) -> str:
        return repr(self.shown)

    def timeout_of(self, call: Call) -> httpx.Timeout:
        return httpx.Timeout(self.timeout_s + call.held_s, connect=min(self.timeout_s, CONNECT_S))


class Trial:
    """The failures of one call so far. Both methods return the seconds until the next retry."""

    def __init__(self, where: Address, patience_s: float) -> None:
        self._where = where
        self._patience_s = patience_s
        self._failures = 0
        self._since: float | None = None

    def answered(self, response: httpx.Response) -> float | None:
        """None for success. Raises ``ProblemError`` for a problem that a retry will not solve.

        The body must have been read unless the status is below 300.
        """
        status = response.status_code
        if status < 300:
            return None
        problem = problem_of(status, response.content)
        if status not in RETRIED or problem.type == NOT_RETRIED:
            raise problem
        pause = self._pause(retry_after_s(response.headers.get("Retry-After"), datetime.now(UTC)))
        if pause is None:
            raise problem
        return pause

    def failed(self, error: httpx.TransportError) -> float:
        """Raises ``UnreachableError`` when no retry is left."""
        if isinstance(error, httpx.UnsupportedProtocol | httpx.LocalProtocolError):
            raise BadInputError(f"the request cannot be sent: {error}") from error
        pause = self._pause(None)
        if pause is None:
            raise UnreachableError(
                f"the API at {self._where.shown} does not answer: {str(error) or type(error).__name__}",
                remedy="check that `stepladder up` or `stepladder api` runs there",
            ) from error
        return pause

    def _pause(self, retry_after: float | None) -> float | None:
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        self._failures += 1
        return pause_before(
            self._failures,
            now - self._since,
            self._patience_s,
            retry_after,
            random.random(),  # noqa: S311 -- not a secret
        )
