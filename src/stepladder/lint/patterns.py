"""Texts that match a pattern: enough of ECMA's regular expressions for the patterns that people put into schemas.

Literals, classes, groups, alternatives and repetitions are understood; anchors stand for nothing, since a text is all
that is made. Look-around, back-references and ``\\b`` are not, and a pattern that has them gives no text. Whoever asks
checks the text against the pattern all the same.
"""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import TypeAlias

_DEEPEST = 40
_LONGEST_SOURCE = 1_000
_LETTERS, _DIGITS = string.ascii_letters, string.digits
_WORD = _LETTERS + _DIGITS + "_"
_PRINTED = _LETTERS + _DIGITS + " " + string.punctuation
_SHORTHANDS = {"d": _DIGITS, "w": _WORD, "s": " ", "n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v"}
_PROPERTIES = {"L": _LETTERS, "Lu": string.ascii_uppercase, "Ll": string.ascii_lowercase, "N": _DIGITS, "Nd": _DIGITS}
_PROPERTIES |= {"Letter": _LETTERS, "Alphabetic": _LETTERS}
_SIGNS = frozenset("^$.*+?()[]{}|\\/-")


@dataclass(frozen=True, slots=True)
class One:
    """One character of these."""

    characters: str


@dataclass(frozen=True, slots=True)
class Row:
    """One after the other."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """One of these."""

    ways: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Times:
    """``most`` is None where there is no bound."""

    part: Node
    least: int
    most: int | None


Node: TypeAlias = One | Row | Either | Times


class _TooOddError(Exception):
    """The pattern has something that is not understood here."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern that was understood. ``shortest`` and ``longest`` count characters; ``longest`` is None without end."""

    node: Node
    shortest: int
    longest: int | None

    def text(self, length: int, variant: int = 0) -> str:
        """A text that matches, of about ``length`` characters where repetitions allow it and never of fewer than
        ``shortest``. Different variants take different ways and characters."""
        return _Writer(max(0, length - self.shortest), variant).written(self.node)


def read_pattern(source: str) -> Pattern | None:
    """None where the pattern is not understood."""
    if len(source) > _LONGEST_SOURCE:
        return None
    try:
        node = _Reader(source).whole()
        return Pattern(node, _shortest(node), _longest(node))
    except (_TooOddError, IndexError, ValueError):  # it ends too early, or a number or range in it is none
        return None


class _Reader:
    def __init__(self, source: str) -> None:
        self.source = source
        self.at = 0
        self.depth = 0

    def whole(self) -> Node:
        node = self._either()
        if self.at < len(self.source):
            raise _TooOddError
        return node

    def _peek(self) -> str:
        return self.source[self.at : self.at + 1]

    def _take(self) -> str:
        self.at += 1
        return self.source[self.at - 1]

    def _either(self) -> Node:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise _TooOddError
        ways = [self._row()]
        while self._peek() == "|":
            self.at += 1
            ways.append(self._row())
        self.depth -= 1
        return ways[0] if len(ways) == 1 else Either(tuple(ways))

    def _row(self) -> Node:
        parts: list[Node] = []
        while self._peek() not in ("", "|", ")"):
            if self._peek() in "^$":
                self.at += 1
            else:
                parts.append(self._repeated(self._part()))
        return parts[0] if len(parts) == 1 else Row(tuple(parts))

    def _part(self) -> Node:
        match self._take():
            case "(":
                return self._group()
            case "[":
                return One(self._class())
            case ".":
                return One(_WORD)
            case "\\":
                return One(self._escape())
            case "*" | "+" | "?" | "{":
                raise _TooOddError
            case character:
                return One(character)

    def _group(self) -> Node:
        if self._peek() == "?":
            self.at += 1
            if self._peek() == "<" and self.source[self.at + 1] not in "=!":
                self.at = self.source.index(">", self.at) + 1
            elif self._take() != ":":
                raise _TooOddError
        node = self._either()
        if self._take() != ")":
            raise _TooOddError
        return node

    def _escape(self) -> str:
        letter = self._take()
        if letter in _SHORTHANDS:
            return _SHORTHANDS[letter]
        if letter in "DWS":
            return _others(_SHORTHANDS[letter.lower()])
        if letter in "xu" and self._peek() != "{":
            digits = self.source[self.at : self.at + (2 if letter == "x" else 4)]
            self.at += len(digits)
            return chr(int(digits, 16))
        if letter == "p" and self._take() == "{":
            end = self.source.index("}", self.at)
            name, self.at = self.source[self.at : end], end + 1
            if name in _PROPERTIES:
                return _PROPERTIES[name]
        elif letter in _SIGNS or not letter.isalnum():
            return letter
        raise _TooOddError

    def _class(self) -> str:
        negated = self._peek() == "^"
        self.at += negated
        found: list[str] = []
        while self._peek() != "]":
            first = self._class_part()
            if len(first) == 1 and self._peek() == "-" and self.source[self.at + 1] != "]":
                self.at += 1
                last = self._class_part()
                found.extend(chr(code) for code in range(ord(first), min(ord(last), ord(first) + 255) + 1))
            else:
                found.extend(first)
        self.at += 1
        characters = "".join(dict.fromkeys(found))
        if negated:
            characters = _others(characters)
        if not characters:
            raise _TooOddError
        return characters

    def _class_part(self) -> str:
        character = self._take()
        return self._escape() if character == "\\" else character

    def _repeated(self, part: Node) -> Node:
        match self._peek():
            case "*":
                bounds: tuple[int, int | None] = (0, None)
            case "+":
                bounds = (1, None)
            case "?":
                bounds = (0, 1)
            case "{":
                end = self.source.index("}", self.at)
                least, comma, most = self.source[self.at + 1 : end].partition(",")
                bounds = (int(least), int(most) if most else None if comma else int(least))
                self.at = end
            case _:
                return part
        self.at += 1
        if self._peek() == "?":
            self.at += 1
        if bounds[1] is not None and bounds[1] < bounds[0]:
            raise _TooOddError
        return Times(part, *bounds)


def _others(characters: str) -> str:
    return "".join(character for character in _PRINTED if character not in characters)


def _shortest(node: Node) -> int:
    match node:
        case One():
            return 1
        case Row(parts):
            return sum(map(_shortest, parts))
        case Either(ways):
            return min(map(_shortest, ways))
        case Times(part, least, _):
            return least * _shortest(part)


def _longest(node: Node) -> int | None:
    match node:
        case One():
            return 1
        case Row(parts):
            lengths = [_longest(part) for part in parts]
            return None if None in lengths else sum(length for length in lengths if length is not None)
        case Either(ways):
            lengths = [_longest(way) for way in ways]
            return None if None in lengths else max(length for length in lengths if length is not None)
        case Times(part, _, most):
            length = _longest(part)
            if length == 0 or most == 0:
                return 0
            return None if length is None or most is None else length * most


class _Writer:
    """Writes from left to right; ``spare`` are the characters that may still be added to what must be."""

    def __init__(self, spare: int, variant: int) -> None:
        self.spare = spare
        self.variant = variant
        self.count = variant

    def written(self, node: Node) -> str:
        match node:
            case One(characters):
                self.count += 1
                return characters[(self.count * 7 + self.variant) % len(characters)]
            case Row(parts):
                return "".join(map(self.written, parts))
            case Either(ways):
                return self.written(self._way(ways))
            case Times(part, least, most):
                return "".join(self.written(part) for _ in range(self._times(part, least, most)))

    def _way(self, ways: tuple[Node, ...]) -> Node:
        """What the variant says, or the longest that there is room for; what it takes beyond the shortest is spent."""
        shortest = min(map(_shortest, ways))
        fitting = [way for way in ways if _shortest(way) - shortest <= self.spare]
        if self.variant:
            way = fitting[self.variant % len(fitting)]
        else:
            way = max(fitting, key=_shortest) if self.spare else fitting[0]
        self.spare -= _shortest(way) - shortest
        return way

    def _times(self, part: Node, least: int, most: int | None) -> int:
        length = _shortest(part)
        if length == 0:  # what is inside may take of the spare; of the rest, each matches nothing
            return 1 if most != 0 and self.spare else 0
        more = self.spare // length if most is None else min(most - least, self.spare // length)
        self.spare -= more * length
        return least + more
