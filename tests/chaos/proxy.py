"""A proxy between workers and engine that cuts, half closes or stalls connections."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import Self

HOST = "127.0.0.1"


class Proxy:
    """Forwards connections to ``engine_port`` from its own thread. Faults may be injected from any thread."""

    def __init__(self, engine_port: int) -> None:
        self._engine_port = engine_port
        self._links: set[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = set()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._live()), name="proxy", daemon=True)
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()

    def cut(self, seconds: float) -> None:
        """Resets all connections, and new ones for ``seconds``."""
        self._loop.call_soon_threadsafe(self._cut, seconds)

    def close_half(self) -> None:
        """Sends the workers an end of stream in the middle of an answer."""
        self._loop.call_soon_threadsafe(self._close_half)

    def stall(self, seconds: float) -> None:
        """Forwards nothing for ``seconds``."""
        self._loop.call_soon_threadsafe(self._stall, seconds)

    async def _live(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._over, self._open = asyncio.Event(), asyncio.Event()
        self._open.set()
        self._cut_until = 0.0
        server = await asyncio.start_server(self._link, HOST, 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._over.wait()
        server.close()
        self._cut(0.0)

    async def _link(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._loop.time() < self._cut_until:
            writer.transport.abort()
            return
        try:
            engine_reader, engine_writer = await asyncio.open_connection(HOST, self._engine_port)
        except OSError:
            writer.transport.abort()
            return
        link = (writer, engine_writer)
        self._links.add(link)
        try:
            pumps = [
                asyncio.ensure_future(self._pump(*ends)) for ends in ((reader, engine_writer), (engine_reader, writer))
            ]
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            if pumps[1].done():  # the engine has finished
                await asyncio.sleep(0)
            for pump in pumps:
                pump.cancel()
            await asyncio.wait(pumps)
        finally:
            self._links.discard(link)
            for end in link:
                end.close()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while piece := await reader.read(65_536):
                await self._open.wait()
                writer.write(piece)
                await writer.drain()

    def _cut(self, seconds: float) -> None:
        self._cut_until = self._loop.time() + seconds
        for link in self._links:
            for end in link:
                end.transport.abort()

    def _close_half(self) -> None:
        for writer, _ in self._links:
            if not writer.is_closing() and writer.can_write_eof():
                with contextlib.suppress(OSError):
                    writer.write_eof()

    def _stall(self, seconds: float) -> None:
        self._open.clear()
        self._loop.call_later(seconds, self._open.set)
