"""Renders a checked template by walking its tree.

Jinja reads the template, and does not run it: what it makes of a template is Python code, which no sandbox bounds in
time or size. Here each kind of expression is one method, no attribute of a Python object is ever looked at, and
each visit is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from jinja2 import nodes

from stepladder.validation import jsonmath
from stepladder.validation.jsonmath import EvaluationError, MissingError, is_list, is_number, kind, whole
from stepladder.workflows.templating.filters import FILTERS
from stepladder.workflows.templating.methods import MAP_METHODS, STRING_METHODS
from stepladder.workflows.templating.tests import TESTS, contained
from stepladder.workflows.templating.values import MAX_OUTPUT, Budget, ExhaustedError, items_of, shown

_COMPARISONS: Mapping[str, str] = {"lteq": "le", "gteq": "ge"}

_ARITHMETIC: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
}

Scope: TypeAlias = dict[str, Any]


class Renderer:
    """One rendering. ``text`` raises ``EvaluationError``, ``ExhaustedError`` and what arithmetic raises."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names
        self._scopes: list[Scope] = [{}]
        self._budget = Budget()
        self._pieces: list[str] = []
        self._size = 0

    def text(self, template: nodes.Template) -> str:
        self._body(template.body)
        return "".join(self._pieces)

    # Statements

    def _body(self, body: list[nodes.Node]) -> None:
        for node in body:
            self._budget.spend(1)
            match node:
                case nodes.Output():
                    for part in node.nodes:
                        self._emit(part.data if isinstance(part, nodes.TemplateData) else self._shown(part))
                case nodes.If():
                    self._if(node)
                case nodes.For():
                    self._for(node)
                case nodes.Assign():
                    self._bind(node.target, self._value(node.node), self._scopes[-1])
                case nodes.With():
                    scope: Scope = {}
                    for target, value in zip(node.targets, node.values, strict=True):
                        self._bind(target, self._value(value), scope)
                    self._within(scope, node.body)
                case _:
                    raise EvaluationError(f"{type(node).__name__} is not offered here")

    def _emit(self, piece: str) -> None:
        self._size += len(piece)
        if self._size > MAX_OUTPUT:
            raise ExhaustedError(f"the text has more than {MAX_OUTPUT:,} characters")
        self._pieces.append(piece)

    def _shown(self, node: nodes.Node) -> str:
        return shown(self._value(node), self._budget)

    def _within(self, scope: Scope, body: list[nodes.Node]) -> None:
        self._scopes.append(scope)
        self._body(body)
        self._scopes.pop()

    def _bind(self, target: nodes.Node, value: Any, scope: Scope) -> None:
        if isinstance(target, nodes.Name):
            scope[target.name] = value
        elif isinstance(target, nodes.Tuple):
            if not is_list(value) or len(value) != len(target.items):
                raise EvaluationError(f"{len(target.items)} names take a list of as many items, not {kind(value)}")
            for part, item in zip(target.items, value, strict=True):
                self._bind(part, item, scope)

    def _if(self, node: nodes.If) -> None:
        for branch in (node, *node.elif_):
            if self._value(branch.test):
                self._body(branch.body)
                return
        self._body(node.else_)

    def _for(self, node: nodes.For) -> None:
        kept: list[Scope] = []
        items: list[Any] = []
        for item in items_of(self._value(node.iter)):
            self._budget.iterate()
            scope: Scope = {}
            self._bind(node.target, item, scope)
            if node.test is None or self._held(scope, node.test):
                kept.append(scope)
                items.append(item)
        for index, scope in enumerate(kept):
            self._within({"loop": _loop(index, items), **scope}, node.body)
        if not kept:
            self._within({}, node.else_)

    def _held(self, scope: Scope, test: nodes.Node) -> bool:
        self._scopes.append(scope)
        held = bool(self._value(test))
        self._scopes.pop()
        return held

    # Expressions

    def _value(self, node: nodes.Node | None) -> Any:
        self._budget.spend(1)
        return getattr(self, f"_{type(node).__name__.lower()}")(node)

    def _const(self, node: nodes.Const) -> Any:
        return node.value

    def _list(self, node: nodes.List | nodes.Tuple) -> list[Any]:
        return [self._value(item) for item in node.items]

    _tuple = _list

    def _dict(self, node: nodes.Dict) -> dict[str, Any]:
        pairs = [(self._value(pair.key), self._value(pair.value)) for pair in node.items]
        if not all(isinstance(key, str) for key, _ in pairs):
            raise EvaluationError("the keys of a map are strings")
        return dict(pairs)

    def _name(self, node: nodes.Name) -> Any:
        return self._path(node)

    def _getattr(self, node: nodes.Getattr) -> Any:
        return self._path(node)

    def _getitem(self, node: nodes.Getitem) -> Any:
        return self._path(node)

    def _path(self, node: nodes.Node) -> Any:
        """A name and what hangs on it. What is not there is told with its full path."""
        steps: list[Any] = []
        while isinstance(node, nodes.Getattr | nodes.Getitem):
            steps.append(node.attr if isinstance(node, nodes.Getattr) else self._step(node.arg))
            node = node.node
        steps.reverse()
        self._budget.spend(len(steps))
        if not isinstance(node, nodes.Name):
            return self._descend(self._value(node), steps, "(...)")
        scope: Mapping[str, Any] = next((each for each in reversed(self._scopes) if node.name in each), self._names)
        if node.name not in scope:
            raise _missing([node.name], steps, rooted=True)
        return self._descend(scope[node.name], steps, node.name, rooted=scope is self._names)

    def _step(self, argument: nodes.Node) -> Any:
        if not isinstance(argument, nodes.Slice):
            return self._value(argument)
        parts = (argument.start, argument.stop, argument.step)
        bounds = [None if part is None else self._value(part) for part in parts]
        numbers = [None if bound is None else whole(bound) for bound in bounds]
        if any(bound is not None and number is None for bound, number in zip(bounds, numbers, strict=True)):
            raise EvaluationError("a slice takes whole numbers")
        return slice(*numbers)

    def _descend(self, value: Any, steps: list[Any], root: str, *, rooted: bool = False) -> Any:
        for position, step in enumerate(steps):
            found, value = self._member(value, step)
            if not found:
                raise _missing([root, *steps[: position + 1]], steps[position + 1 :], rooted=rooted)
        return value

    def _member(self, value: Any, step: Any) -> tuple[bool, Any]:
        if isinstance(step, str):
            if step.startswith("_"):
                raise EvaluationError(f"{step!r:.40} begins with an underscore, and such names are not offered here")
            there = isinstance(value, Mapping) and step in value
            return there, value[step] if there else None
        if not isinstance(value, str) and not is_list(value):
            return False, None
        if isinstance(step, slice):
            part = value[step]
            self._budget.spend(len(part) // 100 if isinstance(part, str) else len(part))
            return True, part
        index = whole(step)
        if index is None:
            raise EvaluationError(f"an index is a whole number or a string, not {kind(step)}")
        there = -len(value) <= index < len(value)
        return there, value[index] if there else None

    def _filter(self, node: nodes.Filter) -> Any:
        keyed = {str(each.key): each.value for each in node.kwargs}
        try:
            value = self._value(node.node)
        except MissingError:
            if node.name not in ("default", "d"):
                raise
            given = [*node.args, *(keyed[name] for name in keyed if name == "default_value")]
            return self._value(given[0]) if given else ""
        arguments = [self._value(argument) for argument in node.args]
        keywords = {name: self._value(argument) for name, argument in keyed.items()}
        return FILTERS[node.name](self._budget, value, *arguments, **keywords)

    def _test(self, node: nodes.Test) -> bool:
        if node.name in ("defined", "undefined"):
            try:
                self._value(node.node)
            except MissingError:
                return bool(node.name == "undefined")
            return bool(node.name == "defined")
        return TESTS[node.name](self._budget, self._value(node.node), *(self._value(each) for each in node.args))

    def _call(self, node: nodes.Call) -> Any:
        arguments = [self._value(argument) for argument in node.args]
        if isinstance(node.node, nodes.Name):
            return self._range(arguments)
        assert isinstance(node.node, nodes.Getattr)  # noqa: S101  the checks let nothing else through
        receiver, method = self._value(node.node.node), node.node.attr
        table = STRING_METHODS if isinstance(receiver, str) else MAP_METHODS if isinstance(receiver, Mapping) else {}
        if method not in table:
            raise EvaluationError(f"{kind(receiver)} has no method {method}")
        return table[method](self._budget, receiver, *arguments)

    def _range(self, arguments: list[Any]) -> list[int]:
        numbers = [number for number in map(whole, arguments) if number is not None]
        if len(numbers) != len(arguments) or not 1 <= len(numbers) <= 3:
            raise EvaluationError("range takes one to three whole numbers")
        span = range(*numbers)
        self._budget.spend(len(span))
        return list(span)

    def _compare(self, node: nodes.Compare) -> bool:
        left = self._value(node.expr)
        for operand in node.ops:
            right = self._value(operand.expr)
            if operand.op == "notin":
                held = not contained(self._budget, left, right)
            else:
                held = TESTS[_COMPARISONS.get(operand.op, operand.op)](self._budget, left, right)
            if not held:
                return False
            left = right
        return True

    def _concat(self, node: nodes.Concat) -> str:
        parts = [self._shown(part) for part in node.nodes]
        self._budget.text(sum(map(len, parts)))
        return "".join(parts)

    def _condexpr(self, node: nodes.CondExpr) -> Any:
        if self._value(node.test):
            return self._value(node.expr1)
        if node.expr2 is None:
            raise MissingError("the condition does not hold, and there is no else", None)
        return self._value(node.expr2)

    def _and(self, node: nodes.And) -> Any:
        return self._value(node.left) and self._value(node.right)

    def _or(self, node: nodes.Or) -> Any:
        return self._value(node.left) or self._value(node.right)

    def _not(self, node: nodes.Not) -> bool:
        return not self._value(node.node)

    def _neg(self, node: nodes.Neg) -> Any:
        return jsonmath.negate(self._value(node.node))

    def _pos(self, node: nodes.Pos) -> Any:
        return jsonmath.add(self._value(node.node), 0)

    def _operation(self, node: nodes.BinExpr) -> Any:
        left, right, symbol = self._value(node.left), self._value(node.right), node.operator
        if is_number(left) and is_number(right):
            return _power(left, right) if symbol == "**" else jsonmath.checked(_ARITHMETIC[symbol](left, right))
        if symbol == "+" and isinstance(left, str) and isinstance(right, str):
            self._budget.text(len(left) + len(right))
            return left + right
        if symbol == "+" and is_list(left) and is_list(right):
            self._budget.spend(len(left) + len(right))
            return [*left, *right]
        if symbol == "*" and isinstance(left, str) and (times := whole(right)) is not None:
            self._budget.text(len(left) * max(times, 0))
            return left * times
        hint = "; ~ joins any two values" if symbol == "+" else ""
        raise EvaluationError(f"{symbol} cannot join {kind(left)} and {kind(right)}{hint}")

    _add = _sub = _mul = _div = _floordiv = _mod = _pow = _operation


def _power(base: int | float, exponent: int | float) -> int | float:
    if isinstance(base, int) and isinstance(exponent, int):
        if base.bit_length() * abs(exponent) > jsonmath.MAX_INTEGER_BITS:
            raise EvaluationError(f"the result has more than {jsonmath.MAX_INTEGER_BITS:,} bits")
    elif base < 0 and whole(exponent) is None:
        raise EvaluationError("a negative number has no such power")
    return jsonmath.checked(base**exponent)


def _loop(index: int, items: list[Any]) -> dict[str, Any]:
    size = len(items)
    loop = {
        "index": index + 1,
        "index0": index,
        "revindex": size - index,
        "revindex0": size - index - 1,
        "first": index == 0,
        "last": index == size - 1,
        "length": size,
    }
    if index > 0:
        loop["previtem"] = items[index - 1]
    if index < size - 1:
        loop["nextitem"] = items[index + 1]
    return loop


def _missing(there: list[Any], beyond: list[Any], *, rooted: bool) -> MissingError:
    """``there`` ends with the first step that is not there; ``beyond`` are the steps after it."""
    absent, full = _dotted(there), _dotted([*there, *beyond])
    told = f"{full} is not defined" + (f": there is no {absent}" if beyond else "")
    return MissingError(told, full if rooted else None)


def _dotted(steps: list[Any]) -> str:
    first, *rest = steps
    return f"{first}" + "".join(f".{step}" if isinstance(step, str) else f"[{step!r:.40}]" for step in rest)
