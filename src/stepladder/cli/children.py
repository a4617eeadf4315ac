"""Child processes with one log: started, listened to, started again when they crash, and ended together."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import structlog

from stepladder.cli.restarts import Again, GiveUp, ended_by, next_start
from stepladder.embedded.child import die_with_parent

if TYPE_CHECKING:
    from asyncio.subprocess import Process

log = structlog.get_logger("stepladder.up")

END_WITHIN_S = 20.0
"""A worker takes up to 15 seconds to come to the end of its turns and to close."""

LAST_LINES = 12
LONGEST_LINE = 1024 * 1024

Say = Callable[[str, bytes], None]
"""Takes the name of a child and one line that it wrote."""


@dataclass(frozen=True, slots=True)
class Program:
    """What a child runs, and the variables that it is given beside our own."""

    name: str
    command: Sequence[str]
    variables: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Failed:
    """Why a child is not started again, and what it said last."""

    name: str
    code: int
    reason: str
    lines: tuple[str, ...]


class Child:
    """Keeps one program running. Use it in the main thread: the kernel ends the child with the thread that made it."""

    def __init__(self, program: Program, say: Say) -> None:
        self.name = program.name
        self._program = program
        self._say = say
        self._process: Process | None = None
        self._lines: deque[str] = deque(maxlen=LAST_LINES)

    async def keep(self) -> Failed:
        """Starts it, and again whenever it ends, until that would be in vain. Cancelled, it ends the child first."""
        quick = 0
        while True:
            began = time.monotonic()
            code = await self._run()
            match next_start(code, time.monotonic() - began, quick):
                case GiveUp(reason):
                    return Failed(self.name, code, reason, tuple(self._lines))
                case Again(after_s, quick):
                    log.warning(f"{self.name} {ended_by(code)}; it is started again", after_s=after_s, pid=self._pid)
                    await asyncio.sleep(after_s)

    def kill(self) -> None:
        """At once, whatever it is doing."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()

    @property
    def _pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    async def _run(self) -> int:
        self._lines.clear()
        self._process = process = await asyncio.create_subprocess_exec(
            *self._program.command,
            env={**os.environ, **self._program.variables},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C in the terminal is for us to handle
            preexec_fn=_minder(os.getpid()),
            limit=LONGEST_LINE,
        )
        log.debug(f"{self.name} started", pid=process.pid)
        listening = asyncio.create_task(self._listen(process))
        try:
            code = await process.wait()
            # What it started itself may hold the pipe open.
            await asyncio.wait((listening,), timeout=1.0)
            return code
        finally:
            await self._end(process)
            await asyncio.wait((listening,), timeout=1.0)
            listening.cancel()

    async def _listen(self, process: Process) -> None:
        assert process.stdout is not None  # noqa: S101 -- for the type checker, it is a pipe
        while True:
            try:
                line = await process.stdout.readline()
            except ValueError:  # longer than anything that we write; the rest follows as lines of their own
                continue
            if not line:
                return
            self._lines.append(line.decode(errors="replace").rstrip())
            self._say(self.name, line)

    async def _end(self, process: Process) -> None:
        if process.returncode is not None:
            return
        process.terminate()
        try:
            async with asyncio.timeout(END_WITHIN_S):
                await process.wait()
        except TimeoutError:
            log.warning(f"{self.name} does not end, and is killed", pid=process.pid)
            process.kill()
            await process.wait()


def _minder(parent: int) -> Callable[[], None]:
    def minded() -> None:
        die_with_parent(signal.SIGKILL)
        if os.getppid() != parent:  # it was gone before the kernel was asked
            os._exit(1)

    return minded
