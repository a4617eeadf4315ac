"""The lengths of the strings that a regular expression matches, and a sample.

CPython's own parser reads the pattern. ECMA's dialect, as schemas use it, is close enough once group names and Unicode
properties are rewritten; a pattern that cannot be read has no known length. The parser, ``re._parser``, is private. It
is used here and nowhere else: no public library gives a pattern's tree and lengths, it has been the same from 3.11 to
3.14, and hypothesis relies on it too. If it changes, only this module has to.
"""

from __future__ import annotations

import re
import string
from dataclasses import dataclass
from re import _parser  # private: see above
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_LONGEST_SOURCE = 1_000
_PRINTED = string.ascii_letters + string.digits + " " + string.punctuation
_GROUP_NAME = re.compile(r"\(\?<(?=[A-Za-z_])")
_PROPERTY = re.compile(r"\\(p|P)\{(\w+)\}")
_SET_OPERATION = re.compile(r"\[[^\]]*(?:\[|--|&&|~~|\|\|)")  # Python may read these as sets one day
_CATEGORIES: Mapping[str, Callable[[str], bool]] = {
    "DIGIT": str.isdigit,
    "SPACE": str.isspace,
    "WORD": lambda one: one.isalnum() or one == "_",
}


@dataclass(frozen=True, slots=True)
class Pattern:
    """``shortest`` and ``longest`` are in characters; ``longest`` is None if there is no limit."""

    shortest: int
    longest: int | None
    _parsed: Any

    def text(self, length: int) -> str | None:
        """A match of about ``length`` characters, if the repetitions allow it. None if the pattern has a look-around or
        a back-reference."""
        try:
            return _Writer(max(0, length - self.shortest)).written(self._parsed)
        except _UnwritableError:
            return None


def read_pattern(source: str) -> Pattern | None:
    """None if the pattern cannot be read."""
    if len(source) > _LONGEST_SOURCE or _SET_OPERATION.search(source):
        return None
    source = _PROPERTY.sub(_one_of_property, _GROUP_NAME.sub("(?P<", source))
    try:
        parsed = _parser.parse(source)
        shortest, longest = parsed.getwidth()
    except (re.error, RecursionError, OverflowError):
        return None
    return Pattern(shortest, None if longest >= _parser.MAXREPEAT else longest, parsed)


def _one_of_property(found: re.Match[str]) -> str:
    negated, name = found[1] == "P", found[2]
    return "-" if negated else "0" if name.startswith("N") else "a" if name in ("Ll", "Lowercase") else "A"


class _UnwritableError(Exception):
    """The pattern has a part of which no match is made here."""


class _Writer:
    """Writes a match from left to right; ``spare`` is how many characters it may add to the shortest one."""

    def __init__(self, spare: int) -> None:
        self.spare = spare
        self.count = 0

    def written(self, parsed: Any) -> str:
        return "".join(self._one(str(operation), argument) for operation, argument in parsed)

    def _one(self, operation: str, argument: Any) -> str:
        match operation:
            case "LITERAL":
                return chr(argument)
            case "NOT_LITERAL" | "ANY" | "IN":
                items = argument if operation == "IN" else [("NEGATE", None), ("LITERAL", argument or 10)]
                return self._character([(str(kind), value) for kind, value in items])
            case "AT":
                return ""
            case "SUBPATTERN":
                return self.written(argument[-1])
            case "ATOMIC_GROUP":
                return self.written(argument)
            case "BRANCH":
                return self._branch(argument[1])
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                least, most, part = argument
                length = max(1, part.getwidth()[0])
                more = min(most - least, self.spare // length)
                self.spare -= more * length
                return "".join(self.written(part) for _ in range(least + more))
            case _:
                raise _UnwritableError

    def _branch(self, branches: Iterable[Any]) -> str:
        """The longest branch that ``spare`` allows."""
        by_length = sorted(branches, key=lambda branch: int(branch.getwidth()[0]))
        shortest = by_length[0].getwidth()[0]
        chosen = next(branch for branch in reversed(by_length) if branch.getwidth()[0] - shortest <= self.spare)
        self.spare -= chosen.getwidth()[0] - shortest
        return self.written(chosen)

    def _character(self, items: list[tuple[str, Any]]) -> str:
        negated = items[0][0] == "NEGATE"
        fitting = [one for one in _PRINTED if any(_matches(one, *item) for item in items) is not negated]
        if not fitting:
            raise _UnwritableError
        self.count += 1
        return fitting[self.count * 7 % len(fitting)]


def _matches(one: str, kind: str, value: Any) -> bool:
    match kind:
        case "LITERAL":
            return bool(ord(one) == value)
        case "RANGE":
            return bool(value[0] <= ord(one) <= value[1])
        case "CATEGORY":
            name = str(value).removeprefix("CATEGORY_")
            return _CATEGORIES[name.removeprefix("NOT_")](one) is not name.startswith("NOT_")
        case _:
            return False
