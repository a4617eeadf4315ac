"""The process that keeps PostgreSQL running while any process of this HOME needs it.

Every Stepladder process that uses the server is a member: it holds one connection to the keeper's socket in
HOME/postgres. The kernel closes that connection however the member ends, SIGKILL included; when the last one is closed,
the keeper stops the server and ends. A member that leaves in an orderly way closes its half and reads until the keeper
closes the other: at once if others remain, else when the server has stopped. If the keeper itself is killed, the kernel
stops the server.

A separate session keeps Ctrl-C in the terminal away from both.
"""

from __future__ import annotations

import json
import os
import selectors
import shutil
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from stepladder.embedded import cluster
from stepladder.embedded.child import locked, open_log
from stepladder.embedded.home import replace_runtime, runtime_folder
from stepladder.schemas.errors import StepladderError

if TYPE_CHECKING:
    import subprocess
    from types import FrameType

SOCKET = "keeper.sock"
LOG = "postgres.log"


def serve(
    listener: socket.socket, members: set[socket.socket], server: subprocess.Popen[bytes], greeting: bytes
) -> None:
    """Greet new members, and return when the last one has left or the server has ended by itself."""
    with selectors.DefaultSelector() as selector:
        selector.register(listener, selectors.EVENT_READ)
        for member in members:
            selector.register(member, selectors.EVENT_READ)
        while server.poll() is None:
            for key, _ in selector.select(timeout=1):
                ready = key.fileobj
                if ready is listener:
                    member, _ = listener.accept()
                    with suppress(OSError):  # a disconnected member is removed in the next round
                        member.sendall(greeting)
                    members.add(member)
                    selector.register(member, selectors.EVENT_READ)
                elif isinstance(ready, socket.socket) and _has_left(ready):
                    if len(members) == 1:
                        return  # its connection stays open: the last member waits for this process to end
                    selector.unregister(ready)
                    members.remove(ready)
                    ready.close()


def _has_left(member: socket.socket) -> bool:
    try:
        return member.recv(64) == b""
    except OSError:
        return True


def keep(folder: Path, members: set[socket.socket]) -> None:
    """Run the server in ``folder`` for ``members``, at first the one that started this process.

    The last member's connection is still open on return.
    """
    address = folder / SOCKET
    runtime = runtime_folder()
    try:
        with open_log(folder / LOG) as log, locked(folder / "alive.lock", timeout_s=60) as lock:
            replace_runtime(folder / "runtime", runtime)
            postgres = cluster.Cluster(folder, runtime, log)
            greeting = json.dumps({"url": postgres.url}).encode() + b"\n"
            server = postgres.start(lock)
            try:
                address.unlink(missing_ok=True)
                os.chdir(folder)  # a socket's path may be 107 bytes long, a folder's 4,095
                with socket.socket(socket.AF_UNIX) as listener:
                    listener.bind(SOCKET)
                    listener.listen(64)
                    for member in members:
                        with suppress(OSError):
                            member.sendall(greeting)
                    serve(listener, members, server, greeting)
            finally:
                address.unlink(missing_ok=True)
                cluster.stop(server)
                (folder / "runtime").unlink(missing_ok=True)
    finally:
        shutil.rmtree(runtime, ignore_errors=True)


def _end(signum: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(128 + signum)


def main() -> None:
    """``python -m stepladder.embedded.keeper FOLDER``, with the first member's connection as standard input."""
    if os.fork():
        os._exit(0)  # the keeper is reparented to init, so that no member has to reap it
    first = socket.socket(fileno=os.dup(0))
    members = {first}
    with Path(os.devnull).open() as nothing:
        os.dup2(nothing.fileno(), 0)
    for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(signum, _end)
    try:
        keep(Path(sys.argv[1]), members)
    except (StepladderError, OSError) as error:
        remedy = error.remedy if isinstance(error, StepladderError) else ""
        with suppress(OSError):
            first.sendall(json.dumps({"error": str(error), "remedy": remedy}).encode() + b"\n")
    os._exit(0)  # the last connection closes with the process: a member that waits for it finds the server stopped


if __name__ == "__main__":
    main()
