"""From a syntax tree to closures over plain JSON values.

celpy's own evaluator is not used. It refuses ``int == double``, overflows at 64 bits, copies the whole document into
its own types, turns every failing member into the same error, and cannot be stopped halfway. This one
evaluates the values as they are, counts its steps, and knows which name was missing.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from stepladder.validation import jsonmath
from stepladder.validation.cel.functions import FUNCTIONS, compile_pattern
from stepladder.validation.cel.macros import MACROS
from stepladder.validation.cel.nodes import (
    OPERATORS,
    Node,
    Operator,
    bound,
    index,
    mapping,
    member,
    negated,
    rooted,
    truth,
)
from stepladder.validation.cel.parsing import BadSourceError, glued, parse, place, unquoted
from stepladder.validation.jsonmath import EvaluationError, MissingError

if TYPE_CHECKING:
    from stepladder.validation.cel.run import Run

# Python allows some 1,000 frames, and a level takes two or three of them.
MAX_DEPTH = 64

# As much of the expression as a message quotes.
_QUOTED = 80

Scope: TypeAlias = Mapping[str, int]

_WRAPPERS = {"expr", "conditionalor", "conditionaland", "relation", "addition", "multiplication", "unary", "member"}
_WRAPPERS |= {"primary", "paren_expr"}
_SUFFIXES = {"member_dot", "member_dot_arg", "member_index", "member_object"}


class Compiler:
    """Compiles one expression: after ``compile``, ``names`` and ``slots`` say what a run needs."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.names: set[tuple[str, ...]] = set()
        self.slots = 0
        self._nodes = 0
        self._depth = 0

    def compile(self) -> Node:
        """Raises ``BadSourceError``."""
        return self._build(parse(self.source), {})

    def _build(self, tree: Any, scope: Scope) -> Node:
        tree = _unwrapped(tree)
        self._nodes += 1
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._bad(f"more than {MAX_DEPTH} levels of nesting", tree)
        match tree.data:
            case "expr":
                node = self._choice(tree, scope)
            case "conditionalor" | "conditionaland":
                node = self._logic(tree, scope)
            case "relation" | "addition" | "multiplication":
                node = self._chain(tree, scope)
            case "unary":
                node = self._unary(tree, scope)
            case _:
                node = self._value(tree, scope)
        self._depth -= 1
        return node

    def _bad(self, reason: str, tree: Any) -> BadSourceError:
        return BadSourceError(f"{reason}, {place(self.source, tree.meta.start_pos)}")

    def _quote(self, tree: Any) -> str:
        text = " ".join(self.source[tree.meta.start_pos : tree.meta.end_pos].split())
        return text if len(text) <= _QUOTED else text[: _QUOTED - 3] + "..."

    def _choice(self, tree: Any, scope: Scope) -> Node:
        condition, then, otherwise = (self._build(child, scope) for child in tree.children)
        return lambda run: then(run) if truth("?", condition(run)) else otherwise(run)

    def _logic(self, tree: Any, scope: Scope) -> Node:
        """``||`` and ``&&``: one deciding operand decides, even if others fail."""
        rule, terms = tree.data, []
        while tree.data == rule and len(tree.children) == 2:
            terms.append(self._build(tree.children[1], scope))
            tree = _unwrapped(tree.children[0])
        terms.append(self._build(tree, scope))
        terms.reverse()
        symbol, decisive = ("||", True) if rule == "conditionalor" else ("&&", False)

        def logic(run: Run) -> bool:
            error: EvaluationError | None = None
            for term in terms:
                try:
                    if truth(symbol, term(run)) is decisive:
                        return decisive
                except EvaluationError as problem:
                    error = error or problem
            if error is not None:
                raise error
            return not decisive

        return logic

    def _chain(self, tree: Any, scope: Scope) -> Node:
        """Operators of one rank, from left to right; a loop, so that a long sum is not a deep one."""
        whole_tree, rule = tree, tree.data
        rest: list[tuple[Operator, Node]] = []
        while tree.data == rule and len(tree.children) == 2:
            step, right = tree.children
            if step.data == "relation_in" and glued(self.source, step.meta.end_pos):
                raise self._bad("`in` must stand alone", step)
            rest.append((OPERATORS[step.data], self._build(right, scope)))
            tree = _unwrapped(step.children[0])
        first, text = self._build(tree, scope), self._quote(whole_tree)
        rest.reverse()

        def chain(run: Run) -> Any:
            value = first(run)
            for operator, right in rest:
                operand = right(run)
                try:
                    value = operator(run, value, operand)
                except EvaluationError as error:
                    error.where = error.where or text
                    raise
            return value

        return chain

    def _unary(self, tree: Any, scope: Scope) -> Node:
        signs = []
        while tree.data == "unary":
            signs.append(tree.children[0].data)
            tree = _unwrapped(tree.children[1])
        operand = self._build(tree, scope)
        if len(set(signs)) > 1:
            raise self._bad("! and - cannot be mixed", tree)
        if signs[0] == "unary_not":
            return lambda run: truth("!", operand(run)) is (len(signs) % 2 == 0)
        return lambda run: negated(operand(run), odd=len(signs) % 2 == 1)

    def _value(self, tree: Any, scope: Scope) -> Node:
        """A literal, a name or a call, and what hangs on it: ``.member``, ``[index]``, ``.method()``."""
        suffixes = []
        while tree.data in _SUFFIXES:
            suffixes.append(tree)
            tree = _unwrapped(tree.children[0])
        if len(suffixes) > MAX_DEPTH:
            raise self._bad(f"a chain of more than {MAX_DEPTH} members", tree)
        text: str | None = None
        if tree.data in ("ident", "dot_ident"):
            name = str(tree.children[0])
            steps = [name]
            while suffixes and suffixes[-1].data == "member_dot":
                steps.append(str(suffixes.pop().children[1]))
            text = ".".join(steps)
            if tree.data == "ident" and name in scope:
                node = bound(scope[name], steps)
                text = None
            else:
                self.names.add(tuple(steps))
                node = rooted(steps)
        else:
            node = self._primary(tree, scope)
        for suffix in reversed(suffixes):
            self._nodes += 1
            match suffix.data:
                case "member_dot":
                    step = str(suffix.children[1])
                    text = text and f"{text}.{step}"
                    node = member(node, step, text)
                case "member_index":
                    node = index(node, self._build(suffix.children[1], scope), text)
                    text = text and f"{text}[...]"
                case "member_dot_arg":
                    node = self._call(suffix, str(suffix.children[1]), node, suffix.children[2:], scope)
                    text = None
                case _:
                    raise self._bad("messages are not supported; write a map, {...}", suffix)
        return node

    def _primary(self, tree: Any, scope: Scope) -> Node:
        match tree.data:
            case "literal":
                value = self._literal(tree)
                return lambda _: value
            case "ident_arg" | "dot_ident_arg":
                return self._call(tree, str(tree.children[0]), None, tree.children[1:], scope)
            case "list_lit":
                items = [self._build(child, scope) for rule in tree.children for child in rule.children]
                return lambda run: [item(run) for item in items]
            case "map_lit":
                nodes = [self._build(child, scope) for rule in tree.children for child in rule.children]
                return mapping(list(zip(nodes[::2], nodes[1::2], strict=True)))
            case _:
                return self._build(tree, scope)

    def _literal(self, tree: Any) -> Any:
        token = tree.children[0]
        text = str(token)
        match token.type:
            case "INT_LIT" | "UINT_LIT":
                digits = text.rstrip("uU")
                number = int(digits, 16 if "x" in digits else 10)
                if token.type == "UINT_LIT" and number < 0:
                    raise self._bad(f"{text} has a sign", tree)
                if number.bit_length() > jsonmath.MAX_INTEGER_BITS:
                    raise self._bad(f"the number has more than {jsonmath.MAX_INTEGER_BITS:,} bits", tree)
                return number
            case "FLOAT_LIT":
                if not math.isfinite(float(text)):
                    raise self._bad(f"{text} is more than a double can hold", tree)
                return float(text)
            case "STRING_LIT" | "MLSTRING_LIT":
                return unquoted(text)
            case "BOOL_LIT":
                return text == "true"
            case "NULL_LIT":
                return None
            case _:
                raise self._bad("JSON has no bytes; write a string", tree)

    def _call(self, tree: Any, name: str, receiver: Node | None, rest: list[Any], scope: Scope) -> Node:
        arguments = rest[0].children if rest else []
        if name == "has" and receiver is None:
            return self._has(tree, arguments, scope)
        if receiver is not None and name in MACROS:
            return self._macro(tree, name, receiver, arguments, scope)
        function = FUNCTIONS.get(name)
        if function is None:
            near = difflib.get_close_matches(name, [*FUNCTIONS, *MACROS, "has"], n=1)
            hint = f"; did you mean {near[0]}?" if near else f"; there are {', '.join([*MACROS, 'has', *FUNCTIONS])}"
            raise self._bad(f"there is no function {name}{hint}", tree)
        nodes = ([receiver] if receiver else []) + [self._build(argument, scope) for argument in arguments]
        if not function.least <= len(nodes) <= function.most:
            wants = f"{function.least}" if function.least == function.most else f"{function.least} to {function.most}"
            raise self._bad(f"{name} takes {wants} values and is given {len(nodes)}", tree)
        if name == "matches":
            self._check_pattern(tree, arguments[-1])
        apply, text = function.call, self._quote(tree)

        def call(run: Run) -> Any:
            values = [node(run) for node in nodes]
            try:
                return apply(run, *values)
            except EvaluationError as error:
                error.where = error.where or text
                raise

        return call

    def _check_pattern(self, tree: Any, argument: Any) -> None:
        literal = _unwrapped(argument)
        if literal.data == "literal" and literal.children[0].type in ("STRING_LIT", "MLSTRING_LIT"):
            try:
                compile_pattern(unquoted(str(literal.children[0])))
            except EvaluationError as error:
                raise self._bad(error.reason, tree) from None

    def _has(self, tree: Any, arguments: list[Any], scope: Scope) -> Node:
        if len(arguments) != 1 or _unwrapped(arguments[0]).data != "member_dot":
            raise self._bad("has takes one member, as in has(turns.usage)", tree)
        node = self._build(arguments[0], scope)

        def has(run: Run) -> bool:
            try:
                node(run)
            except MissingError:
                return False
            return True

        return has

    def _macro(self, tree: Any, name: str, receiver: Node, arguments: list[Any], scope: Scope) -> Node:
        counts, build = MACROS[name]
        variable = _unwrapped(arguments[0]) if arguments else None
        if len(arguments) not in counts or variable is None or variable.data != "ident":
            raise self._bad(f"{name} takes a variable and an expression, as in {name}(item, item > 0)", tree)
        slot = self.slots
        self.slots += 1
        before = self._nodes
        inner = {**scope, str(variable.children[0]): slot}
        bodies = [self._build(argument, inner) for argument in arguments[1:]]
        return build(receiver, slot, self._nodes - before, bodies)


def _unwrapped(tree: Any) -> Any:
    while tree.data in _WRAPPERS and len(tree.children) == 1:
        tree = tree.children[0]
    return tree
