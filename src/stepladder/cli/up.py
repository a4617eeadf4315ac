"""``stepladder up``: the whole system on this machine, until Ctrl-C.

Embedded servers are started first, then the worker and the API as child processes. A child that ends is started again
after a pause; when an embedded server ends, everything is started again. The kernel ends every child with this process.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import shlex
import signal
import socket
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn
from urllib.parse import urlsplit

import structlog
import typer

from stepladder.cli.options import App, Host, LogLevel, Model, Port
from stepladder.cli.output import console, escape, print_json
from stepladder.schemas.errors import BadInputError, UnreachableError
from stepladder.wiring.settings import PREFIX, load_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import FrameType

    from stepladder.wiring.note import Note
    from stepladder.wiring.settings import Settings

log = structlog.get_logger("stepladder.up")

PORT_FREE_WITHIN_S = 2.0  # the children of a killed `up` end in milliseconds
CHECK_EVERY_S = 1.0
POLL_EVERY_S = 0.05
ANSWER_TIMEOUT_S = 10.0
REPORT_EVERY_S = 10.0


def up(
    data: Annotated[Path | None, typer.Option(metavar="DIR", help="data folder; default: STEPLADDER_HOME")] = None,
    host: Host = None,
    port: Port = None,
    app: App = None,
    model: Model = None,
    log_level: LogLevel = None,
    as_json: Annotated[bool, typer.Option("--json", help="once ready, print the URL as one line of JSON")] = False,
) -> None:
    """Run PostgreSQL, Valkey, an engine, a worker and the API until Ctrl-C. Configured servers are not started."""
    from stepladder.embedded.home import private_folder
    from stepladder.wiring.logs import configure_logs
    from stepladder.wiring.note import Note, leave_note

    began = time.monotonic()
    settings = load_settings(home=data, host=host, port=port, app=app, model=model, log_level=log_level)
    configure_logs(settings.log_level or "info")
    signal.signal(signal.SIGTERM, _exit)
    settings = settings.model_copy(update={"home": private_folder(settings.home)})
    note = Note(os.getpid(), app=settings.app, folder=str(Path.cwd()))
    with leave_note(settings.home, note) as write:
        settings = settings.model_copy(update={"port": _free_port(settings.host, settings.port)})
        _run_until_stopped(_System(settings, note, write, began, as_json))


def _exit(signum: int, _frame: FrameType | None) -> NoReturn:
    """For the time in which servers start or stop; in between ``supervise`` handles the signals."""
    sys.exit(128 + signum)


def _free_port(host: str, port: int) -> int:
    """The port, or a free one for 0. Raises ``BadInputError`` if it is taken."""
    deadline = time.monotonic() + PORT_FREE_WITHIN_S
    while True:
        try:
            family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
            with socket.create_server(address[:2], family=family) as probe:
                return int(probe.getsockname()[1])
        except OSError as error:
            if time.monotonic() < deadline:
                time.sleep(POLL_EVERY_S)
                continue
            reason = os.strerror(error.errno) if error.errno else str(error)
            message = f"the API cannot listen on {host} port {port}: {reason.lower()}"
            remedy = f"find the process that uses it with `ss -ltnp | grep :{port}`, or choose another port with --port"
            raise BadInputError(message, remedy=remedy) from None


@dataclass(frozen=True, slots=True)
class _System:
    settings: Settings
    note: Note
    write_note: Callable[[Note], None]
    began: float
    as_json: bool

    @property
    def url(self) -> str:
        """The API's URL, as seen from this machine."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.settings.host, self.settings.host)  # noqa: S104
        return f"http://{f'[{host}]' if ':' in host else host}:{self.settings.port}"


def _run_until_stopped(system: _System) -> None:
    """Start everything, and again after an embedded server has ended.

    Raises ``StepladderError`` when starting again would not help.
    """
    from stepladder.cli.supervisor import GiveUp, next_start

    quick = 0
    while True:
        began = time.monotonic()
        lost = _run_once(system)
        if lost is None:
            return
        following = next_start(1, time.monotonic() - began, quick)
        if isinstance(following, GiveUp):
            message = f"{lost} does not keep running: {following.reason}"
            raise UnreachableError(message, remedy=f"see its log under {system.settings.home}")
        log.warning(f"{lost} ended unexpectedly; restarting everything", after_s=following.after_s)
        quick = following.quick
        time.sleep(following.after_s)


def _run_once(system: _System) -> str | None:
    """The name of the embedded server that ended, or None after a signal."""
    from stepladder.cli.supervisor import ChildProcess, JoinedLog, supervise
    from stepladder.wiring import servers
    from stepladder.wiring.logs import say

    settings = system.settings
    with ExitStack() as stack:
        database_url = stack.enter_context(servers.database(settings, say))
        servers.ensure_tables(database_url)
        broker_url = stack.enter_context(servers.broker(settings, say))
        engine_url = stack.enter_context(servers.engine(settings, say))
        configured = {
            "PostgreSQL": (database_url, settings.database_url),
            "Valkey": (broker_url, settings.broker_url),
            "the engine": (engine_url, settings.engine_url),
        }
        embedded = {name: url for name, (url, setting) in configured.items() if setting is None}
        # A configured broker is configured for the other commands as well, and its URL may hold a password.
        noted = broker_url if "Valkey" in embedded else None
        system.write_note(replace(system.note, url=system.url, broker_url=noted, engine_url=engine_url))
        urls = {"DATABASE_URL": database_url, "BROKER_URL": broker_url, "ENGINE_URL": engine_url}
        children = [ChildProcess(name, _variables(settings, urls), JoinedLog(sys.stderr)) for name in ("worker", "api")]
        return asyncio.run(supervise(children, embedded, lambda: _announce_when_ready(system)))


def _variables(settings: Settings, urls: Mapping[str, str]) -> dict[str, str]:
    given = {
        "HOME": str(settings.home),
        "APP": settings.app,
        "MODEL": settings.model,
        "HOST": settings.host,
        "PORT": str(settings.port),
        "LOG_LEVEL": settings.log_level,
        **urls,
    }
    return {PREFIX + name: value for name, value in given.items() if value is not None}


async def _announce_when_ready(system: _System) -> None:
    """Print the URL once ``GET /readyz`` answers 200; until then, log what is missing from time to time."""
    report_at = time.monotonic() + REPORT_EVERY_S
    while (found := await asyncio.to_thread(_readiness, system.url))[0] != 200:
        status, body = found
        if time.monotonic() >= report_at:
            report_at += REPORT_EVERY_S
            missing = [check["name"] for check in body.get("checks", ()) if not check["ok"]] or ["the API"]
            log.warning("not ready yet", missing=missing)
        await asyncio.sleep(CHECK_EVERY_S if status else POLL_EVERY_S)  # the API logs each check that fails
    _announce(system)


def _readiness(url: str) -> tuple[int, dict[str, Any]]:
    """Status and body; status 0 for no answer. The standard library's client, as httpx takes long to load."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=ANSWER_TIMEOUT_S)
    try:
        connection.request("GET", "/readyz")
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    except (OSError, ValueError, http.client.HTTPException):
        return 0, {}
    finally:
        connection.close()


def _announce(system: _System) -> None:
    settings, took = system.settings, time.monotonic() - system.began
    if system.as_json:
        ready = {"url": system.url, "home": str(settings.home), "pid": system.note.pid, "ready_s": round(took, 2)}
        print_json(ready, indent=None)
        return
    out = console()
    out.print(f"\n[bold green]Stepladder is ready[/] at [bold]{system.url}[/] after {took:.1f} s")
    out.print(f"  data in {escape(str(settings.home))}; press Ctrl-C to stop\n")
    out.print("In another terminal:")
    if settings.home != load_settings().home.expanduser().absolute():
        out.print(f"  export {PREFIX}HOME={escape(shlex.quote(str(settings.home)))}")
    out.print("  stepladder publish workflow.yaml")
    out.print("  stepladder submit NAME --input '{}' --wait")
    out.print('  stepladder jobs                  psql "$(stepladder db-url)"\n')
