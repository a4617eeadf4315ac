"""Functions called in child processes that may be killed at any time.

A server process is forked early, and knows the functions by inheritance, so that they need no import path. It has one
thread, and so can fork the children that run them safely. All of them end with this process.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import signal
import socket
import stat
import struct
import sys
import threading
import time
import warnings
from typing import TYPE_CHECKING, Any, NoReturn

from stepladder.schemas.errors import described

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

GRACE_S = 1.0
"""A child that escaped its alarm is killed this much later."""

START_WITHIN_S = 10.0
MAX_IDLE = 8
MAX_TEXT = 2_000
MAX_PRINTED = 10_000
_LENGTH = struct.Struct("!Q")


class GoneError(Exception):
    """There is no answer: the child took too long, or ended."""


class Forks:
    """The children of this process, for any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._functions: dict[int, Callable[..., Any]] = {}
        self._server: socket.socket | None = None
        self._owner = 0
        self._idle: list[_Child] = []

    def know(self, functions: Iterable[Callable[..., Any]]) -> None:
        """Functions that may be called. A server that was forked before does not have them, and ends."""
        with self._lock:
            new = {id(one): one for one in functions if id(one) not in self._functions}
            if new:
                self._functions.update(new)
                self._end()

    def start(self) -> None:
        with self._lock:
            self._serve()

    def call(self, function: Callable[..., Any], arguments: tuple[Any, dict[str, Any]], timeout_s: float) -> Any:
        """``{"returned": None or a text}`` or ``{"error": why}``, and what it ``printed``.

        Raises ``GoneError`` after ``timeout_s`` seconds.
        """
        child = self._take()
        try:
            said = child.call((id(function), timeout_s, arguments), timeout_s)
        except BaseException:
            child.end()
            raise
        with self._lock:
            if child.server is self._server and len(self._idle) < MAX_IDLE:
                self._idle.append(child)
                return said
        child.end()
        return said

    def _take(self) -> _Child:
        with self._lock:
            server = self._serve()
            if self._idle:
                return self._idle.pop()
            ours, theirs = socket.socketpair()
            try:
                with theirs:
                    socket.send_fds(server, [b"f"], [theirs.fileno()])
                ours.settimeout(START_WITHIN_S)
                return _Child(server, ours, _LENGTH.unpack(_read(ours, _LENGTH.size))[0])
            except (OSError, EOFError) as error:
                ours.close()
                self._end()
                raise GoneError(f"no process could be started: {described(error)}") from None

    def _serve(self) -> socket.socket:
        if self._server is not None and self._owner == os.getpid():
            return self._server
        ours, theirs = socket.socketpair()
        for stream in (sys.stdout, sys.stderr):  # else the child would write the same again
            with contextlib.suppress(Exception):
                stream.flush()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # other threads' locks: nothing here takes one
            pid = os.fork()
        if pid == 0:
            ours.close()
            _fork_for_ever(theirs, self._functions)
        theirs.close()
        self._server, self._owner, self._idle = ours, os.getpid(), []
        return ours

    def _end(self) -> None:
        for child in self._idle:
            child.end()
        if self._server is not None:
            self._server.close()
        self._server, self._idle = None, []


class _Child:
    def __init__(self, server: socket.socket, connection: socket.socket, pid: int) -> None:
        self.server = server
        self._connection = connection
        self._pid = pid

    def call(self, message: Any, timeout_s: float) -> Any:
        began = time.monotonic()
        try:
            self._connection.settimeout(timeout_s + GRACE_S)
            _send(self._connection, pickle.dumps(message))
            return json.loads(_receive(self._connection))
        except (OSError, EOFError, ValueError):
            if time.monotonic() - began >= timeout_s:
                raise GoneError(f"it took longer than {timeout_s:g} s") from None
            raise GoneError("its process ended") from None

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(self._pid, signal.SIGKILL)
        self._connection.close()


def _fork_for_ever(control: socket.socket, functions: dict[int, Callable[..., Any]]) -> NoReturn:
    """The server's life: forks a child for each socket that comes, until the process that started it ends."""
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children are reaped by the kernel
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        _let_go_of_sockets(control)
        while True:
            came, fds, _, _ = socket.recv_fds(control, 1, 1)
            if not came:
                os._exit(0)
            if os.fork() == 0:
                control.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                _run_for_ever(socket.socket(fileno=fds[0]), functions)
            os.close(fds[0])
    finally:
        os._exit(1)


def _let_go_of_sockets(control: socket.socket) -> None:
    """Else servers and connections of the process that started this one would stay open behind its back.

    Their numbers stay taken, since objects that are inherited may close them later.
    """
    nowhere = os.open(os.devnull, os.O_RDWR)
    for fd in [int(name) for name in os.listdir("/dev/fd")]:  # noqa: PTH208 -- names alone
        with contextlib.suppress(OSError):  # that of the listing is closed already
            if fd != control.fileno() and stat.S_ISSOCK(os.fstat(fd).st_mode):
                os.dup2(nowhere, fd)
    os.close(nowhere)


def _run_for_ever(connection: socket.socket, functions: dict[int, Callable[..., Any]]) -> NoReturn:
    try:
        connection.sendall(_LENGTH.pack(os.getpid()))
        while True:
            function, timeout_s, (value, known) = pickle.loads(_receive(connection))  # noqa: S301 -- from our own process
            signal.setitimer(signal.ITIMER_REAL, timeout_s)  # its default action kills, whatever runs
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                said = _called(functions[function], value, known)
            said["printed"] = printed.getvalue()[:MAX_PRINTED]
            signal.setitimer(signal.ITIMER_REAL, 0)
            _send(connection, json.dumps(said).encode())
    finally:
        os._exit(0)


def _called(function: Callable[..., Any], value: Any, known: dict[str, Any]) -> dict[str, str | None]:
    try:
        returned = function(value, **known)
        if returned is None:
            return {"returned": None}
        if isinstance(returned, str):
            return {"returned": str.__str__(returned)[:MAX_TEXT]}
        return {"error": f"the rule returned {type(returned).__name__}, not None or a text"}
    except BaseException as error:  # noqa: BLE001 -- a user's code may raise anything, sys.exit included
        return {"error": described(error)[:MAX_TEXT]}


def _send(connection: socket.socket, content: bytes) -> None:
    connection.sendall(_LENGTH.pack(len(content)) + content)


def _receive(connection: socket.socket) -> bytes:
    return _read(connection, _LENGTH.unpack(_read(connection, _LENGTH.size))[0])


def _read(connection: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(min(size - len(parts), 1 << 20))
        if not part:
            raise EOFError
        parts += part
    return bytes(parts)
