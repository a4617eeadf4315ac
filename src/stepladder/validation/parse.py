"""The second rung: is the completion exactly one JSON document (RFC 8259)?

Nothing is ever repaired. The standard library's decoder is the authority; what it is too lenient about (NaN, 1e400,
duplicate names, unpaired surrogates, integers of any length, depth) is refused here. A faster reader goes first, and
its result counts only if the two cannot differ, which is nearly always; it never refuses anything.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import jiter

from stepladder.schemas.outcomes import Cause
from stepladder.validation.diagnosis import diagnose

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepladder.schemas.jsontypes import Json

MAX_BYTES = 1024 * 1024
MAX_DEPTH = 128
"""Arrays and objects around a value. Far below the interpreter's recursion limit, which the decoder leans on."""
MAX_INTEGER_DIGITS = 308
"""One less than the largest double has before its point: an integer within the cap is always finite as a double."""

_SPACE = re.compile(r"[ \t\n\r]*")
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}:,]|[^\s"\[\]{}:,]+', re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(?P<unpaired>u[dD][89a-fA-F])|.)", re.DOTALL)
_INFINITE = (math.inf, -math.inf)
_SHAPES = bytes.maketrans(b"123456789E{", b"000000000e[")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


@dataclass(frozen=True, slots=True)
class Limits:
    """How big a document may be: in bytes, in nested arrays and objects, and in digits of one integer."""

    max_bytes: int = MAX_BYTES
    max_depth: int = MAX_DEPTH
    max_integer_digits: int = MAX_INTEGER_DIGITS


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Parsed:
    """One JSON document. Integers are exact ints, every other number is a float."""

    value: Json


@dataclass(frozen=True, slots=True)
class NotJson:
    """Not a JSON document: why, in terms that a model can act on, and at which character (byte for bad UTF-8)."""

    cause: Cause
    reason: str
    offset: int


_REASONS = {
    Cause.DUPLICATE_KEY: "an object must not have the same name twice; {} occurs twice",
    Cause.NON_FINITE_NUMBER: "a number must be finite; {} is not JSON",
    Cause.NUMBER_TOO_LARGE: "a number must not be that large; {} cannot be stored",
}


class Refused(ValueError):  # noqa: N818 -- what a decoder's hooks raise; ``cause`` is the reason, not an error of ours
    """A strict decoder refuses JSON that cannot be kept as it is. ``subject`` is the name or the number, shortened."""

    def __init__(self, cause: Cause, subject: str) -> None:
        super().__init__(cause, subject)
        self.cause = cause
        self.subject = subject
        self.reason = _REASONS[cause].format(subject)


def parse(content: bytes, limits: Limits = DEFAULT_LIMITS) -> Parsed | NotJson:
    """Reads ``content`` as one JSON document in UTF-8, with at most white space around it. Never raises."""
    if len(content) > limits.max_bytes:
        reason = f"the answer must be at most {limits.max_bytes} bytes long, and has {len(content)}"
        return NotJson(Cause.TOO_LARGE, reason, limits.max_bytes)
    return read_quickly(content, limits) or read_carefully(content, limits)


def read_quickly(content: bytes, limits: Limits) -> Parsed | None:
    """The document, if it certainly is one. None decides nothing: the careful reader does, and finds the cause.

    ``jiter`` accepts JSON only, without duplicate names or unpaired surrogates. What it accepts beyond the bounds
    (1e400, long integers, depth) needs an exponent, a long run of digits or many brackets in the text.
    """
    shape = content.translate(_SHAPES)
    longest = min(limits.max_integer_digits, MAX_INTEGER_DIGITS)
    if shape.count(b"[") > limits.max_depth or b"0e" in shape or b"0" * (longest + 1) in shape:
        return None
    try:
        return Parsed(jiter.from_json(content, allow_inf_nan=False, catch_duplicate_keys=True, cache_mode="keys"))
    except ValueError:
        return None


def read_carefully(content: bytes, limits: Limits) -> Parsed | NotJson:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        reason = f"the answer must be UTF-8; the byte at offset {error.start} is not"
        return NotJson(Cause.BAD_UNICODE, reason, error.start)
    if (deep := _too_deep(text, limits.max_depth)) is not None:
        reason = f"the answer must not nest arrays and objects more than {limits.max_depth} deep"
        return NotJson(Cause.TOO_DEEP, reason, deep)
    return _decode(text, limits)


def _decode(text: str, limits: Limits) -> Parsed | NotJson:
    start = _skip_space(text, 0)
    try:
        value, end = strict_decoder(limits.max_integer_digits).raw_decode(text, start)
    except json.JSONDecodeError as error:
        return NotJson(*diagnose(text, error.pos, None))
    except Refused as refused:
        return NotJson(refused.cause, refused.reason, _find(text, refused))
    if (rest := _skip_space(text, end)) != len(text):
        return NotJson(*diagnose(text, rest, end))
    if (half := _lone_surrogate(text)) is not None:
        reason = f"the text contains an unpaired surrogate, {text[half : half + 6]}"
        return NotJson(Cause.BAD_UNICODE, reason, half)
    return Parsed(value)


def _pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(items)
    if len(found) != len(items):
        twice = next(name for name, times in Counter(name for name, _ in items).items() if times > 1)
        raise Refused(Cause.DUPLICATE_KEY, _shown(json.dumps(twice, ensure_ascii=False)))
    return found


def _constant(word: str) -> Any:
    raise Refused(Cause.NON_FINITE_NUMBER, word)


def _fraction(digits: str) -> float:
    number = float(digits)
    if number in _INFINITE:
        raise Refused(Cause.NUMBER_TOO_LARGE, _shown(digits))
    return number


@cache
def strict_decoder(max_digits: int = MAX_INTEGER_DIGITS) -> json.JSONDecoder:
    """Raises ``Refused`` for duplicate names and for numbers that are not finite or too large."""

    def integer(digits: str) -> int:
        if len(digits) > max_digits and len(digits.lstrip("-")) > max_digits:
            raise Refused(Cause.NUMBER_TOO_LARGE, _shown(digits))
        return int(digits)

    return json.JSONDecoder(
        object_pairs_hook=_pairs, parse_constant=_constant, parse_int=integer, parse_float=_fraction
    )


def _too_deep(text: str, max_depth: int) -> int | None:
    """Where the nesting first exceeds the bound. Linear, and skipped if there are too few brackets to matter.

    Brackets inside strings do not count. As far as the text is JSON this agrees with the decoder about what a
    string is, and the decoder does not read beyond that point.
    """
    if text.count("[") + text.count("{") <= max_depth or not text.startswith(("[", "{"), _skip_space(text, 0)):
        return None
    for start, _, depth in tokens(text):
        if depth > max_depth:
            return start
    return None


def tokens(text: str) -> Iterator[tuple[int, str, int]]:
    """Each token with its start and its depth, brackets counting as inside what they enclose."""
    depth = 0
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token in ("[", "{"):
            depth += 1
        yield match.start(), token, depth
        if token in ("]", "}"):
            depth -= 1


def _find(text: str, refused: Refused) -> int:
    """The position of the token that the decoder's hooks refused, which they do not know."""
    if refused.cause is not Cause.DUPLICATE_KEY:
        return next((start for start, token, _ in tokens(text) if _shown(token) == refused.subject), 0)
    names: list[set[str]] = []
    at, last = 0, ""
    for start, token, _ in tokens(text):
        match token:
            case "{" | "[":
                names.append(set())
            case "}" | "]" if names:
                names.pop()
            case ":" if names:
                name = _shown(json.dumps(json.loads(last), ensure_ascii=False))
                if name == refused.subject and name in names[-1]:
                    return at
                names[-1].add(name)
        at, last = start, token
    return 0


def _lone_surrogate(text: str) -> int | None:
    """The position of an unpaired surrogate escape. ``text`` is a JSON document, so escapes are in strings only."""
    if _SURROGATE_ESCAPE.search(text) is None:
        return None
    return next((match.start() for match in _ESCAPE.finditer(text) if match["unpaired"]), None)


def _skip_space(text: str, start: int) -> int:
    if start == len(text) or text[start] not in " \t\n\r":
        return start
    match = _SPACE.match(text, start)
    return match.end() if match else start


def _shown(token: str) -> str:
    return token if len(token) <= 40 else f"{token[:30]}… ({len(token)} characters)"
