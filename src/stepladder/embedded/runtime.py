"""The short, private folder in which a server's sockets lie while it runs."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

PREFIX = "stepladder-"
_LONGEST = 80  # bytes, so that with a server's file name a socket's path stays within the kernel's 107


def runtime_folder() -> Path:
    """A new folder of mode 0700 with a short name."""
    parent = tempfile.gettempdir()
    fits = len(os.fsencode(parent)) < _LONGEST and parent.isprintable() and not set(parent) & set("\"'\\,")
    return Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent if fits else "/tmp"))  # noqa: S108 - short on purpose


def replace_runtime(link: Path, runtime: Path) -> None:
    """Note in `link` where the sockets are, and clear away what a process that was killed left there."""
    if link.is_symlink():
        old = link.readlink()
        link.unlink()
        # somebody else may own the link that root follows here, so it counts only if it looks like one of ours
        if old.parent == runtime.parent and old.name.startswith(PREFIX):
            shutil.rmtree(old, ignore_errors=True)
    link.symlink_to(runtime)
