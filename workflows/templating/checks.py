"""What a template may say, and which names it reads: found once, before it is ever rendered."""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass, field
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeAlias

from jinja2 import nodes

from stepladder.workflows.templating.filters import FILTERS
from stepladder.workflows.templating.methods import METHODS
from stepladder.workflows.templating.tests import TESTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Path: TypeAlias = tuple[str, ...]

# Rendering takes two Python frames a level, of some 1,000; people nest five or six deep.
MAX_DEPTH = 64

_STATEMENTS = (nodes.Template, nodes.Output, nodes.TemplateData, nodes.If, nodes.For, nodes.Assign, nodes.With)
_VALUES = (nodes.Name, nodes.Const, nodes.List, nodes.Tuple, nodes.Dict, nodes.Pair, nodes.Keyword, nodes.Filter)
_OPERATIONS = (nodes.Test, nodes.Compare, nodes.Operand, nodes.Getattr, nodes.Getitem, nodes.Slice, nodes.Call)
_OPERATORS = (nodes.Concat, nodes.CondExpr, nodes.BinExpr, nodes.Not, nodes.Neg, nodes.Pos)
# How the refused kinds are written, where that differs from the name of their node.
_TAGS = {
    "AssignBlock": "{% set %} around text",
    "CallBlock": "{% call %}",
    "FilterBlock": "{% filter %}",
    "FromImport": "{% from %}",
    "NSRef": "{% set %} of a member",
    "Scope": "{% autoescape %}",
}
_ALLOWED = (*_STATEMENTS, *_VALUES, *_OPERATIONS, *_OPERATORS)


class BadTemplateError(Exception):
    """The source is not a template. It never leaves this room: ``compile_template`` turns it into a value."""

    def __init__(self, reason: str, line: int | None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line or 1


@dataclass(slots=True)
class Reads:
    """The paths that a template reads from its root names; ``bare`` are those that must be there."""

    names: set[Path] = field(default_factory=set)
    bare: set[Path] = field(default_factory=set)


def path_of(node: nodes.Node) -> Path | None:
    """``("turns", "usage")`` for ``turns.usage`` and ``turns["usage"]``; None for what is not a constant path."""
    steps: list[str] = []
    while not isinstance(node, nodes.Name):
        if isinstance(node, nodes.Getattr):
            steps.append(node.attr)
        elif isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Const) and isinstance(node.arg.value, str):
            steps.append(node.arg.value)
        else:
            return None
        node = node.node
    return (node.name, *reversed(steps))


def check(template: nodes.Template) -> None:
    """Refuses all that is not on the lists. Raises ``BadTemplateError``."""
    stack: list[tuple[nodes.Node, int]] = [(template, 0)]
    while stack:
        node, depth = stack.pop()
        if depth > MAX_DEPTH:
            raise BadTemplateError(f"more than {MAX_DEPTH} levels of nesting", node.lineno)
        _check_one(node)
        stack.extend((child, depth + 1) for child in node.iter_child_nodes())


def _check_one(node: nodes.Node) -> None:
    if not isinstance(node, _ALLOWED):
        name = type(node).__name__
        raise BadTemplateError(f"{_TAGS.get(name, f'{{% {name.lower()} %}}')} is not offered here", node.lineno)
    match node:
        case nodes.Name(name=name) | nodes.Getattr(attr=name):
            _check_name(name, node.lineno)
        case nodes.Getitem(arg=nodes.Const(value=str(name))):
            _check_name(name, node.lineno)
        case nodes.TemplateData(data=str(text)) | nodes.Const(value=str(text)):
            if any("\ud800" <= character <= "\udfff" for character in text):
                raise BadTemplateError("half of a surrogate pair is not a character", node.lineno)
        case nodes.Tuple(items=items) if any(isinstance(item, nodes.Slice) for item in items):
            raise BadTemplateError("one index at a time", node.lineno)
        case nodes.Const(value=float(number)) if not math.isfinite(number):
            raise BadTemplateError("a number is more than a double can hold", node.lineno)
        case nodes.Filter(name=name):
            _check_listed("filter", name, FILTERS, node.lineno)
            _check_arguments(node, name, FILTERS[name])
        case nodes.Test(name=name):
            _check_listed("test", name, TESTS, node.lineno)
            _check_arguments(node, name, TESTS[name])
        case nodes.Call():
            _check_call(node)
        case nodes.For(recursive=True):
            raise BadTemplateError("{% for ... recursive %} is not offered here", node.lineno)
        case nodes.Assign(target=target) | nodes.For(target=target):
            for part in target.items if isinstance(target, nodes.Tuple) else [target]:
                if not isinstance(part, nodes.Name):
                    raise BadTemplateError("a variable is a plain name here", node.lineno)


def _check_name(name: str, line: int) -> None:
    if name.startswith("_"):
        raise BadTemplateError(f"{name} begins with an underscore, and such names are not offered here", line)


def _check_listed(kind: str, name: str, listed: Iterable[str], line: int) -> None:
    if name not in listed:
        near = difflib.get_close_matches(name, listed, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(listed))}"
        raise BadTemplateError(f"there is no {kind} {name}; {hint}", line)


def _check_call(node: nodes.Call) -> None:
    match node.node:
        case nodes.Getattr(attr=method):
            _check_name(method, node.lineno)
            _check_listed("method", method, METHODS, node.lineno)
            _check_arguments(node, method, *METHODS[method])
        case nodes.Name(name="range"):
            _check_arguments(node, "range")
        case nodes.Name(name=name):
            raise BadTemplateError(f"there is no function {name}; there is range", node.lineno)
        case _:
            raise BadTemplateError("only methods and range can be called", node.lineno)


def _check_arguments(node: nodes.Call | nodes.Filter | nodes.Test, name: str, *calls: Callable[..., Any]) -> None:
    if node.dyn_args is not None or node.dyn_kwargs is not None:
        raise BadTemplateError("* and ** before an argument are not offered here", node.lineno)
    if node.kwargs and not isinstance(node, nodes.Filter):
        raise BadTemplateError("arguments by keyword are for filters alone", node.lineno)
    problem = ""
    for call in calls:
        try:
            # The budget and the value come before what the template gives.
            keywords = {str(keyword.key): keyword for keyword in node.kwargs}
            signature(call).bind(None, None, *node.args, **keywords)
        except TypeError as error:
            problem = str(error)
        else:
            return
    if problem:
        raise BadTemplateError(f"{name}: {problem}", node.lineno)


def reads(template: nodes.Template) -> Reads:
    """The paths that a checked template reads, without its own variables."""
    found = Reads()
    _walk(template, set(), frozenset(), found)
    return found


def _walk(node: nodes.Node, bound: set[str], known: frozenset[Path], found: Reads) -> None:
    """``bound`` are the template's own variables, and grow with ``set``; ``known`` are the paths that are there."""
    if isinstance(node, nodes.Name | nodes.Getattr | nodes.Getitem):
        _walk_path(node, bound, known, found)
        return
    match node:
        case nodes.Test(name="defined" | "undefined") | nodes.Filter(name="default" | "d"):
            _walk_all(node.iter_child_nodes(only=("node",)), bound, known | {()}, found)
            _walk_all([*node.args, *node.kwargs], bound, known, found)
        case nodes.And(left=left, right=right):
            _walk(left, bound, known, found)
            _walk(right, bound, known | _told(left, holds=True), found)
        case nodes.Or(left=left, right=right):
            _walk(left, bound, known, found)
            _walk(right, bound, known | _told(left, holds=False), found)
        case nodes.CondExpr(test=test, expr1=then, expr2=otherwise):
            _walk(test, bound, known, found)
            _walk(then, bound, known | _told(test, holds=True), found)
            if otherwise is not None:
                _walk(otherwise, bound, known | _told(test, holds=False), found)
        case nodes.If(test=test, body=body, elif_=elifs, else_=otherwise):
            for condition, branch in [(test, body), *((each.test, each.body) for each in elifs)]:
                _walk(condition, bound, known, found)
                _walk_all(branch, bound, known | _told(condition, holds=True), found)
                known |= _told(condition, holds=False)
            _walk_all(otherwise, bound, known, found)
        case nodes.For(target=target, iter=source, body=body, else_=otherwise):
            _walk(source, bound, known, found)
            inner = bound | _targets(target) | {"loop"}
            _walk_all([*node.iter_child_nodes(only=("test",)), *body], inner, known, found)
            _walk_all(otherwise, set(bound), known, found)
        case nodes.With(targets=targets, values=values, body=body):
            _walk_all(values, bound, known, found)
            _walk_all(body, bound.union(*(_targets(target) for target in targets)), known, found)
        case nodes.Assign(target=target, node=value):
            _walk(value, bound, known, found)
            bound |= _targets(target)
        case nodes.Call(node=nodes.Getattr(node=receiver), args=arguments):
            _walk_all([receiver, *arguments], bound, known, found)
        case nodes.Call(args=arguments):
            _walk_all(arguments, bound, known, found)
        case _:
            _walk_all(node.iter_child_nodes(), bound, known, found)


def _walk_all(several: Iterable[nodes.Node], bound: set[str], known: frozenset[Path], found: Reads) -> None:
    for node in several:
        _walk(node, bound, known, found)


def _walk_path(
    node: nodes.Name | nodes.Getattr | nodes.Getitem, bound: set[str], known: frozenset[Path], found: Reads
) -> None:
    path = path_of(node)
    if path is None:
        _walk_all(node.iter_child_nodes(), bound, known, found)
    elif path[0] not in bound:
        found.names.add(path)
        if not any(path[: len(there)] == there for there in known):
            found.bare.add(path)


def _targets(target: nodes.Node) -> set[str]:
    return {name.name for name in ([target] if isinstance(target, nodes.Name) else target.find_all(nodes.Name))}


def _told(condition: nodes.Node, *, holds: bool) -> frozenset[Path]:
    """The paths that are there, if a condition holds (or does not)."""
    match condition:
        case nodes.Test(name="defined", node=tested) if holds:
            path = path_of(tested)
        case nodes.Test(name="undefined", node=tested) if not holds:
            path = path_of(tested)
        case nodes.Not(node=inner):
            return _told(inner, holds=not holds)
        case nodes.And(left=left, right=right) if holds:
            return _told(left, holds=True) | _told(right, holds=True)
        case nodes.Or(left=left, right=right) if not holds:
            return _told(left, holds=False) | _told(right, holds=False)
        case _:
            return frozenset()
    return frozenset() if path is None else frozenset({path})
