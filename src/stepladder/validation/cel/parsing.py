"""From the text of an expression to its syntax tree: the grammar is celpy's, the guards around it are ours."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

# A rule is a line or two. Parsing costs some 20 us a character at the worst.
MAX_SOURCE = 4_096

# What a quote may open, found without backtracking. celpy's own pattern for strings takes a time that doubles with
# each escape in a string that is not closed, so none of those may reach it.
_QUOTED = re.compile(
    r"""//[^\n]*
    | \"{3} (?: \\["'\\] | (?!\"{3}) [^\\] | \\ (?!["'\\]) )* \"{3}
    | '{3}  (?: \\["'\\] | (?!'{3})  [^\\] | \\ (?!["'\\]) )* '{3}
    | "     (?: \\["'\\] | [^"\\\n] | \\ (?!["'\\\n]) )* "
    | '     (?: \\["'\\] | [^'\\\n] | \\ (?!["'\\\n]) )* '
    | (?P<open>["'])
    """,
    re.VERBOSE,
)
_ESCAPE = re.compile(
    r"""\\(?:([abfnrtv"'\\?`])|([0-3][0-7]{2})|x([\da-fA-F]{2})|u([\da-fA-F]{4})|U([\da-fA-F]{8}))|\\"""
)
_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_WORD = re.compile(r"\w", re.ASCII)


class BadSourceError(Exception):
    """The text is not an expression. ``compile_expression`` turns this into a value."""


@cache
def _grammar() -> Any:
    # Here and not above: celpy, its time zones and its grammar take 0.15 s, which a plain `--help` need not pay.
    from celpy.celparser import CELParser

    CELParser()
    return CELParser


def parse(source: str) -> Any:
    """The ``lark.Tree`` of an expression. Raises ``BadSourceError``."""
    if len(source) > MAX_SOURCE:
        raise BadSourceError(f"the expression has {len(source):,} characters, and {MAX_SOURCE:,} are allowed")
    if not source.strip():
        raise BadSourceError("the expression is empty")
    for match in _QUOTED.finditer(source):
        if match["open"]:
            raise BadSourceError(f"a string is not closed; it opens {place(source, match.start())}")
    from celpy.celparser import CELParseError

    try:
        # A parser object keeps the text that it is at, so threads cannot share one; the tables behind it they do.
        return _grammar()().parse(source)
    except CELParseError as error:
        raise BadSourceError(_unreadable(source, error)) from None


def _unreadable(source: str, error: Any) -> str:
    token = getattr(error.__context__, "token", None)
    if token is not None and token.type == "$END":
        return "the expression ends too early"
    if error.line is None or error.column is None:
        return (
            f'cannot read {token or "this"} here; true, false and null are no names, write ["true"] for such a member'
        )
    rest = source.split("\n")[error.line - 1][error.column - 1 :]
    return f"cannot read on at line {error.line}, column {error.column}: {rest[:40]!r}"


def place(source: str, position: int) -> str:
    line = source.count("\n", 0, position) + 1
    return f"at line {line}, column {position - source.rfind(chr(10), 0, position)}"


def glued(source: str, position: int) -> bool:
    """Whether the word that ends at ``position`` runs on: the grammar reads ``1 input`` as ``1 in put``."""
    return _WORD.match(source, position) is not None


def unquoted(token: str) -> str:
    """The value of a string literal. Raises ``BadSourceError`` for an escape that CEL does not know."""
    raw = token[0] in "rR"
    body = token[1:] if raw else token
    width = 3 if body[:3] in ('"""', "'''") else 1
    body = body[width:-width]
    return body if raw else _ESCAPE.sub(_unescaped, body)


def _unescaped(match: re.Match[str]) -> str:
    simple, octal, *codes = match.groups()
    if simple:
        return _SIMPLE.get(simple, simple)
    digits = next((code for code in codes if code), None)
    if not octal and not digits:
        following = match.string[match.start() : match.start() + 2]
        raise BadSourceError(f"the escape {following} is not one of CEL's; write \\\\ for a backslash")
    code = int(octal, 8) if octal else int(digits or "", 16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise BadSourceError(f"the escape {match[0]} is not a character")
    return chr(code)
