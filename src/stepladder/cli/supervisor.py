"""Child processes with one log: started, restarted when they end, and stopped together."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections import deque
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn, TextIO
from urllib.parse import parse_qs, urlsplit

import structlog

from stepladder.cli.output import Exit, printable
from stepladder.embedded.child import die_with_parent, python_module
from stepladder.schemas.errors import BadInputError, StepladderError, UnreachableError

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

log = structlog.get_logger("stepladder.up")

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STOP_TIMEOUT_S = 20.0  # a worker takes up to 15 seconds to finish its turns and close
CHECK_EVERY_S = 1.0
CONNECT_TIMEOUT_S = 10.0
KEPT_LINES = 12
LONGEST_LINE = 1024 * 1024

FIRST_DELAY_S = 0.5
LONGEST_DELAY_S = 15.0
QUICK_S = 20.0
MAX_QUICK = 5


async def supervise(
    children: Sequence[ChildProcess], embedded: Mapping[str, str], announce: Callable[[], Awaitable[None]]
) -> str | None:
    """Keep the children running until a signal comes (None) or an embedded server ends (its name).

    ``embedded`` are URLs by the server's name; ``announce`` runs alongside. The children have ended when this returns;
    a second signal kills them. Raises ``StepladderError`` for a child that cannot be kept running.
    """
    stop = asyncio.Event()

    def on_signal() -> None:
        if stop.is_set():
            for child in children:
                child.kill()
        stop.set()

    with _handled_by(on_signal):
        stopping = asyncio.create_task(stop.wait())
        watching = asyncio.create_task(_first_lost(embedded))
        keeping = [asyncio.create_task(child.keep_running()) for child in children]
        announcing = asyncio.ensure_future(announce())
        running = (stopping, watching, *keeping)
        await asyncio.wait((*running, announcing), return_when=asyncio.FIRST_COMPLETED)
        if announcing.done() and announcing.exception() is None:
            await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        if stop.is_set():
            log.info("stopping; interrupt again to stop at once")
        tasks = (*running, announcing)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error
    return None if stop.is_set() else watching.result()


@contextmanager
def _handled_by(handler: Callable[[], None]) -> Iterator[None]:
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


@dataclass(slots=True)
class ChildProcess:
    """One of our own commands as a child process. Use it in the main thread: the kernel ends the child with it."""

    name: str
    variables: Mapping[str, str] = field(repr=False)
    write_log: JoinedLog
    _process: Process | None = None
    _last_lines: deque[str] = field(default_factory=lambda: deque(maxlen=KEPT_LINES))

    async def keep_running(self) -> NoReturn:
        """Start it, and again whenever it ends. When cancelled, end it first.

        Raises ``StepladderError`` once restarting would not help.
        """
        quick = 0
        while True:
            began = time.monotonic()
            code = await self._run()
            ended = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
            match next_start(code, time.monotonic() - began, quick):
                case GiveUp(reason):
                    raise self._failure(code, f"the {self.name} {ended} and is not restarted: {reason}")
                case Restart(after_s, quick):
                    pid = None if self._process is None else self._process.pid
                    log.warning(f"{self.name} {ended}; restarting it", after_s=after_s, pid=pid)
                    await asyncio.sleep(after_s)

    def kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()

    async def _run(self) -> int:
        self._last_lines.clear()
        self._process = process = await asyncio.create_subprocess_exec(
            *python_module("stepladder.cli.main", self.name),
            env={**os.environ, **self.variables},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,  # we handle Ctrl-C in the terminal
            preexec_fn=_bound_to(os.getpid()),
            limit=LONGEST_LINE,
        )
        log.debug(f"{self.name} started", pid=process.pid)
        reading = asyncio.create_task(self._read_lines(process))
        try:
            return await process.wait()
        finally:
            await self._stop(process)
            await asyncio.wait((reading,), timeout=1.0)  # a process that it started may hold the pipe open
            reading.cancel()

    async def _read_lines(self, process: Process) -> None:
        assert process.stdout is not None  # noqa: S101 -- for the type checker, it is a pipe
        while True:
            try:
                line = await process.stdout.readline()
            except ValueError:  # longer than any line of ours; the rest follows as further lines
                continue
            if not line:
                return
            self._last_lines.append(line.decode(errors="replace").rstrip())
            self.write_log(self.name, line)

    async def _stop(self, process: Process) -> None:
        if process.returncode is not None:
            return
        process.terminate()
        try:
            async with asyncio.timeout(STOP_TIMEOUT_S):
                await process.wait()
        except TimeoutError:
            log.warning(f"{self.name} does not stop; killing it", pid=process.pid)
            process.kill()
            await process.wait()

    def _failure(self, code: int, message: str) -> StepladderError:
        kinds: dict[int, type[StepladderError]] = {Exit.BAD_INPUT: BadInputError, Exit.UNREACHABLE: UnreachableError}
        lines = "".join(f"\n  {self.name} | {line}" for line in self._last_lines) or "\n  (nothing)"
        message = f"{message}. Its last output:{lines}"
        return kinds.get(code, StepladderError)(message, remedy="fix that, then run `stepladder up` again")


def _bound_to(parent: int) -> Callable[[], None]:
    """To be run in the child: it dies with its parent."""

    def bind() -> None:
        die_with_parent(signal.SIGKILL)
        if os.getppid() != parent:  # the parent had ended before the kernel was asked
            os._exit(1)

    return bind


@dataclass(frozen=True, slots=True)
class Restart:
    """Start it again after ``after_s`` seconds. ``quick`` counts the quick ends in a row, this one included."""

    after_s: float
    quick: int


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Restarting would not help."""

    reason: str


def next_start(code: int, lived_s: float, quick: int) -> Restart | GiveUp:
    """What follows an end with exit code ``code`` after ``lived_s`` seconds and ``quick`` quick ends in a row before.

    Pauses double from ``FIRST_DELAY_S`` to ``LONGEST_DELAY_S``. A process that ran for ``QUICK_S`` resets the count.
    """
    if code == Exit.BAD_INPUT:  # it will be as bad the next time
        return GiveUp("its settings are invalid")
    if lived_s >= QUICK_S:
        return Restart(FIRST_DELAY_S, 0)
    if quick >= MAX_QUICK:
        return GiveUp(f"it ended {quick + 1} times in a row, each time within {QUICK_S:g} seconds")
    return Restart(min(FIRST_DELAY_S * 2**quick, LONGEST_DELAY_S), quick + 1)


class JoinedLog:
    """One log of several processes: ``NAME | line`` on a terminal, elsewhere JSON lines with the key ``process``."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._render = structlog.dev.ConsoleRenderer(colors=True) if out.isatty() else None

    def __call__(self, name: str, line: bytes) -> None:
        entry = _log_entry(line.decode(errors="replace").rstrip())
        if entry is None:
            return
        if self._render is None:
            text = json.dumps({"process": name, **entry}, ensure_ascii=False)
        else:
            shown = {key: printable(value) if isinstance(value, str) else value for key, value in entry.items()}
            rows = str(self._render(None, "", shown)).rstrip().split("\n")
            text = "\n".join(f"{name:{len('worker')}} | {row}" for row in rows)
        with suppress(OSError):  # a closed terminal must not block the children
            self._out.write(text.encode(errors="backslashreplace").decode() + "\n")
            self._out.flush()


def _log_entry(text: str) -> dict[str, Any] | None:
    """A log line of ours as it was logged, any other text as its ``event``; None for an empty line."""
    try:
        entry = json.loads(text)
    except ValueError:
        entry = None
    if isinstance(entry, dict) and "event" in entry:
        return entry
    return {"event": text} if text else None


async def _first_lost(embedded: Mapping[str, str]) -> str:
    """The name of the first server whose URL refuses connections. A slow server still accepts them."""
    while True:
        await asyncio.sleep(CHECK_EVERY_S)
        for name, url in embedded.items():
            try:
                async with asyncio.timeout(CONNECT_TIMEOUT_S):
                    await _connect(url)
            except (ConnectionError, FileNotFoundError):
                return name
            except (OSError, TimeoutError):
                continue


async def _connect(url: str) -> None:
    parts = urlsplit(url)
    match parts.scheme:
        case "postgresql":
            query = parse_qs(parts.query)
            _, writer = await asyncio.open_unix_connection(f"{query['host'][0]}/.s.PGSQL.{query['port'][0]}")
        case "redis+socket":
            _, writer = await asyncio.open_unix_connection(parts.path)
        case _:
            _, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
