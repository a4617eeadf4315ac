"""What a template may contain, and which names it reads: checked once, before it is ever rendered."""

from __future__ import annotations

import difflib
import math
from typing import TYPE_CHECKING, TypeAlias

from jinja2 import nodes

from stepladder.workflows.templating.filters import FILTERS, METHODS, TESTS

if TYPE_CHECKING:
    from collections.abc import Iterable

Path: TypeAlias = tuple[str, ...]

# Walking takes a few Python frames a level, of some 1,000; people nest five or six deep.
MAX_DEPTH = 64
# How often the data may occur in one value. Lists of lists of a variable double with every level.
MAX_WEIGHT = 1_000

_STATEMENTS = (nodes.Template, nodes.Output, nodes.TemplateData, nodes.If, nodes.For, nodes.Assign, nodes.With)
_VALUES = (nodes.Name, nodes.Const, nodes.List, nodes.Tuple, nodes.Dict, nodes.Pair, nodes.Keyword, nodes.Filter)
_OPERATIONS = (nodes.Test, nodes.Compare, nodes.Operand, nodes.Getattr, nodes.Getitem, nodes.Slice, nodes.Call)
_OPERATORS = (nodes.Concat, nodes.CondExpr, nodes.BinExpr, nodes.Not, nodes.Neg, nodes.Pos)
_ALLOWED = (*_STATEMENTS, *_VALUES, *_OPERATIONS, *_OPERATORS)
# How the refused kinds are written, where that differs from the name of their node.
_TAGS = {
    "AssignBlock": "{% set %} around text",
    "CallBlock": "{% call %}",
    "FilterBlock": "{% filter %}",
    "FromImport": "{% from %}",
    "NSRef": "{% set %} of a member",
    "Scope": "{% autoescape %}",
}


class BadTemplateError(Exception):
    """The source is not a usable template. ``compile_template`` turns it into a value."""

    def __init__(self, reason: str, line: int | None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line or 1


def check(template: nodes.Template) -> None:
    """Refuses everything that is not on the lists. Raises ``BadTemplateError``."""
    stack: list[tuple[nodes.Node, int]] = [(template, 0)]
    while stack:
        node, depth = stack.pop()
        if depth > MAX_DEPTH:
            raise BadTemplateError(f"more than {MAX_DEPTH} levels of nesting", node.lineno)
        _check_one(node)
        stack.extend((child, depth + 1) for child in node.iter_child_nodes())
    _weigh(template, {})


def _check_one(node: nodes.Node) -> None:
    if not isinstance(node, _ALLOWED):
        name = type(node).__name__
        raise BadTemplateError(f"{_TAGS.get(name, f'{{% {name.lower()} %}}')} is not supported", node.lineno)
    match node:
        case nodes.Name(name=name) | nodes.Getattr(attr=name) | nodes.Getitem(arg=nodes.Const(value=str(name))):
            if name.startswith("_"):
                message = f"{name} begins with an underscore, and such names are not supported"
                raise BadTemplateError(message, node.lineno)
        case nodes.Tuple(items=items) if any(isinstance(item, nodes.Slice) for item in items):
            raise BadTemplateError("one index at a time", node.lineno)
        case nodes.TemplateData(data=str(text)) | nodes.Const(value=str(text)):
            if any("\ud800" <= character <= "\udfff" for character in text):
                raise BadTemplateError("contains an unpaired surrogate", node.lineno)
        case nodes.Const(value=float(number)) if not math.isfinite(number):
            raise BadTemplateError("a number is more than a double can hold", node.lineno)
        case nodes.Filter(name=name):
            _check_listed("filter", name, FILTERS, node.lineno)
            _check_arguments(node)
        case nodes.Test(name=name):
            _check_listed("test", name, TESTS, node.lineno)
            _check_arguments(node)
        case nodes.Call(node=nodes.Getattr(attr=method)):
            _check_listed("method", method, METHODS, node.lineno)
            _check_arguments(node)
        case nodes.Call(node=nodes.Name(name=name)):
            _check_listed("function", name, ("range",), node.lineno)
            _check_arguments(node)
        case nodes.Call():
            raise BadTemplateError("only methods and range can be called", node.lineno)
        case nodes.For(recursive=True):
            raise BadTemplateError("{% for ... recursive %} is not supported", node.lineno)


def _check_listed(kind: str, name: str, listed: Iterable[str], line: int) -> None:
    if name not in listed:
        near = difflib.get_close_matches(name, listed, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(listed))}"
        raise BadTemplateError(f"there is no {kind} {name}; {hint}", line)


def _check_arguments(node: nodes.Call | nodes.Filter | nodes.Test) -> None:
    if node.dyn_args is not None or node.dyn_kwargs is not None:
        raise BadTemplateError("* and ** before an argument are not supported", node.lineno)


def _weigh(node: nodes.Node, weights: dict[str, int]) -> int:
    """How often the data may occur in the value of an expression; ``weights`` has the template's own variables."""
    inner: tuple[str, ...] = ()
    match node:
        case nodes.Name(name=name):
            return weights.get(name, 1)
        case nodes.Const():
            return 0
        case nodes.Assign(target=target, node=value) | nodes.For(target=target, iter=value):
            _bind(target, _weigh(value, weights), weights)
            inner = ("test", "body", "else_")
        case nodes.With(targets=targets, values=values):
            for target, value in zip(targets, values, strict=True):
                _bind(target, _weigh(value, weights), weights)
            inner = ("body",)
    weight = max(1, sum(_weigh(child, weights) for child in node.iter_child_nodes(only=inner or None)))
    if isinstance(node, nodes.Expr) and weight > MAX_WEIGHT:
        raise BadTemplateError(f"a value may hold the same data more than {MAX_WEIGHT:,} times", node.lineno)
    return weight


def _bind(target: nodes.Node, weight: int, weights: dict[str, int]) -> None:
    for name in _targets(target):
        weights[name] = max(weight, weights.get(name, 0))


def names_read(template: nodes.Template) -> frozenset[Path]:
    """The dotted paths that a checked template reads, without its own variables."""
    found: set[Path] = set()
    _walk(template, set(), found)
    return frozenset(found)


def _walk(node: nodes.Node, bound: set[str], found: set[Path]) -> None:
    """``bound`` holds the template's own variables, and grows with ``set``."""
    match node:
        case nodes.Name() | nodes.Getattr() | nodes.Getitem():
            path = _path_of(node)
            if path is None:
                _walk_all(node.iter_child_nodes(), bound, found)
            elif path[0] not in bound:
                found.add(path)
        case nodes.For(target=target, iter=source, else_=otherwise):
            _walk(source, bound, found)
            inner = bound | _targets(target) | {"loop"}
            _walk_all(node.iter_child_nodes(only=("test", "body")), inner, found)
            _walk_all(otherwise, set(bound), found)
        case nodes.With(targets=targets, values=values, body=body):
            _walk_all(values, bound, found)
            _walk_all(body, bound.union(*map(_targets, targets)), found)
        case nodes.Assign(target=target, node=value):
            _walk(value, bound, found)
            bound |= _targets(target)
        case nodes.Call(node=nodes.Getattr(node=receiver), args=arguments):
            _walk_all([receiver, *arguments], bound, found)
        case nodes.Call(args=arguments):
            _walk_all(arguments, bound, found)
        case _:
            _walk_all(node.iter_child_nodes(), bound, found)


def _walk_all(several: Iterable[nodes.Node], bound: set[str], found: set[Path]) -> None:
    for node in several:
        _walk(node, bound, found)


def _path_of(node: nodes.Node) -> Path | None:
    """``("turns", "usage")`` for ``turns.usage`` and ``turns["usage"]``; None for what is not a constant path."""
    steps: list[str] = []
    while not isinstance(node, nodes.Name):
        match node:
            case nodes.Getattr(attr=step) | nodes.Getitem(arg=nodes.Const(value=str(step))):
                steps.append(step)
                node = node.node
            case _:
                return None
    return (node.name, *reversed(steps))


def _targets(target: nodes.Node) -> set[str]:
    return {name.name for name in ([target] if isinstance(target, nodes.Name) else target.find_all(nodes.Name))}
