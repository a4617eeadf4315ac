"""The folders of the embedded servers: their data and logs, and short ones for their sockets."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from stepladder.schemas.errors import UnreachableError

RUNTIME_PREFIX = "stepladder-"
_LONGEST = 80  # bytes, so that with a server's file name a socket's path stays within the kernel's 107


def private_folder(path: Path) -> Path:
    """The absolute form of ``path``, created with mode 0700 if it is missing; a folder that exists keeps its mode.

    Raises ``UnreachableError`` if it cannot be created or written to.
    """
    try:
        folder = path.expanduser().absolute()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        probe = folder / ".writable"
        probe.touch()
        probe.unlink(missing_ok=True)
    except (OSError, RuntimeError) as error:
        raise unusable(path, error) from error
    return folder


def unusable(path: Path, error: Exception) -> UnreachableError:
    """The error for a folder of ours that cannot be used."""
    return UnreachableError(
        f"The folder {path} cannot be used: {error}.",
        remedy=f"Give yourself write access to {path}, or choose another folder with --data or STEPLADDER_HOME.",
    )


def runtime_folder() -> Path:
    """A new folder of mode 0700 with a short name, for a server's sockets while it runs."""
    parent = tempfile.gettempdir()
    fits = len(os.fsencode(parent)) < _LONGEST and parent.isprintable() and not set(parent) & set("\"'\\,")
    return Path(tempfile.mkdtemp(prefix=RUNTIME_PREFIX, dir=parent if fits else "/tmp"))  # noqa: S108 -- it is short


def replace_runtime(link: Path, runtime: Path) -> None:
    """Point ``link`` at the new runtime folder, and remove the one that a killed process left behind."""
    if link.is_symlink():
        old = link.readlink()
        link.unlink()
        # The link may belong to another user while root follows it: only a folder that looks like ours is removed.
        if old.parent == runtime.parent and old.name.startswith(RUNTIME_PREFIX):
            shutil.rmtree(old, ignore_errors=True)
    link.symlink_to(runtime)
