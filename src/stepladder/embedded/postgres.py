"""PostgreSQL as a child process, shared by the Stepladder processes of one HOME and stopped with the last of them."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from stepladder.embedded import cluster, keeper
from stepladder.embedded.child import locked, log_failure, open_log, python_module
from stepladder.embedded.home import private_folder, unusable
from stepladder.schemas.errors import UnreachableError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_START_TIMEOUT_S = cluster.START_TIMEOUT_S + 60  # the first start creates the data
_STOP_TIMEOUT_S = cluster.STOP_TIMEOUT_S + 20


def psql_path() -> Path:
    """PostgreSQL's own client. Raises ``UnreachableError`` if the wheel is not installed."""
    return cluster.programs() / "psql"


@contextmanager
def running(home: Path) -> Iterator[str]:
    """Yield the URL (``postgresql://...``, for libpq, psycopg and psql) of the PostgreSQL of ``home``.

    Starts it unless another process runs it already, and creates its data the first time. On exit, waits until the
    server has stopped, unless other processes still use it. However this process ends, the server does not outlive it.
    Only the user who started it, and root, can connect. Data and log are in ``home/postgres``.

    Raises ``UnreachableError`` if it cannot be started.
    """
    cluster.programs()
    folder = private_folder(private_folder(home) / "postgres")
    try:
        with locked(folder / "start.lock", timeout_s=_START_TIMEOUT_S):
            member, url = _join(folder) or _launch(folder)
    except OSError as error:
        raise unusable(folder, error) from error
    try:
        yield url
    finally:
        _leave(member)


def current_url(home: Path) -> str | None:
    """The URL of the PostgreSQL that some process runs for ``home`` now, or None. Starts nothing."""
    with suppress(OSError):
        if joined := _join(home.expanduser().absolute() / "postgres"):
            member, url = joined
            member.close()
            return url
    return None


def _join(folder: Path) -> tuple[socket.socket, str] | None:
    try:
        here = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    except FileNotFoundError:
        return None
    member = socket.socket(socket.AF_UNIX)
    try:
        # this keeps the socket's path short, however long the folder's is
        member.connect(f"/proc/self/fd/{here}/{keeper.SOCKET}")
        if url := _greeting(member).get("url"):
            return member, url
    except (FileNotFoundError, ConnectionError):
        pass
    except BaseException:
        member.close()
        raise
    finally:
        os.close(here)
    member.close()
    return None


def _launch(folder: Path) -> tuple[socket.socket, str]:
    log = folder / keeper.LOG
    ours, theirs = socket.socketpair()
    try:
        with theirs, open_log(log) as output:
            subprocess.run(  # noqa: S603 -- our own interpreter and module
                python_module("stepladder.embedded.keeper", str(folder)),
                stdin=theirs.fileno(),
                stdout=output,
                stderr=output,
                start_new_session=True,
                check=False,
            )
        answer = _greeting(ours)
        if url := answer.get("url"):
            return ours, url
        if error := answer.get("error"):
            raise UnreachableError(error, remedy=answer["remedy"])
        raise log_failure("PostgreSQL's keeper ended before it was ready", log, cluster.VARIABLE)
    except BaseException:
        _leave(ours)
        raise


def _greeting(member: socket.socket) -> dict[str, str]:
    member.settimeout(_START_TIMEOUT_S)
    with member.makefile("rb") as lines:
        line = lines.readline()
    answer = json.loads(line) if line else {}
    return {str(key): str(value) for key, value in answer.items()}


def _leave(member: socket.socket) -> None:
    with member, suppress(OSError):
        member.shutdown(socket.SHUT_WR)
        member.settimeout(_STOP_TIMEOUT_S)
        while member.recv(1024):
            pass
