"""The filters that templates may use; there are no others.

Each takes the budget, the value, and then the arguments that stand in the template. They answer like Jinja's own,
on JSON values, and pay for what they make before they make it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cmp_to_key
from typing import TYPE_CHECKING, Any

from stepladder.schemas.canonical import identity
from stepladder.validation import jsonmath
from stepladder.validation.jsonmath import EvaluationError, MissingError, is_list, is_number, kind, whole
from stepladder.workflows.templating.tests import TESTS, TWO_SIDED
from stepladder.workflows.templating.values import Budget, listed, shown, spelled

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_WORDS = re.compile(r"([-\s({\[<]+)")
_MAX_INDENT = 1_000


def member(value: Any, dotted: Any) -> Any:
    """The member at a dotted path. Raises ``MissingError``."""
    if not isinstance(dotted, str):
        raise EvaluationError(f"a member's name is a string, not {kind(dotted)}")
    for name in dotted.split("."):
        if name.startswith("_"):
            raise EvaluationError(f"{name} begins with an underscore, and such names are not offered here")
        if not isinstance(value, Mapping) or name not in value:
            raise MissingError(f"an item has no member {dotted}", None)
        value = value[name]
    return value


def _members(budget: Budget, value: Any, attribute: Any) -> Sequence[Any]:
    items = listed(budget, value)
    return items if attribute is None else [member(item, attribute) for item in items]


def whole_number(value: Any, name: str) -> int:
    number = whole(value)
    if number is None:
        raise EvaluationError(f"{name} takes a whole number, not {kind(value)}")
    return number


def as_text(call: Callable[[str], Any]) -> Callable[..., Any]:
    def apply(budget: Budget, value: Any) -> Any:
        text = shown(value, budget)
        budget.text(len(text))
        return call(text)

    return apply


def _title(text: str) -> str:
    return "".join(word[:1].upper() + word[1:].lower() for word in _WORDS.split(text))


def trim(budget: Budget, value: Any, chars: Any = None) -> str:
    text = shown(value, budget)
    budget.text(len(text))
    return text.strip(None if chars is None else shown(chars, budget))


def replace(budget: Budget, value: Any, old: Any, new: Any, count: Any = None) -> str:
    text, before, after = (shown(part, budget) for part in (value, old, new))
    if not before:
        raise EvaluationError("replace takes something to replace, not an empty string")
    limit = -1 if count is None else whole_number(count, "replace")
    budget.text(len(text))
    found = text.count(before)
    budget.text(len(text) + max(0, found * (len(after) - len(before))))
    return text.replace(before, after, limit)


def join(budget: Budget, value: Any, d: Any = "", attribute: Any = None) -> str:
    parts = [shown(item, budget) for item in _members(budget, value, attribute)]
    between = shown(d, budget)
    budget.text(sum(map(len, parts)) + len(between) * len(parts))
    return between.join(parts)


def _indent(budget: Budget, value: Any, width: Any = 4, first: Any = False, blank: Any = False) -> str:
    margin = width if isinstance(width, str) else " " * min(max(whole_number(width, "indent"), 0), _MAX_INDENT + 1)
    if len(margin) > _MAX_INDENT:
        raise EvaluationError(f"indent takes a width of at most {_MAX_INDENT:,}")
    text = shown(value, budget)
    lines = text.split("\n")
    budget.text(len(text) + len(lines) * len(margin))
    kept = [line if number == 0 and first is not True else margin + line for number, line in enumerate(lines)]
    return "\n".join(
        line if blank is True or original or number == 0 else original
        for number, (line, original) in enumerate(zip(kept, lines, strict=True))
    )


def _truncate(
    budget: Budget, value: Any, length: Any = 255, killwords: Any = False, end: Any = "...", leeway: Any = 5
) -> str:
    text, tail, most = shown(value, budget), shown(end, budget), whole_number(length, "truncate")
    budget.text(len(text))
    if len(text) <= most + whole_number(leeway, "truncate"):
        return text
    cut = text[: max(0, most - len(tail))]
    return (cut if killwords is True else cut.rsplit(" ", 1)[0]) + tail


def _length(_: Budget, value: Any) -> int:
    if isinstance(value, str | Mapping) or is_list(value):
        return len(value)
    raise EvaluationError(f"{kind(value)} has no length")


def _end(position: int) -> Callable[..., Any]:
    def apply(budget: Budget, value: Any) -> Any:
        items = listed(budget, value)
        if not items:
            raise MissingError("the list is empty, and has neither a first nor a last item", None)
        return items[position]

    return apply


def _reverse(budget: Budget, value: Any) -> Any:
    return listed(budget, value)[::-1]


def _sorted(budget: Budget, items: Sequence[Any], key: Callable[[Any], Any], *, reverse: bool) -> list[Any]:
    def compare(left: Any, right: Any) -> int:
        budget.spend(1)
        a, b = key(left), key(right)
        return int(jsonmath.less(b, a, budget.spend)) - int(jsonmath.less(a, b, budget.spend))

    return sorted(items, key=cmp_to_key(compare), reverse=reverse)


def _sort(budget: Budget, value: Any, reverse: Any = False, attribute: Any = None) -> list[Any]:
    key = (lambda item: item) if attribute is None else (lambda item: member(item, attribute))
    return _sorted(budget, listed(budget, value), key, reverse=reverse is True)


def _dictsort(budget: Budget, value: Any) -> list[Any]:
    return _sorted(budget, pairs(budget, value), lambda pair: pair[0], reverse=False)


def pairs(budget: Budget, value: Any) -> list[Any]:
    if not isinstance(value, Mapping):
        raise EvaluationError(f"{kind(value)} has no pairs of key and value")
    budget.spend(len(value))
    return [[key, item] for key, item in value.items()]


def _unique(budget: Budget, value: Any, attribute: Any = None) -> list[Any]:
    items = listed(budget, value)
    first: dict[Any, Any] = {}
    for item, key in zip(items, _members(budget, value, attribute), strict=True):
        first.setdefault(identity(key, budget.spend), item)
    return list(first.values())


def _extreme(name: str, *, largest: bool) -> Callable[..., Any]:
    def apply(budget: Budget, value: Any, attribute: Any = None) -> Any:
        key = (lambda item: item) if attribute is None else (lambda item: member(item, attribute))
        items = _sorted(budget, listed(budget, value), key, reverse=largest)
        if not items:
            raise MissingError(f"the list is empty, and has no {name}", None)
        return items[0]

    return apply


def _sum(budget: Budget, value: Any, attribute: Any = None) -> int | float:
    return jsonmath.total(_members(budget, value, attribute))


def _abs(_: Budget, value: Any) -> int | float:
    if not is_number(value):
        raise EvaluationError(f"abs takes a number, not {kind(value)}")
    return abs(value)


def _to_int(_: Budget, value: Any, default: Any = 0) -> Any:
    return _converted(value, default, int)


def _to_float(_: Budget, value: Any, default: Any = 0.0) -> Any:
    return _converted(value, default, float)


def _converted(value: Any, default: Any, to: type[int] | type[float]) -> Any:
    if not isinstance(value, str | int | float) or (isinstance(value, str) and len(value) > 400):
        return default
    try:
        return jsonmath.checked(to(float(value)) if isinstance(value, str) and "." in value else to(value))
    except (ValueError, OverflowError, EvaluationError):
        return default


def _tojson(budget: Budget, value: Any, indent: Any = None) -> str:
    width = None if indent is None else min(max(whole_number(indent, "tojson"), 0), 8)
    return spelled(value, budget, width)


def _map(budget: Budget, value: Any, *, attribute: Any) -> list[Any]:
    return list(_members(budget, value, attribute))


def _chosen(*, keep: bool) -> Callable[..., Any]:
    def apply(budget: Budget, value: Any, attribute: Any, test: Any = None, operand: Any = None) -> list[Any]:
        if test is not None and (not isinstance(test, str) or test not in TESTS):
            raise EvaluationError(f"there is no test {test!r:.40}")

        def holds(item: Any) -> bool:
            try:
                found = member(item, attribute)
            except MissingError:
                if test in ("defined", "undefined"):
                    return bool(test == "undefined")
                raise
            if test is None:
                return bool(found)
            return bool(TESTS[test](budget, found, operand) if test in TWO_SIDED else TESTS[test](budget, found))

        return [item for item in listed(budget, value) if holds(item) is keep]

    return apply


def _default(_: Budget, value: Any, default_value: Any = "", boolean: Any = False) -> Any:
    """Of a value that is there; where it is not, the renderer takes the default itself."""
    return default_value if boolean is True and not value else value


FILTERS: Mapping[str, Callable[..., Any]] = {
    "abs": _abs,
    "capitalize": as_text(str.capitalize),
    "count": _length,
    "d": _default,
    "default": _default,
    "dictsort": _dictsort,
    "first": _end(0),
    "float": _to_float,
    "indent": _indent,
    "int": _to_int,
    "items": pairs,
    "join": join,
    "last": _end(-1),
    "length": _length,
    "list": lambda budget, value: list(listed(budget, value)),
    "lower": as_text(str.lower),
    "map": _map,
    "max": _extreme("largest item", largest=True),
    "min": _extreme("smallest item", largest=False),
    "rejectattr": _chosen(keep=False),
    "replace": replace,
    "reverse": _reverse,
    "round": lambda _, value, precision=0: jsonmath.rounded(value, precision),
    "selectattr": _chosen(keep=True),
    "sort": _sort,
    "string": lambda budget, value: shown(value, budget),
    "sum": _sum,
    "title": as_text(_title),
    "tojson": _tojson,
    "trim": trim,
    "truncate": _truncate,
    "unique": _unique,
    "upper": as_text(str.upper),
    "wordcount": as_text(lambda text: len(text.split())),
}
