"""What the child processes of this room have in common."""

from __future__ import annotations

import ctypes
import fcntl
import os
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

from stepladder.schemas.errors import UnreachableError

if TYPE_CHECKING:
    import signal
    from collections.abc import Iterator
    from pathlib import Path

LOG_BYTES = 10_000_000  # a log is set aside once it has grown past this, and one old log is kept
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def python_module(name: str, *arguments: str) -> list[str]:
    """The command that runs a module of this package in a new interpreter, whatever lies in the current folder."""
    return [sys.executable, "-P", "-m", name, *arguments]


def die_with_parent(signum: signal.Signals) -> None:
    """Ask the kernel for `signum` when the thread that forked this process ends: to be called in the child."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signum))


def open_log(path: Path) -> BinaryIO:
    """A log to append to; one that has grown too long is renamed to ``NAME.1`` first."""
    if path.exists() and path.stat().st_size > LOG_BYTES:
        path.replace(path.with_name(path.name + ".1"))
    return path.open("ab")


def tail(path: Path, lines: int = 12) -> str:
    """The last lines of a log, for an error message."""
    try:
        text = path.read_bytes()[-20_000:].decode(errors="replace")
    except OSError:
        return "(no log)"
    return "\n".join(text.splitlines()[-lines:]) or "(the log is empty)"


@contextmanager
def locked(path: Path, *, timeout_s: float) -> Iterator[int]:
    """Hold the file `path` against every other process; yields its descriptor.

    The kernel lets go when the last process that holds the descriptor ends, however it ends.
    Raises `UnreachableError` after `timeout_s` seconds.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        deadline = time.monotonic() + timeout_s
        while not _try_lock(descriptor):
            if time.monotonic() > deadline:
                raise UnreachableError(
                    f"Another process has held {path} for {timeout_s:.0f} seconds.",
                    remedy=f"See which one with `fuser {path}` and end it, then try again.",
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
