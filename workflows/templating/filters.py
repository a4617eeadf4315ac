"""Filters and tests that the engine lacks, or that must answer differently on JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from stepladder.validation import jsonmath
from stepladder.workflows.templating.values import JsonList, JsonMap, Missing, RenderError, plain, spelled

_THEIR_FILTERS = """abs capitalize count indent join length list lower map rejectattr replace reverse selectattr sort
string sum title trim unique upper"""
_THEIR_TESTS = """== != < <= > >= eq equalto ne lt lessthan le gt greaterthan ge in boolean even false float integer
iterable none number odd string true"""
_METHODS = """capitalize endswith get items join keys lower lstrip replace rstrip split splitlines startswith strip
title upper values"""


def _default(value: Any, default_value: Any = "", boolean: Any = False) -> Any:
    if isinstance(value, Missing):
        value.handle()
        return default_value
    if boolean is True and not plain(value):
        return default_value
    if isinstance(default_value, Missing):
        default_value.handle()
    return value


def _is_defined(value: Any) -> bool:
    if isinstance(value, Missing):
        value.handle()
    return not isinstance(value, Missing)


def _items(value: Any) -> Any:
    if isinstance(value, JsonMap):
        return value.items()
    if isinstance(value, Mapping):
        return list(value.items())
    raise RenderError("only a map has items")


def _dictsort(value: Any) -> Any:
    return sorted(_items(value), key=lambda pair: str(pair[0]))


def _end(index: int) -> Callable[[Any], Any]:
    def of(value: Any) -> Any:
        items = value if isinstance(value, JsonList | str) else list(value)
        return items[index] if len(items) else Missing(("the list's last item" if index else "the list's first item",))

    return of


def _extreme(choose: Callable[..., Any]) -> Callable[..., Any]:
    def of(value: Any, attribute: Any = None) -> Any:
        items = list(value)
        if not items:
            return Missing((f"the list's {choose.__name__}",))
        return choose(items, key=None if attribute is None else lambda item: item[attribute])

    return of


def _number(kind: type[int] | type[float]) -> Callable[..., Any]:
    """Texts and numbers as this kind of number, or else the default."""
    zero = kind()

    def of(value: Any, default: Any = zero) -> Any:
        try:
            return kind(float(value)) if isinstance(value, str) and "." in value else kind(value)
        except (TypeError, ValueError, OverflowError):
            return default

    return of


def _round(value: Any, precision: Any = 0) -> Any:
    return jsonmath.rounded(value, precision)


def _tojson(value: Any, indent: Any = None) -> str:
    return spelled(value, None if indent is None else min(max(int(indent), 0), 8))


def _truncate(value: Any, length: int = 255, killwords: Any = False, end: str = "...", leeway: int = 5) -> str:
    text = str(value)
    if len(text) <= length + leeway:
        return text
    cut = text[: max(0, length - len(end))]
    return (cut if killwords is True else cut.rsplit(" ", 1)[0]) + end


OURS: Mapping[str, Callable[..., Any]] = {
    "d": _default,
    "default": _default,
    "dictsort": _dictsort,
    "first": _end(0),
    "float": _number(float),
    "int": _number(int),
    "items": _items,
    "last": _end(-1),
    "max": _extreme(max),
    "min": _extreme(min),
    "round": _round,
    "tojson": _tojson,
    "truncate": _truncate,
    "wordcount": lambda value: len(str(value).split()),
}
"""The filters written here."""

FILTERS = frozenset((*OURS, *_THEIR_FILTERS.split()))
"""The filters that templates may use."""

OUR_TESTS: Mapping[str, Callable[..., bool]] = {
    "defined": _is_defined,
    "undefined": lambda value: not _is_defined(value),
    "mapping": lambda value: isinstance(value, JsonMap | Mapping),
    "sequence": lambda value: isinstance(value, JsonList | str | list | tuple),
    "divisibleby": lambda value, by: jsonmath.modulo(value, by) == 0,
}

TESTS = frozenset((*OUR_TESTS, *_THEIR_TESTS.split()))

METHODS = frozenset(_METHODS.split())
"""The methods of strings and of maps that templates may call."""
