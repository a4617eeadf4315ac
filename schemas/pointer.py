"""JSON pointers (RFC 6901), and their paths: a name for each object, an index for each array."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

Path: TypeAlias = tuple[str | int, ...]


def pointer(path: Iterable[str | int]) -> str:
    """``["a/b", 0]`` as ``/a~1b/0``; the empty path is the root, ``""``."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def pointer_steps(text: str) -> list[str]:
    """``/a~1b/0`` as ``["a/b", "0"]``."""
    return [step.replace("~1", "/").replace("~0", "~") for step in text.split("/")[1:]]


def resolve(text: str, value: Any) -> Path | None:
    """The path to what a pointer names in ``value``, or None if there is no such place."""
    if text and not text.startswith("/"):
        return None
    path: list[str | int] = []
    for step in pointer_steps(text):
        index = int(step) if step.isdecimal() and step.isascii() else -1
        if isinstance(value, Mapping) and step in value:
            path.append(step)
        elif isinstance(value, Sequence) and not isinstance(value, str) and 0 <= index < len(value):
            path.append(index)
        else:
            return None
        value = value[path[-1]]
    return tuple(path)


def value_at(value: Any, path: Iterable[str | int]) -> Any:
    """Raises LookupError if the path does not exist."""
    for step in path:
        value = value[step]
    return value
