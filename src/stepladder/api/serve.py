"""Serving the application over HTTP until it is stopped."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import signal
import socket
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import h11
import structlog
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from stepladder.api.problems import ProblemError
from stepladder.schemas.errors import BadInputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stepladder.api.app import Application

log = structlog.get_logger("stepladder.api")

END_WITHIN_S = 10
"""Requests in flight when the server is stopped have this long."""

KEEP_ALIVE_S = 60
BACKLOG = 2048
SIGNALS = (signal.SIGINT, signal.SIGTERM)


async def serve(app: Application, host: str, port: int, *, started: Callable[[str], None] = lambda _: None) -> None:
    """Serves ``app`` until SIGINT or SIGTERM, or until it is cancelled; ``started`` is called with the URL.

    Then streams are ended, requests in flight are finished, and it returns. A second signal aborts them. Port 0 takes a
    free one. Raises ``BadInputError`` for an address that cannot be listened on, and, without API keys, for one that
    other machines can reach.
    """
    if not app.access.wants_key and not is_loopback(host):
        message = f"without API keys the API listens only on loopback, and {host} is not"
        raise BadInputError(message, remedy="set STEPLADDER_API_KEYS, or listen on 127.0.0.1")
    with _listening(host, port) as listener:
        config = uvicorn.Config(
            app,
            http=_Protocol,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,  # the application's own log has more, and leaves out queries
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=END_WITHIN_S,
            backlog=BACKLOG,
        )
        with _forwarded_logs():
            server = _Server(config, app, lambda: started(_url(host, listener)))
            serving = asyncio.ensure_future(server.serve(sockets=[listener]))
            try:
                await asyncio.shield(serving)
            except asyncio.CancelledError:
                server.end()
                while not serving.done():  # a second cancellation must not leave its sockets open in the loop
                    with suppress(asyncio.CancelledError):
                        await asyncio.wait((serving,))
                raise


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach what listens on ``host``."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, *_, address = found[0]
        listener = socket.create_server(address[:2], family=family, backlog=BACKLOG)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        message = f"the API cannot listen on {host} port {port}: {reason}"
        raise BadInputError(message, remedy="choose another port or address") from None
    # Accepted sockets inherit this. asyncio sets it only on sockets that name their protocol, which this one does not;
    # without it every answer waits 40 ms for an acknowledgement.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with listener:
        yield listener


def _url(host: str, listener: socket.socket) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"


class _Server(uvicorn.Server):
    """Signals end streams first, and are not raised again once the server has ended."""

    def __init__(self, config: uvicorn.Config, app: Application, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._app = app
        self._tell_started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._tell_started()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        for signum in SIGNALS:
            loop.add_signal_handler(signum, self.end)
        try:
            yield
        finally:
            for signum in SIGNALS:
                loop.remove_signal_handler(signum)

    def end(self) -> None:
        self.force_exit = self.should_exit
        self.should_exit = True
        self._app.end_streams()

    def _log_started_message(self, listeners: Any) -> None:
        """``started`` is called instead."""


class _Protocol(H11Protocol):
    """Requests that are not HTTP are answered with a problem, too."""

    def send_400_response(self, msg: str) -> None:
        problem = ProblemError(400, "bad-http", msg, remedy="send a request in HTTP/1.1").answer()
        headers = [*problem.raw_headers, (b"connection", b"close")]
        for event in (
            h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
            h11.Data(data=bytes(problem.body)),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


class _Forward(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        log.log(record.levelno, record.getMessage(), exc_info=record.exc_info)


@contextmanager
def _forwarded_logs() -> Iterator[None]:
    """uvicorn's warnings and errors in our log."""
    logger, handler = logging.getLogger("uvicorn"), _Forward(logging.WARNING)
    before = (logger.propagate, logger.level)
    logger.addHandler(handler)
    logger.propagate, logger.level = False, logging.WARNING
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate, logger.level = before
