"""The note that a running ``stepladder up`` leaves in its HOME for other commands, and that keeps a second ``up`` out.

The file is locked while its writer lives, and the kernel releases the lock however that ends. An old note is therefore
never mistaken for a current one.
"""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from stepladder.embedded.child import locked
from stepladder.schemas.errors import BadInputError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

FILE = "up.json"


@dataclass(frozen=True, slots=True)
class Note:
    """``app`` is the module that registers tools and rules, relative to ``folder``. ``broker_url`` is set only for a
    broker that ``up`` started itself, ``engine_url`` for any engine.
    """

    pid: int
    url: str | None = None
    broker_url: str | None = None
    engine_url: str | None = None
    app: str | None = None
    folder: str | None = None


@contextmanager
def leave_note(home: Path, note: Note) -> Iterator[Callable[[Note], None]]:
    """Hold the HOME against another ``up``; yields a function that replaces the note.

    Raises ``BadInputError`` if another one runs.
    """
    path = home / FILE
    with ExitStack() as stack:
        try:
            # a command that reads the note holds the lock for a moment
            descriptor = stack.enter_context(locked(path, timeout_s=0.5))
        except UnreachableError:
            raise _already_running(home, _parse(path.read_bytes())) from None

        def write(note: Note) -> None:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, json.dumps(asdict(note)).encode(), 0)

        write(note)
        yield write
        os.ftruncate(descriptor, 0)


def read_note(home: Path) -> Note | None:
    """The note of this user's running ``up`` in ``home``; None if none runs."""
    with suppress(OSError, RuntimeError), (home.expanduser() / FILE).open("rb") as file:
        if os.fstat(file.fileno()).st_uid == os.geteuid():
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return _parse(file.read())
    return None


def _parse(content: bytes) -> Note | None:
    try:
        return Note(**json.loads(content))
    except (ValueError, TypeError):  # it is being written, or another version wrote it
        return None


def _already_running(home: Path, note: Note | None) -> BadInputError:
    where = "" if note is None or note.url is None else f" at {note.url}"
    process = "" if note is None else f" (process {note.pid})"
    end = "end it" if note is None else f"end it with `kill {note.pid}`"
    return BadInputError(
        f"`stepladder up` already runs on the data in {home}{where}{process}",
        remedy=f"use that one, or {end}, or choose other data with --data and another --port",
    )
