"""One log of several processes: every line says whose it is."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TextIO

from structlog.dev import ConsoleRenderer

from stepladder.cli.output import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

WIDTH = 6  # of the longest name, `worker`


class JoinedLog:
    """Writes what children say: on a terminal as ``NAME | line``, elsewhere as JSON lines with ``process``."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._render = ConsoleRenderer(colors=True) if out.isatty() else None

    def __call__(self, name: str, line: bytes) -> None:
        words = _words(line)
        if words is None:
            return
        if self._render is None:
            text = json.dumps({"process": name, **words}, ensure_ascii=False)
        else:
            shown = {key: printable(value) if isinstance(value, str) else value for key, value in words.items()}
            text = "\n".join(f"{name:{WIDTH}} | {row}" for row in self._render(None, "", shown).rstrip().split("\n"))
        with suppress(OSError):  # nobody reads it any more; the children must not wait for that
            self._out.write(text.encode(errors="backslashreplace").decode() + "\n")
            self._out.flush()


def _words(line: bytes) -> dict[str, Any] | None:
    """A line of ours as it was meant; of others, such as a traceback, the text. None for an empty one."""
    text = line.decode(errors="replace").rstrip()
    if not text:
        return None
    try:
        found: Mapping[str, Any] = json.loads(text)
    except ValueError:
        found = {}
    return dict(found) if isinstance(found, dict) and "event" in found else {"event": text}
