"""``stepladder up``: the whole system on this machine, until Ctrl-C."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import socket
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from stepladder.cli.output import Exit, console, escape, say_json
from stepladder.schemas.errors import BadInputError, StepladderError, UnreachableError
from stepladder.wiring.settings import PREFIX, load_settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from stepladder.cli.children import Child, Failed
    from stepladder.cli.supervisor import Lost
    from stepladder.wiring.note import Note
    from stepladder.wiring.settings import Settings

PORT_WITHIN_S = 2.0
"""The children of an ``up`` that was killed are gone in milliseconds."""


def up(
    data: Annotated[Path | None, typer.Option(metavar="DIR", help="where the data lie; else STEPLADDER_HOME")] = None,
    host: Annotated[str | None, typer.Option(help="address of the API; beyond this machine it wants keys")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="of the API; 8700 unless it is set")] = None,
    app: Annotated[str | None, typer.Option(help="Python module, or .py file, that registers tools and rules")] = None,
    model: Annotated[str | None, typer.Option(help="model to ask for; else the first that the engine lists")] = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="say in one line of JSON where it is, once it is ready")
    ] = False,
) -> None:
    """Run PostgreSQL, Valkey, an engine, a worker and the API until Ctrl-C; those that are set are not started."""
    from stepladder.embedded.home import private_folder
    from stepladder.wiring.logs import configure_logs
    from stepladder.wiring.note import Note, leave_note

    began = time.monotonic()
    settings = load_settings(home=data, host=host, port=port, app=app, model=model, log_level=log_level)
    configure_logs(settings.log_level or "info")
    signal.signal(signal.SIGTERM, _stop)
    settings = settings.model_copy(update={"home": private_folder(settings.home)})
    note = Note(os.getpid(), app=settings.app, folder=str(Path.cwd()))
    with leave_note(settings.home, note) as write:
        settings = settings.model_copy(update={"port": _free_port(settings.host, settings.port)})
        _go_round(_System(settings, note, write, began, as_json))


def _stop(signum: int, _frame: FrameType | None) -> NoReturn:
    """While servers are started or stopped; in between ``supervise`` takes the signals."""
    sys.exit(128 + signum)


def _free_port(host: str, port: int) -> int:
    """The port, or a free one for 0. Raises ``BadInputError`` where it is taken."""
    deadline = time.monotonic() + PORT_WITHIN_S
    while True:
        try:
            family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
            with socket.create_server(address[:2], family=family) as probe:
                return int(probe.getsockname()[1])
        except OSError as error:
            if time.monotonic() < deadline:
                time.sleep(0.05)
                continue
            reason = os.strerror(error.errno) if error.errno else str(error)
            message = f"the API cannot listen at {host} port {port}: {reason.lower()}"
            remedy = f"see what does with `ss -ltnp | grep :{port}`, or choose another one with --port"
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
        """Where the API can be asked from here."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.settings.host, self.settings.host)  # noqa: S104
        return f"http://{f'[{host}]' if ':' in host else host}:{self.settings.port}"


def _go_round(system: _System) -> None:
    """Servers and children, and all of them again when an embedded server has ended by itself.

    Returns when it was told to end. Raises ``StepladderError`` when there is no point in going on.
    """
    import structlog

    from stepladder.cli.children import Failed
    from stepladder.cli.restarts import GiveUp, next_start

    log = structlog.get_logger("stepladder.up")
    quick = 0
    while True:
        began = time.monotonic()
        end = _round(system)
        if end is None:
            return
        if isinstance(end, Failed):
            raise _hopeless(end)
        follows = next_start(1, time.monotonic() - began, quick)
        if isinstance(follows, GiveUp):
            message = f"{end.name} does not keep running: {follows.reason}"
            raise UnreachableError(message, remedy=f"see its log under {system.settings.home}")
        log.warning(f"{end.name} has ended by itself; all is started again", after_s=follows.after_s)
        quick = follows.quick
        time.sleep(follows.after_s)


def _round(system: _System) -> Failed | Lost | None:
    from stepladder.cli.supervisor import supervise, until_ready
    from stepladder.wiring import servers
    from stepladder.wiring.logs import say

    settings = system.settings
    with ExitStack() as stack:
        database_url = stack.enter_context(servers.database(settings, say))
        servers.ensure_tables(database_url)
        broker_url = stack.enter_context(servers.broker(settings, say))
        engine_url = stack.enter_context(servers.engine(settings, say))
        embedded = {
            name: url
            for name, url, configured in (
                ("PostgreSQL", database_url, settings.database_url),
                ("Valkey", broker_url, settings.broker_url),
                ("the engine", engine_url, settings.engine_url),
            )
            if configured is None
        }
        # A broker that is set is set for the other commands as well, and its URL may hold a password.
        noted = broker_url if "Valkey" in embedded else None
        system.write_note(replace(system.note, url=system.url, broker_url=noted, engine_url=engine_url))
        variables = {"DATABASE_URL": database_url, "BROKER_URL": broker_url, "ENGINE_URL": engine_url}
        children = _children(settings, variables)

        async def announce() -> None:
            await until_ready(system.url)
            _announce(system)

        return asyncio.run(supervise(children, embedded, announce))


def _children(settings: Settings, servers: dict[str, str]) -> list[Child]:
    from stepladder.cli.children import Child, Program
    from stepladder.cli.joinedlog import JoinedLog
    from stepladder.embedded.child import python_module

    given = {
        "HOME": str(settings.home),
        "APP": settings.app,
        "MODEL": settings.model,
        "HOST": settings.host,
        "PORT": str(settings.port),
        "LOG_LEVEL": settings.log_level,
        **servers,
    }
    variables = {PREFIX + name: value for name, value in given.items() if value is not None}
    log = JoinedLog(sys.stderr)
    return [
        Child(Program(name, python_module("stepladder.cli.main", name), variables), log) for name in ("worker", "api")
    ]


def _announce(system: _System) -> None:
    settings, took = system.settings, time.monotonic() - system.began
    if system.as_json:
        ready = {"url": system.url, "home": settings.home, "pid": system.note.pid, "ready_s": round(took, 2)}
        say_json(ready, indent=None)
        return
    out = console()
    out.print(f"\n[bold green]Stepladder is ready[/] at [bold]{system.url}[/] after {took:.1f} s")
    out.print(f"  data under {escape(str(settings.home))}; Ctrl-C stops it all\n")
    out.print("In another terminal:")
    if settings.home != load_settings().home.expanduser().absolute():
        out.print(f"  export {PREFIX}HOME={escape(shlex.quote(str(settings.home)))}")
    out.print("  stepladder publish workflow.yaml")
    out.print("  stepladder submit NAME --input '{}' --wait")
    out.print('  stepladder jobs                  psql "$(stepladder db-url)"\n')


def _hopeless(failed: Failed) -> StepladderError:
    from stepladder.cli.restarts import ended_by

    lines = "".join(f"\n  {failed.name} | {line}" for line in failed.lines) or "\n  (nothing)"
    message = f"the {failed.name} {ended_by(failed.code)}, and is not started again: {failed.reason}"
    message += f". It said last:{lines}"
    kinds: dict[int, type[StepladderError]] = {Exit.BAD_INPUT: BadInputError, Exit.UNREACHABLE: UnreachableError}
    return kinds.get(failed.code, StepladderError)(message, remedy="mend that, and run `stepladder up` again")
