"""JSON pointers (RFC 6901)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def pointer(path: Iterable[str | int]) -> str:
    """``["a/b", 0]`` as ``/a~1b/0``; the empty path is the root, ``""``."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)
