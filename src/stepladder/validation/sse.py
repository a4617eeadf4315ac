"""Server-sent events (the WHATWG's ``text/event-stream``) as engines send them, out of the bytes of a whole stream."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_FIRST_LINE = re.compile(rb"(?:\xef\xbb\xbf)?[\s]*(?:data|event|id|retry)?:")


class Event(NamedTuple):
    """One event. ``cut`` says that the stream ended before the blank line that closes it."""

    name: str
    data: bytes
    cut: bool = False


def looks_like_events(body: bytes) -> bool:
    """Whether a body begins as an event stream does, regardless of its headers."""
    return _FIRST_LINE.match(body) is not None


def events(body: bytes) -> Iterator[Event]:
    """The events with data, in order. Several ``data`` lines are one value, joined by line feeds."""
    name = ""
    data: list[bytes] = []
    for line in body.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"):
        if not line:
            if data:
                yield Event(name, b"\n".join(data))
            name, data = "", []
            continue
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            data.append(value)
        elif field == b"event":
            name = value.decode("utf-8", "replace")
    if data:
        yield Event(name, b"\n".join(data), cut=True)
