"""The traits of a regular expression (ECMA's dialect) that engines treat differently. Nothing is matched here."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stepladder.lint.patterns import read_pattern

_TOKEN = re.compile(r"\\[\s\S]|\[(?:\\[\s\S]|[^\]\\])*\]|\(\?<?[:=!]|\(\?<[^>]*>|[\s\S]")
_ESCAPE = re.compile(r"\\[\s\S]")


@dataclass(frozen=True, slots=True)
class Traits:
    """``anchored``: each alternative begins with ``^`` and ends with ``$``, so that it is about the whole string."""

    anchored: bool
    look_around: bool
    back_reference: bool
    word_boundary: bool
    shorthand: bool
    unicode_property: bool


def traits_of(pattern: str) -> Traits:
    tokens = _TOKEN.findall(pattern)
    escapes = {token for token in tokens if token[0] == "\\"}
    inside = escapes | {escape for token in tokens if token[0] == "[" for escape in _ESCAPE.findall(token)}
    return Traits(
        anchored=_anchored(tokens),
        look_around=not {"(?=", "(?!", "(?<=", "(?<!"}.isdisjoint(tokens),
        back_reference=not escapes.isdisjoint(f"\\{digit}" for digit in "123456789") or "\\k<" in pattern,
        word_boundary=not escapes.isdisjoint(("\\b", "\\B")),
        shorthand=not inside.isdisjoint(("\\d", "\\D", "\\w", "\\W", "\\s", "\\S")),
        unicode_property=not inside.isdisjoint(("\\p", "\\P")),
    )


def longest(pattern: str) -> int | None:
    """The length of the longest string that it matches as a whole; None where it has no limit, or none is known."""
    known = read_pattern(pattern) if traits_of(pattern).anchored else None
    return None if known is None else known.longest


def _anchored(tokens: list[str]) -> bool:
    depth = 0
    alternatives: list[list[str]] = [[]]
    for piece in tokens:
        depth += (piece[0] == "(") - (piece == ")")
        if piece == "|" and depth == 0:
            alternatives.append([])
        else:
            alternatives[-1].append(piece)
    return all(one[:1] == ["^"] and one[-1:] == ["$"] and len(one) > 1 for one in alternatives)
