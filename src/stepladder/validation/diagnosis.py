"""Why a text is not one JSON document: the most helpful cause, and where.

A diagnosis names what is wrong. It does not guess what the model may have meant, and repairs nothing.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from stepladder.schemas.outcomes import Cause

if TYPE_CHECKING:
    from collections.abc import Callable

_MARKUP = re.compile(
    r"""<\|?/?(?:tool_call|toolcall|tool_calls|tool_use|tool_code|function_calls?|start_function_call|invoke)\b
    |<function[= ]
    |<[\w-]+:(?:tool_call|function_calls|invoke)\b
    |<\|(?:python_tag|tool_calls?_section_begin|action_start|plugin)\|>
    |<[|｜]tool[▁_ ]calls?[▁_ ]begin[|｜]>
    |to=functions\.
    |\[/?TOOL_CALLS?\]
    |✿FUNCTION✿""",
    re.VERBOSE | re.IGNORECASE,
)
_FENCE = re.compile(r"```|~~~")
_QUOTES = "'‘’‚‛“”„‟′″＂＇«»‹›「」『』`´"
_WIDE = "：，｛｝［］"
_FOREIGN = _QUOTES + _WIDE
# A foreign quote at the end of a string: before what may follow a string in JSON.
_FOREIGN_CLOSE = re.compile(rf"[{_QUOTES[1:]}＂][ \t\r\n]*[:：,，\]}}]")
_DOCUMENT = re.compile(rf"[{{\[][ \t\r\n]*(?:[\"{_QUOTES}{{}}\[\]]|-?[0-9]|true\b|false\b|null\b)")
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf(?:inity)?)\b", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z]+")
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_OPENERS = ("{", "[", '"')
_ONE = "the answer must be one JSON document,"


class Diagnosis(NamedTuple):
    """What is wrong, in terms that a model can act on, and at which character."""

    cause: Cause
    reason: str
    offset: int


@dataclass(frozen=True, slots=True)
class _Failure:
    """``at`` is where the decoder gave up; ``end`` is where the first document ends, if there is a whole one."""

    text: str
    at: int
    end: int | None

    @property
    def start(self) -> int:
        return len(self.text) - len(self.text.lstrip())

    @property
    def first(self) -> str:
        return self.text[self.start : self.start + 1]

    @property
    def here(self) -> str:
        return self.text[self.at : self.at + 1]

    @property
    def rest(self) -> str:
        return self.text[self.at :].strip()


def diagnose(text: str, at: int, end: int | None) -> Diagnosis:
    """The first cause of ``PRECEDENCE`` that explains the failure.

    ``at`` is the character at which a JSON decoder gave up. If something follows a complete document, ``end`` is where
    the document ends and ``at`` where the rest begins.
    """
    failure = _Failure(text, at, end)
    for cause, reason, find in PRECEDENCE:
        if (offset := find(failure)) is not None:
            return Diagnosis(cause, reason(failure, offset) if callable(reason) else reason, offset)
    return Diagnosis(Cause.SYNTAX, _syntax(failure), at)


def _around(failure: _Failure, pattern: re.Pattern[str]) -> int | None:
    """Where ``pattern`` occurs outside the document: after its end, or before its first brace."""
    if failure.end is not None:
        found = pattern.search(failure.text, failure.end)
    elif failure.first in _OPENERS:
        found = pattern.match(failure.text, failure.start)
    else:
        found = pattern.search(failure.text.partition("{")[0])
    return found.start() if found else None


def _quotes(failure: _Failure) -> int | None:
    if failure.end is not None:
        return None
    if failure.here and failure.here in _FOREIGN:
        opens_text = failure.at > failure.start or _DOCUMENT.search(failure.text, failure.at) is not None
        return failure.at if opens_text or failure.here in _WIDE else None
    return _swallowed(failure) if failure.first in _OPENERS else None


def _swallowed(failure: _Failure) -> int | None:
    """A string opened with " and closed with another quote swallows what follows: search from its beginning."""
    text, at = failure.text, failure.at
    before = text[:at].rstrip()
    if failure.here == '"' and _STRING.match(text, at) is None:
        opened, until = at, len(text)
    elif failure.here and failure.here < " ":
        opened, until = text.rfind('"', 0, at), len(text)
    elif before.endswith('"') and failure.here.isalnum():
        opened, until = before.rfind('"', 0, -1), len(before)
    else:
        return None
    found = _FOREIGN_CLOSE.search(text, max(opened, 0), until)
    return found.start() if found else None


def _trailing_comma(failure: _Failure) -> int | None:
    text, at = failure.text, failure.at
    if failure.end is not None:
        return at if failure.rest == "," else None
    before = text[:at].rstrip()
    if before.endswith(",") and text[at:].lstrip()[:1] in ("}", "]"):
        return len(before) - 1
    # Newer decoders point at the comma itself.
    if failure.here == "," and before[-1:] not in ("{", "[") and text[at + 1 :].lstrip()[:1] in ("}", "]"):
        return at
    return None


def _non_finite(failure: _Failure) -> int | None:
    if failure.end is not None or failure.at == failure.start:
        return None
    return failure.at if _NOT_FINITE.match(failure.text, failure.at) else None


def _prose_before(failure: _Failure) -> int | None:
    # Prose may begin with what is JSON by itself: "1. Here it is", "true to form".
    begins_with_scalar = failure.end is not None and failure.first not in _OPENERS
    if not begins_with_scalar and (failure.at != failure.start or failure.here == "\ufeff"):
        return None
    return failure.start if _DOCUMENT.search(failure.text, failure.at) else None


def _prose_after(failure: _Failure) -> int | None:
    if failure.end is None:
        return None
    glued = failure.at == failure.end and failure.first not in _OPENERS
    return None if glued or failure.here in "]}:" else failure.at


def _named(failure: _Failure, offset: int) -> str:
    sign = failure.text[offset]
    plain = {"：": ":", "，": ",", "｛": "{", "｝": "}", "［": "[", "］": "]"}.get(sign, '"')
    return f"the answer must be JSON with ASCII punctuation; use {plain} instead of {sign} (U+{ord(sign):04X})"


def _behind(failure: _Failure, _: int) -> str:
    return f"{_ONE} without {'a second one' if failure.rest[:1] in ('{', '[') else 'text'} after it"


def _not_finite(failure: _Failure, offset: int) -> str:
    found = _NOT_FINITE.match(failure.text, offset)
    return f"a number must be finite; {found.group() if found else 'it'} is not JSON"


PRECEDENCE: tuple[tuple[Cause, str | Callable[[_Failure, int], str], Callable[[_Failure], int | None]], ...] = (
    (Cause.TOOL_CALL_MARKUP, f"{_ONE} without tool call markup", lambda failure: _around(failure, _MARKUP)),
    (Cause.MARKDOWN_FENCE, f"{_ONE} without a Markdown fence", lambda failure: _around(failure, _FENCE)),
    (Cause.QUOTES, _named, _quotes),
    (Cause.TRAILING_COMMA, "a comma must not come before a closing bracket", _trailing_comma),
    (Cause.NON_FINITE_NUMBER, _not_finite, _non_finite),
    (Cause.PROSE_BEFORE, f"{_ONE} without text before it", _prose_before),
    (Cause.PROSE_AFTER, _behind, _prose_after),
)
"""Several may apply at once; the first that does is the cause, and ``syntax`` is the rest. What wraps the whole
document comes first, since it explains everything inside it."""


def _syntax(failure: _Failure) -> str:
    text, at = failure.text, failure.at
    if text.startswith("\ufeff"):
        return f"{_ONE} without a byte order mark before it"
    if at >= len(text.rstrip()) or (failure.here == '"' and _STRING.match(text, at) is None):
        return "the answer must be one complete JSON document; it ends too early"
    if at == failure.start:
        return "the answer must be one JSON document; it contains none"
    if failure.here < " " and failure.here != "\x00":
        return "a control character inside a string must be escaped, a line break as \\n"
    word = _WORD.match(text, at)
    near = json.dumps(word.group()[:20] if word else failure.here, ensure_ascii=False)
    return f"the answer must be one JSON document; {near} is not allowed at character {at}"
