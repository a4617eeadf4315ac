"""Small changes to a program that its tests should notice: what ``scripts/mutants`` tries one by one.

Whatever decides is changed: comparisons, conditions, constants, arithmetic, what is returned, the words of an enum, the
entries of a table, the cases of a match, the alternatives of a regular expression. Sentences (a text with a space in
it, and every part of an f-string) are for people and left alone, as are annotations, docstrings and what is raised.
"""

from __future__ import annotations

import ast
import contextlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

LEFT_OUT = "(left out)"

OTHER_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
OTHER_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change. ``was`` and ``now`` are Python; ``near`` is its line, without the indentation."""

    file: str
    line: int
    near: str
    was: str
    now: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.near}\n    {self.was}  ->  {self.now}"

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What stays the same when lines move."""
        return self.file, self.near, self.was, self.now


class Mutations:
    """All mutants of one source text. ``enums`` maps the names of enums to their members in order."""

    def __init__(self, file: str, source: str, enums: dict[str, list[str]]) -> None:
        self.file = file
        self.tree = ast.parse(source)
        self._enums = enums
        self._lines = source.splitlines()

    def __iter__(self) -> Iterator[Mutant]:
        """Each mutant in turn; while it is the current one, ``tree`` has its change.

        A change that is no Python any more (a wildcard that loses its guard) is none.
        """
        for mutant in self._walk(self.tree):
            with contextlib.suppress(SyntaxError):
                compile(self.tree, self.file, "exec")
                yield mutant

    def _walk(self, node: ast.AST) -> Iterator[Mutant]:
        for field, value in ast.iter_fields(node):
            if field in ("annotation", "returns", "decorator_list", "bases") or _is_for_people(node, field):
                continue
            parts = value if isinstance(value, list) else [value]
            for index, part in enumerate(parts):
                if not isinstance(part, ast.AST) or _is_docstring(part) or _is_never_reached(part):
                    continue
                yield from self._replaced(node, field, index, part)
                if not isinstance(part, ast.Import | ast.ImportFrom | ast.JoinedStr | ast.Raise) and not _types(part):
                    yield from self._walk(part)

    def _replaced(self, parent: ast.AST, field: str, index: int, node: ast.AST) -> Iterator[Mutant]:
        """The mutants that put something else in the node's place, or nothing."""
        for new in self._variants(parent, field, node):
            ast.copy_location(new, node)
            ast.fix_missing_locations(new)
            yield from self._set(parent, field, index, new, node)
        if _may_go(parent, field, node):
            yield from self._set(parent, field, index, None, node)

    def _set(self, parent: ast.AST, field: str, index: int, new: ast.AST | None, node: ast.AST) -> Iterator[Mutant]:
        before = {name: getattr(parent, name) for name in parent._fields}
        parts = before[field]
        if isinstance(parts, list):
            setattr(parent, field, [*parts[:index], *([] if new is None else [new]), *parts[index + 1 :]])
        else:
            setattr(parent, field, new)
        if isinstance(parent, ast.Dict) and new is None:  # its key goes too
            parent.keys = [*parent.keys[:index], *parent.keys[index + 1 :]]
        yield self._mutant(parent, node, new)
        for name, value in before.items():
            setattr(parent, name, value)

    def _mutant(self, parent: ast.AST, node: ast.AST, new: ast.AST | None) -> Mutant:
        line = getattr(node, "lineno", None) or getattr(parent, "lineno", None) or _line_of(node) or 1
        was, now = _told(node), LEFT_OUT if new is None else _told(new)
        if isinstance(new, Constant):
            line, was, now = line + new.lines_before, new.was, new.now
        return Mutant(self.file, line, self._lines[line - 1].strip(), was, now)

    def _variants(self, parent: ast.AST, field: str, node: ast.AST) -> Iterator[ast.AST]:
        match node:
            case ast.Compare(left=left, ops=ops, comparators=comparators):
                for nth, op in enumerate(ops):
                    for other in OTHER_COMPARISONS[type(op)]:
                        yield ast.Compare(left, [*ops[:nth], other(), *ops[nth + 1 :]], comparators)
            case ast.BoolOp(op=op, values=values):
                yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
                for nth in range(len(values)):
                    rest = [*values[:nth], *values[nth + 1 :]]
                    yield rest[0] if len(rest) == 1 else ast.BoolOp(op, rest)
            case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
                yield operand
            case ast.BinOp(left=left, op=op, right=right) if type(op) in OTHER_OPERATORS:
                yield ast.BinOp(left, OTHER_OPERATORS[type(op)](), right)
            case ast.AugAssign(target=target, op=op, value=value) if type(op) in OTHER_OPERATORS:
                yield ast.AugAssign(target, OTHER_OPERATORS[type(op)](), value)
                yield ast.Pass()
            case ast.Expr(value=ast.Call()) | ast.Continue() | ast.Break():
                yield ast.Pass()
            case ast.Return(value=ast.expr() as value) if not _is_none(value):
                yield ast.Return(ast.Constant(None))
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if attr in self._enums.get(name, ()):
                members = self._enums[name]
                other_word = members[(members.index(attr) + 1) % len(members)]
                yield ast.Attribute(ast.Name(name, ast.Load()), other_word, ast.Load())
            case ast.Constant(value=str(pattern)) if _is_pattern(parent):
                yield from _other_patterns(pattern)
            case ast.Constant(value=value) if not isinstance(parent, ast.MatchValue):
                yield from (ast.Constant(other) for other in _other_constants(value))
            case ast.MatchOr(patterns=[one, other_one]):
                yield from (other_one, one)
            case ast.Subscript(value=value, slice=ast.Slice(), ctx=ast.Load()):
                yield value
        if field == "test" and isinstance(node, ast.expr) and not isinstance(node, ast.Compare):
            yield ast.UnaryOp(ast.Not(), node)


def _other_constants(value: object) -> Iterator[str | bytes | int | float]:
    match value:
        case bool():
            yield not value
        case int():
            yield from (value + 1, value - 1)
        case float():
            yield value * 2 + 1
        case str() if len(value) > 1 and not re.search(r"[\w ]", value):  # a set of signs
            yield from (value[:nth] + value[nth + 1 :] for nth in range(len(value)))
        case str() if not re.search(r"\w\s|\s\w", value):
            yield "XX" + value
        case bytes():
            yield b"XX" + value


class Constant(ast.Constant):
    """A regular expression with one change, ``lines_before`` below its first line. ``ast`` goes by the class's name."""

    def __init__(self, pattern: str, start: int, end: int, put: str = "") -> None:
        super().__init__(pattern[:start] + put + pattern[end:])
        self.was, self.now = pattern[start:end].strip().strip("|"), put or LEFT_OUT
        self.lines_before = pattern[: start + 1].count("\n")


def _other_patterns(pattern: str) -> Iterator[Constant]:
    """The pattern without one of its alternatives, at any depth, and with each count one more and one less."""
    yield from (Constant(pattern, start, end) for start, end in _alternatives(pattern))
    for count in re.finditer(r"(?<=\{)\d+|(?<=,)\d+(?=\})", pattern):
        for other in (int(count.group()) + 1, int(count.group()) - 1):
            if other >= 0:
                yield Constant(pattern, *count.span(), str(other))


def _alternatives(pattern: str) -> Iterator[tuple[int, int]]:
    """The spans of all alternatives, each with one of the bars beside it."""
    groups: list[list[int]] = [[0]]  # where the alternatives of each open group begin
    ended: list[tuple[list[int], int]] = []
    at, in_class = 0, False
    while at < len(pattern):
        sign = pattern[at]
        if sign == "\\":
            at += 2
            continue
        if in_class:
            in_class = sign != "]"
        elif sign == "[":
            in_class = True
            at += pattern[at + 1 : at + 2] == "^"
            at += pattern[at + 1 : at + 2] == "]"
        elif sign == "(":
            head = re.compile(r"\(\?(?::|=|!|<=|<!|>|P<\w+>|\w*:)").match(pattern, at)
            at = head.end() - 1 if head else at
            groups.append([at + 1])
        elif sign == "|":
            groups[-1].append(at + 1)
        elif sign == ")":
            ended.append((groups.pop(), at))
        at += 1
    for starts, end in [*ended, (groups[0], len(pattern))]:
        if len(starts) > 1:
            for this, following in zip(starts, [*starts[1:], None], strict=True):
                yield (this, following) if following is not None else (this - 1, end)


def _is_pattern(parent: ast.AST) -> bool:
    return (
        isinstance(parent, ast.Call)
        and isinstance(parent.func, ast.Attribute)
        and isinstance(parent.func.value, ast.Name)
        and parent.func.value.id == "re"
    )


def _may_go(parent: ast.AST, field: str, node: ast.AST) -> bool:
    match parent:
        case ast.Set() | ast.List() if isinstance(node, ast.expr):
            return not isinstance(getattr(parent, "ctx", ast.Load()), ast.Store)
        case ast.Tuple() if isinstance(node, ast.expr):
            return isinstance(parent.ctx, ast.Load) and len(parent.elts) > 1
        case ast.Dict():
            return field == "values"
        case ast.Match():
            return field == "cases" and len(parent.cases) > 1
        case ast.match_case():
            return field == "guard"
        case ast.MatchOr():
            return field == "patterns" and len(parent.patterns) > 2
        case ast.comprehension():
            return field == "ifs"
        case ast.Call():
            return field == "keywords"
    return False


def _is_for_people(node: ast.AST, field: str) -> bool:
    return isinstance(node, ast.Raise) or (isinstance(node, ast.Assign | ast.AnnAssign) and field.startswith("target"))


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_never_reached(node: ast.AST) -> bool:
    body = node.body if isinstance(node, ast.match_case) else [node]
    return len(body) == 1 and ast.unparse(body[0]).startswith("assert_never(")


def _types(node: ast.AST) -> bool:
    """Whether a statement is for type checkers alone."""
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _told(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 160 else f"{text[:80]} … {text[-70:]}"


def _line_of(node: ast.AST) -> int | None:
    return next((line for inner in ast.walk(node) if (line := getattr(inner, "lineno", None))), None)
