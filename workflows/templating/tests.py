"""The tests that templates may use, and the comparisons: JSON's equality and order, paid for by what they visit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stepladder.validation import jsonmath
from stepladder.validation.jsonmath import EvaluationError, is_list, is_number, kind
from stepladder.workflows.templating.values import Budget, listed

if TYPE_CHECKING:
    from collections.abc import Callable


def contained(budget: Budget, item: Any, container: Any) -> bool:
    """``in``: part of a string, a key of a map, an item of a list."""
    if isinstance(container, str):
        if not isinstance(item, str):
            raise EvaluationError(f"a string does not contain {kind(item)}")
        budget.spend(len(container) // 100)
        return item in container
    if isinstance(container, Mapping):
        return isinstance(item, str) and item in container
    return any(jsonmath.equal(item, other, budget.spend) for other in listed(budget, container))


def equal(budget: Budget, left: Any, right: Any) -> bool:
    return jsonmath.equal(left, right, budget.spend)


def less(budget: Budget, left: Any, right: Any) -> bool:
    return jsonmath.less(left, right, budget.spend)


def at_most(budget: Budget, left: Any, right: Any) -> bool:
    return less(budget, left, right) or equal(budget, left, right)


def _divisible(_: Budget, value: Any, by: Any) -> bool:
    return jsonmath.modulo(value, by) == 0


TWO_SIDED: Mapping[str, Callable[..., bool]] = {
    "==": equal,
    "eq": equal,
    "equalto": equal,
    "!=": lambda budget, left, right: not equal(budget, left, right),
    "ne": lambda budget, left, right: not equal(budget, left, right),
    "<": less,
    "lt": less,
    "lessthan": less,
    ">": lambda budget, left, right: less(budget, right, left),
    "gt": lambda budget, left, right: less(budget, right, left),
    "greaterthan": lambda budget, left, right: less(budget, right, left),
    "<=": at_most,
    "le": at_most,
    ">=": lambda budget, left, right: at_most(budget, right, left),
    "ge": lambda budget, left, right: at_most(budget, right, left),
    "in": contained,
    "divisibleby": _divisible,
}

TESTS: Mapping[str, Callable[..., bool]] = {
    **TWO_SIDED,
    "boolean": lambda _, value: isinstance(value, bool),
    "defined": lambda _, value: True,  # noqa: ARG005  a value that is there; the renderer sees to the others
    "even": lambda _, value: jsonmath.modulo(value, 2) == 0,
    "false": lambda _, value: value is False,
    "float": lambda _, value: isinstance(value, float),
    "integer": lambda _, value: isinstance(value, int) and not isinstance(value, bool),
    "iterable": lambda _, value: isinstance(value, str | Mapping) or is_list(value),
    "mapping": lambda _, value: isinstance(value, Mapping),
    "none": lambda _, value: value is None,
    "number": lambda _, value: is_number(value),
    "odd": lambda _, value: jsonmath.modulo(value, 2) != 0,
    "sequence": lambda _, value: isinstance(value, str) or is_list(value),
    "string": lambda _, value: isinstance(value, str),
    "true": lambda _, value: value is True,
    "undefined": lambda _, value: False,  # noqa: ARG005
}
