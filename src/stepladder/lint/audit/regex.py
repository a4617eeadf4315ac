"""What a regular expression is made of, as far as engines differ on it. ECMA's dialect; nothing is matched here."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stepladder.lint.patterns import read_pattern

_TOKEN = re.compile(r"\\[\s\S]|\[(?:\\[\s\S]|[^\]\\])*\]|\(\?<?[:=!]|\(\?<[^>]*>|[\s\S]")
_BACK_REFERENCE = re.compile(r"\\(?:[1-9]|k<)")
_LOOKS = ("(?=", "(?!", "(?<=", "(?<!")


@dataclass(frozen=True, slots=True)
class Traits:
    """Of each trait, whether the expression has it."""

    anchored: bool
    look_around: bool
    back_reference: bool
    word_boundary: bool
    shorthand: bool
    unicode_property: bool


def traits_of(pattern: str) -> Traits:
    pieces = _TOKEN.findall(pattern)
    classes = [piece for piece in pieces if piece[0] == "["]
    escapes = [piece for piece in pieces if piece[0] == "\\"] + [e for c in classes for e in re.findall(r"\\[\s\S]", c)]
    return Traits(
        anchored=_anchored(pieces),
        look_around=any(piece in _LOOKS for piece in pieces),
        back_reference=any(_BACK_REFERENCE.match(piece) for piece in pieces) or "\\k<" in pattern,
        word_boundary=any(piece in ("\\b", "\\B") for piece in pieces),
        shorthand=any(escape in ("\\d", "\\D", "\\w", "\\W", "\\s", "\\S") for escape in escapes),
        unicode_property=any(escape in ("\\p", "\\P") for escape in escapes),
    )


def anchored(pattern: str) -> bool:
    """Whether it speaks of the whole text: each alternative begins with ``^`` and ends with ``$``."""
    return _anchored(_TOKEN.findall(pattern))


def longest(pattern: str) -> int | None:
    """The most characters of a text that it matches as a whole; None where it has no bound, or none that is seen."""
    if not anchored(pattern):
        return None
    known = read_pattern(pattern)
    return None if known is None else known.longest


def _anchored(pieces: list[str]) -> bool:
    depth = 0
    alternatives: list[list[str]] = [[]]
    for piece in pieces:
        depth += (piece[0] == "(") - (piece == ")")
        if piece == "|" and depth == 0:
            alternatives.append([])
        else:
            alternatives[-1].append(piece)
    return all(one[:1] == ["^"] and one[-1:] == ["$"] and len(one) > 1 for one in alternatives)
