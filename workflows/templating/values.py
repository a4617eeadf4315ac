"""Values as templates see them: read-only, keys and nothing else, printed as JSON.

The engine calls methods of the Python objects that it is given and reads their attributes. These objects have neither
anything to change nor attributes to read: a name that is not a key is a ``Missing``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Path: TypeAlias = tuple[str | int, ...]

MAX_OUTPUT = 1_000_000
"""Characters. A model's context is some 128,000 tokens, about half of this."""
EXACT_BITS = 127  # the engine's integers; longer ones would become doubles


class RenderError(Exception):
    """A filter or a value was used in a way that has no result. The message shows no values."""


class MissingError(RenderError):
    """Something that does not exist was to be printed."""


@dataclass(slots=True, eq=False)
class Missing:
    """Something that does not exist. It is harmless once ``is defined`` or ``default`` has looked at it; the rendering
    fails if any is left in ``unhandled``."""

    path: Path
    unhandled: list[Missing] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.unhandled.append(self)

    def handle(self) -> None:
        if self in self.unhandled:
            self.unhandled.remove(self)

    @property
    def name(self) -> str:
        first, *steps = self.path
        return f"{first}" + "".join(f".{step}" if isinstance(step, str) else f"[{step!r:.40}]" for step in steps)

    def __getitem__(self, step: str | int) -> Missing:
        self.handle()
        return Missing((*self.path, step), self.unhandled)

    def _use(self) -> None:
        """A root name counts once it is used, not when it is handed to the engine."""
        if self not in self.unhandled:
            self.unhandled.append(self)

    def __iter__(self) -> Iterator[Any]:
        self._use()
        return iter(())

    def __len__(self) -> int:
        self._use()
        return 0

    def __str__(self) -> str:
        self._use()
        return ""


@dataclass(frozen=True, slots=True, eq=False)
class _Json:
    """``_value`` is not to be changed; ``_path`` leads to it from a root name."""

    _value: Any
    _path: Path = ()
    _unhandled: list[Missing] = field(default_factory=list)

    def __str__(self) -> str:
        return spelled(self)

    def __eq__(self, other: object) -> bool:
        return bool(self._value == plain(other))

    def __hash__(self) -> int:
        return hash(str(self))


class JsonNumber(_Json):
    """An integer too long for the engine: it can be printed."""

    __slots__ = ()


class JsonMap(_Json):
    """A map. It is no ``Mapping``, for the engine would ask those for a key in order to see whether it exists."""

    __slots__ = ()

    def __len__(self) -> int:
        return len(self._value)

    def __iter__(self) -> Iterator[str]:
        return iter(self._value)

    def __contains__(self, key: object) -> bool:
        return key in self._value

    def __getitem__(self, key: Any) -> Any:
        path = (*self._path, key)
        if not isinstance(key, str) or key not in self._value:
            return Missing(path, self._unhandled)
        return seen(self._value[key], path, self._unhandled)

    def get(self, key: Any, default: Any = None) -> Any:
        return self[key] if key in self._value else default

    def keys(self) -> list[str]:
        return list(self._value)

    def values(self) -> list[Any]:
        return [self[key] for key in self._value]

    def items(self) -> JsonList:
        return JsonList([[key, value] for key, value in self._value.items()], self._path, self._unhandled)


class JsonList(_Json):
    """A list. Registered as a ``Sequence`` below, and without the methods that those have."""

    __slots__ = ()

    def __len__(self) -> int:
        return len(self._value)

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self._value)))

    def __getitem__(self, index: Any) -> Any:
        path = (*self._path, index)
        if not isinstance(index, int) or not -len(self._value) <= index < len(self._value):
            return Missing(path, self._unhandled)
        return seen(self._value[index], path, self._unhandled)


Sequence.register(JsonList)


def seen(value: Any, path: Path, unhandled: list[Missing]) -> Any:
    """A JSON value as a template sees it."""
    match value:
        case Mapping():
            return JsonMap(value, path, unhandled)
        case list() | tuple():
            return JsonList(value, path, unhandled)
        case int() if value.bit_length() > EXACT_BITS:
            return JsonNumber(value, path, unhandled)
        case _:
            return value


def plain(value: Any) -> Any:
    match value:
        case _Json(_value=raw):
            return raw
        case _:
            return value


def spelled(value: Any, indent: int | None = None) -> str:
    """As JSON, with nothing escaped that JSON does not want escaped. Raises ``RenderError`` and ``ValueError``."""
    encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, indent=indent, default=_unwrapped)
    if isinstance(value, _Json):
        return encoder.encode(plain(value))
    # A template can build a list that holds itself twice over at each of many levels: piece by piece, then.
    pieces: list[str] = []
    length = 0
    for piece in encoder.iterencode(value):
        pieces.append(piece)
        length += len(piece)
        if length > MAX_OUTPUT:
            raise RenderError(f"a value takes more than {MAX_OUTPUT:,} characters")
    return "".join(pieces)


def _unwrapped(value: Any) -> Any:
    match value:
        case _Json():
            return plain(value)
        case Missing():
            raise MissingError(value.name)
        case _:
            raise RenderError("only JSON values can be printed")


def shown(value: Any) -> Any:
    """What the engine writes for a value: strings as they are, everything else as JSON."""
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, Missing):
        raise MissingError(value.name)
    if isinstance(value, str | int):
        # A whole double arrives here as an integer, and the engine itself still prints it with its fraction.
        return NotImplemented
    return spelled(value)
