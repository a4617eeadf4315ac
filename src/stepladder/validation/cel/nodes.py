"""What one node of an expression does when it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from stepladder.validation import jsonmath
from stepladder.validation.cel.functions import contained, join, subtract
from stepladder.validation.cel.run import Run
from stepladder.validation.jsonmath import EvaluationError, MissingError, is_list, is_map, kind, whole

Node: TypeAlias = Callable[[Run], Any]
Operator: TypeAlias = Callable[[Run, Any, Any], Any]

OPERATORS: Mapping[str, Operator] = {
    "relation_lt": lambda run, a, b: jsonmath.less(a, b, run.spend),
    "relation_le": lambda run, a, b: jsonmath.less(a, b, run.spend) or jsonmath.equal(a, b, run.spend),
    "relation_gt": lambda run, a, b: jsonmath.less(b, a, run.spend),
    "relation_ge": lambda run, a, b: jsonmath.less(b, a, run.spend) or jsonmath.equal(a, b, run.spend),
    "relation_eq": lambda run, a, b: jsonmath.equal(a, b, run.spend),
    "relation_ne": lambda run, a, b: not jsonmath.equal(a, b, run.spend),
    "relation_in": contained,
    "addition_add": join,
    "addition_sub": subtract,
    "multiplication_mul": lambda _, a, b: jsonmath.multiply(a, b),
    "multiplication_div": lambda _, a, b: jsonmath.divide(a, b),
    "multiplication_mod": lambda _, a, b: jsonmath.modulo(a, b),
}


def rooted(steps: list[str]) -> Node:
    root, members = steps[0], steps[1:]

    def read(run: Run) -> Any:
        if root not in run.names:
            raise MissingError(f"{root} is not defined", root)
        value = run.names[root]
        for depth, member in enumerate(members, start=2):
            if not is_map(value) or member not in value:
                raise _absent(value, member, ".".join(steps[:depth]))
            value = value[member]
        return value

    return read


def bound(slot: int, steps: list[str]) -> Node:
    members = steps[1:]

    def read(run: Run) -> Any:
        value = run.slots[slot]
        for member in members:
            if not is_map(value) or member not in value:
                raise _absent(value, member, None)
            value = value[member]
        return value

    return read


def member(node: Node, step: str, text: str | None) -> Node:
    def read(run: Run) -> Any:
        value = node(run)
        if not is_map(value) or step not in value:
            raise _absent(value, step, text)
        return value[step]

    return read


def _absent(value: Any, member: str, text: str | None) -> MissingError:
    if is_map(value):
        return MissingError(f"{text} is not defined" if text else f"the map has no member {member}", text)
    return MissingError(f"{text or member} is not defined: {kind(value)} has no members", text)


def index(node: Node, position: Node, text: str | None) -> Node:
    def read(run: Run) -> Any:
        value, at = node(run), position(run)
        label = f"{text or ''}[{at!r:.40}]"
        if is_map(value):
            if not isinstance(at, str):
                raise EvaluationError(f"a map is indexed by a string, not {kind(at)}")
            if at in value:
                return value[at]
        elif is_list(value):
            number = whole(at)
            if number is None:
                raise EvaluationError(f"a list is indexed by a whole number, not by {kind(at)}")
            if 0 <= number < len(value):
                return value[number]
        else:
            raise EvaluationError(f"{kind(value)} cannot be indexed")
        raise MissingError(f"there is no {label}", text and label)

    return read


def mapping(pairs: list[tuple[Node, Node]]) -> Node:
    def build(run: Run) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, value in pairs:
            name = key(run)
            if not isinstance(name, str):
                raise EvaluationError(f"the keys of a map are strings, not {kind(name)}")
            if name in result:
                raise EvaluationError(f"the map has the key {name!r:.40} twice")
            result[name] = value(run)
        return result

    return build


def truth(symbol: str, value: Any) -> bool:
    if value is True or value is False:
        return bool(value)
    raise EvaluationError(f"{symbol} takes true or false, not {kind(value)}")


def negated(value: Any, *, odd: bool) -> Any:
    negative = jsonmath.negate(value)
    return negative if odd else value
