"""The note that a running ``stepladder up`` leaves in its HOME for the other commands, and that keeps a second one out.

The file is locked while its writer lives, and the kernel lets go of it however that one ends: an old note is never
taken for a new one.
"""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import ExitStack, contextmanager
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
    """``app`` is the module that registers tools and rules, as it was named, and ``folder`` where it was named.

    ``broker_url`` is that of a broker that ``up`` started itself, ``engine_url`` that of its engine, whoever started
    it.
    """

    pid: int
    url: str | None = None
    broker_url: str | None = None
    engine_url: str | None = None
    app: str | None = None
    folder: str | None = None


@contextmanager
def leave_note(home: Path, note: Note) -> Iterator[Callable[[Note], None]]:
    """Holds the HOME against another ``up``; what it yields writes a new note in place of ``note``.

    Raises ``BadInputError`` where another one runs.
    """
    with ExitStack() as stack:
        try:
            # A command that reads the note holds it for a moment.
            descriptor = stack.enter_context(locked(home / FILE, timeout_s=0.5))
        except UnreachableError:
            raise _taken(home, _note_in(home)) from None

        def write(note: Note) -> None:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, json.dumps(asdict(note)).encode(), 0)

        write(note)
        yield write
        os.ftruncate(descriptor, 0)


def read_note(home: Path) -> Note | None:
    """What a running ``up`` of this user has noted in ``home``; None if none runs."""
    try:
        descriptor = os.open(home.expanduser() / FILE, os.O_RDONLY)
    except (OSError, RuntimeError):
        return None
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _read(descriptor)
        return None
    finally:
        os.close(descriptor)


def _note_in(home: Path) -> Note | None:
    descriptor = os.open(home / FILE, os.O_RDONLY)
    try:
        return _read(descriptor)
    finally:
        os.close(descriptor)


def _read(descriptor: int) -> Note | None:
    try:
        return Note(**json.loads(os.pread(descriptor, 100_000, 0)))
    except (ValueError, TypeError):  # it is being written, or another version wrote it
        return None


def _taken(home: Path, note: Note | None) -> BadInputError:
    where = "" if note is None or note.url is None else f" at {note.url}"
    process = "" if note is None else f" (process {note.pid})"
    end = "end it" if note is None else f"end it with `kill {note.pid}`"
    return BadInputError(
        f"`stepladder up` runs already on the data in {home}{where}{process}",
        remedy=f"use that one, or {end}, or choose other data with --data and another --port",
    )
