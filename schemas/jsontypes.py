"""JSON as Python sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

Json: TypeAlias = "Mapping[str, Json] | Sequence[Json] | str | int | float | bool | None"
JsonObject: TypeAlias = Mapping[str, Json]


def plain(value: Any, scalar: Callable[[Any], Any] = lambda value: value) -> Any:
    """A deep copy in dicts and lists. ``scalar`` is applied to every value that is neither."""
    if isinstance(value, Mapping):
        return {name: plain(item, scalar) for name, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item, scalar) for item in value]
    return scalar(value)
