"""Children and servers watched over until somebody says that it is enough, or there is no point in going on."""

from __future__ import annotations

import asyncio
import json
import signal
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import structlog

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

    from stepladder.cli.children import Child, Failed

log = structlog.get_logger("stepladder.up")

LOOK_EVERY_S = 1.0
ASK_EVERY_S = 0.05
ANSWER_WITHIN_S = 10.0
SAY_AFTER_S = 10.0
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class Lost:
    """An embedded server has ended by itself."""

    name: str


async def supervise(
    children: Sequence[Child], servers: Mapping[str, str], announce: Callable[[], Awaitable[None]]
) -> Failed | Lost | None:
    """Keeps the children running; ``servers`` are the URLs of those that run for us, by their names.

    None once SIGINT, SIGTERM or SIGHUP has come; a second one kills the children. ``announce`` runs beside. The
    children have ended when it returns.
    """
    told = asyncio.Event()

    def on_signal() -> None:
        if told.is_set():
            for child in children:
                child.kill()
        told.set()

    with _signals_to(on_signal):
        ending = asyncio.ensure_future(told.wait())
        keeping = [asyncio.ensure_future(child.keep()) for child in children]
        watching = asyncio.ensure_future(_first_lost(servers))
        beside = asyncio.ensure_future(announce())
        tasks = (ending, *keeping, watching, beside)
        await asyncio.wait((ending, *keeping, watching), return_when=asyncio.FIRST_COMPLETED)
        over = [task for task in keeping if task.done()]
        if told.is_set():
            log.info("stopping; once more to stop at once")
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error
    if told.is_set():
        return None
    return over[0].result() if over else watching.result()


@contextmanager
def _signals_to(handler: Callable[[], None]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    before = {signum: signal.getsignal(signum) for signum in SIGNALS}
    for signum in SIGNALS:
        loop.add_signal_handler(signum, handler)
    try:
        yield
    finally:
        for signum in SIGNALS:
            loop.remove_signal_handler(signum)
            signal.signal(signum, before[signum])


async def _first_lost(servers: Mapping[str, str]) -> Lost:
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        for name, url in servers.items():
            if await _is_gone(url):
                return Lost(name)


async def _is_gone(url: str) -> bool:
    """Whether nobody listens there any more. A server that is merely slow listens."""
    parts = urlsplit(url)
    try:
        async with asyncio.timeout(ANSWER_WITHIN_S):
            match parts.scheme:
                case "postgresql":
                    query = parse_qs(parts.query)
                    _, writer = await asyncio.open_unix_connection(f"{query['host'][0]}/.s.PGSQL.{query['port'][0]}")
                case "redis+socket":
                    _, writer = await asyncio.open_unix_connection(parts.path)
                case _:
                    _, writer = await asyncio.open_connection(parts.hostname, parts.port)
    except (ConnectionError, FileNotFoundError):
        return True
    except (OSError, TimeoutError):
        return False
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return False


async def until_ready(url: str) -> None:
    """Returns once ``GET /readyz`` answers 200. If that takes long, it is said what is missing."""
    loop = asyncio.get_running_loop()
    say_at = loop.time() + SAY_AFTER_S
    while True:
        status, body = await _readiness(url)
        if status == 200:
            return
        if loop.time() >= say_at:
            say_at += SAY_AFTER_S
            checks = body.get("checks", ())
            missing = [check["name"] for check in checks if not check["ok"]] or ["the API itself"]
            log.warning("not ready yet", missing=missing)
        await asyncio.sleep(ASK_EVERY_S if status == 0 else LOOK_EVERY_S)  # it logs each time that it is not ready


async def _readiness(url: str) -> tuple[int, dict[str, Any]]:
    """By hand: a client for HTTP takes longer to load than all else that this process does."""
    parts = urlsplit(url)
    try:
        async with asyncio.timeout(ANSWER_WITHIN_S):
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
            try:
                writer.write(f"GET /readyz HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: close\r\n\r\n".encode())
                answer = await reader.read()
            finally:
                writer.close()
        head, _, body = answer.partition(b"\r\n\r\n")
        return int(head.split()[1]), json.loads(body)
    except (OSError, TimeoutError, ValueError, IndexError):
        return 0, {}
