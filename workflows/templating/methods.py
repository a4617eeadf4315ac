"""The methods that templates may call: some of a string's, some of a map's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stepladder.validation.jsonmath import EvaluationError, kind
from stepladder.workflows.templating.filters import as_text, join, pairs, replace, trim, whole_number
from stepladder.workflows.templating.values import Budget, listed, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def _split(budget: Budget, value: str, sep: Any = None, maxsplit: Any = -1) -> list[str]:
    budget.text(len(value))
    parts = value.split(sep if sep is None else shown(sep, budget), whole_number(maxsplit, "split"))
    budget.spend(len(parts))
    return parts


def _stripped(call: Callable[[str, str | None], str]) -> Callable[..., str]:
    def apply(budget: Budget, value: str, chars: Any = None) -> str:
        budget.text(len(value))
        return call(value, None if chars is None else shown(chars, budget))

    return apply


def _get(_: Budget, value: Mapping[str, Any], key: Any, default: Any = None) -> Any:
    return value.get(key, default) if isinstance(key, str) else default


def _affix(name: str, call: Callable[[str, str], bool]) -> Callable[..., bool]:
    def apply(_: Budget, value: str, affix: Any) -> bool:
        if not isinstance(affix, str):
            raise EvaluationError(f"{name} takes a string, not {kind(affix)}")
        return call(value, affix)

    return apply


STRING_METHODS: Mapping[str, Callable[..., Any]] = {
    "capitalize": as_text(str.capitalize),
    "endswith": _affix("endswith", str.endswith),
    "join": lambda budget, value, items: join(budget, items, value),
    "lower": as_text(str.lower),
    "lstrip": _stripped(str.lstrip),
    "replace": replace,
    "rstrip": _stripped(str.rstrip),
    "split": _split,
    "splitlines": lambda budget, value: listed(budget, value.splitlines()),
    "startswith": _affix("startswith", str.startswith),
    "strip": trim,
    "title": as_text(str.title),
    "upper": as_text(str.upper),
}

MAP_METHODS: Mapping[str, Callable[..., Any]] = {
    "get": _get,
    "items": pairs,
    "keys": lambda budget, value: list(listed(budget, value)),
    "values": lambda budget, value: [item for _, item in pairs(budget, value)],
}

METHODS: Mapping[str, tuple[Callable[..., Any], ...]] = {
    name: tuple(table[name] for table in (STRING_METHODS, MAP_METHODS) if name in table)
    for name in (*STRING_METHODS, *MAP_METHODS)
}
