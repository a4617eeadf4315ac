"""Around every route: authentication, logs, counts, security headers, and a problem for every bug."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import structlog
from starlette.datastructures import Headers, MutableHeaders

from stepladder.api.access import Principal
from stepladder.api.problems import ProblemError, of_bug
from stepladder.api.system import HEALTH
from stepladder.models.ids import uuid7

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from stepladder.api.access import Access
    from stepladder.api.metrics import Metrics

log = structlog.get_logger("stepladder.api")

ANONYMOUS = Principal("nobody", frozenset())
QUIET = (*HEALTH, "/metrics")  # polled every few seconds
SECURITY = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Middleware:
    """Rejects requests to the API without a principal. The dashboard gets all other paths, and handles its logins."""

    def __init__(self, app: ASGIApp, access: Access, metrics: Metrics, dashboard: ASGIApp | None) -> None:
        self._app = app
        self._access = access
        self._metrics = metrics
        self._dashboard = dashboard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = _Exchange(scope, send)
        with structlog.contextvars.bound_contextvars(http_request=exchange.id):
            try:
                state = scope.setdefault("state", {})
                state["request_id"] = exchange.id
                if self._dashboard is not None and not _is_own(scope["path"]):
                    await self._dashboard(scope, receive, exchange.send)
                    return
                state["principal"] = self._admit(scope)
                await self._app(scope, receive, exchange.send)
            except ProblemError as problem:
                await exchange.answer(problem, receive)
            except Exception:
                log.exception("request failed")
                await exchange.answer(of_bug(exchange.id), receive)
            finally:
                self._log(scope, exchange)

    def _admit(self, scope: Scope) -> Principal:
        if scope["path"] in HEALTH:
            return ANONYMOUS
        client = scope.get("client")
        return self._access.admit(Headers(scope=scope), None if client is None else client[0])

    def _log(self, scope: Scope, exchange: _Exchange) -> None:
        route = getattr(scope.get("route"), "path", "(none)")
        method = scope["method"] if scope["method"] in METHODS else "(other)"
        self._metrics.answered(method, route, exchange.status)
        principal: Principal | None = scope.get("state", {}).get("principal")
        write = log.debug if scope["path"] in QUIET else log.info
        write(
            "request",
            method=scope["method"],
            path=scope["path"][:LONGEST_PATH],  # without the query, which may hold private data
            status=exchange.status,
            duration_ms=round((time.monotonic() - exchange.began) * 1000, 1),
            principal=None if principal is None else principal.name,
        )


def _is_own(path: str) -> bool:
    return path.startswith("/v1/") or path in ("/v1", "/metrics", "/openapi.json", *HEALTH)


METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
LONGEST_PATH = 200


class _Exchange:
    """One request and its answer, with headers added."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self.id = str(uuid7())
        self.began = time.monotonic()
        self.status = 0
        self._scope = scope
        self._send = send

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in SECURITY.items():
                headers.setdefault(name, value)
            headers["X-Request-Id"] = self.id
        await self._send(message)

    async def answer(self, problem: ProblemError, receive: Receive) -> None:
        """Sends a problem, unless an answer has begun."""
        if not self.status:
            await problem.answer()(self._scope, receive, self.send)
