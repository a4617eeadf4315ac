"""The request's bytes, the ``Retry-After`` header, and the first token of a stream."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from stepladder.schemas.errors import BadInputError

if TYPE_CHECKING:
    from stepladder.schemas.jsontypes import Json

REMOVED_FIELDS = frozenset(
    {
        "guided_json",
        "guided_regex",
        "guided_choice",
        "guided_grammar",
        "guided_decoding_backend",
        "guided_whitespace_pattern",
    }
)
"""Fields that vLLM once knew. It now ignores them and answers 200, with unconstrained text."""

TOKEN_FIELDS = ("content", "reasoning", "reasoning_content", "tool_calls", "refusal")

MAX_LINE_BYTES = 1 << 20
"""How much of an unfinished stream line is buffered. A chunk of a real stream has a few hundred bytes."""


def encode(body: Mapping[str, Json]) -> bytes:
    """The exact request bytes: UTF-8, compact, keys in the caller's order. The same body gives the same bytes.

    An unpaired surrogate, which UTF-8 cannot encode, stays a JSON escape, ``\\ud800``.
    Raises ``BadInputError`` for a removed field and for what JSON cannot express, such as NaN.
    """
    if removed := sorted(REMOVED_FIELDS & body.keys()):
        raise BadInputError(
            f"The request has the field {removed[0]}, which engines no longer read: the answer would be unconstrained.",
            remedy="Give the schema as response_format instead.",
        )
    try:
        text = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain)
    except (TypeError, ValueError) as error:
        raise BadInputError(f"The request is not JSON: {error}") from error
    return text.encode("utf-8", "backslashreplace")


def retry_after(value: str, *, now: datetime, cap_s: float) -> float | None:
    """The header ``Retry-After`` in seconds, from 0 to ``cap_s``; None if it is malformed.

    It reads both forms of RFC 9110, seconds and an HTTP date, and fractions, since some proxies send them.
    ``now`` is aware.
    """
    try:
        seconds = float(value)
    except ValueError:
        try:
            date = parsedate_to_datetime(value)
        except ValueError:
            return None
        seconds = ((date if date.tzinfo else date.replace(tzinfo=UTC)) - now).total_seconds()
        return min(max(seconds, 0.0), cap_s)
    return min(seconds, cap_s) if math.isfinite(seconds) and seconds >= 0 else None


class FirstToken:
    """Watches a stream for its first token. A chunk that only names the role has none."""

    __slots__ = ("_unfinished",)

    def __init__(self) -> None:
        self._unfinished = b""

    def seen_in(self, chunk: bytes) -> bool:
        *lines, unfinished = (self._unfinished + chunk).split(b"\n")
        self._unfinished = unfinished if len(unfinished) <= MAX_LINE_BYTES else b""
        return any(_carries_token(line) for line in lines)


def _carries_token(line: bytes) -> bool:
    if not line.startswith(b"data:"):
        return False
    try:
        event = json.loads(line[len(b"data:") :])
    except (ValueError, RecursionError):
        return False
    choices = event.get("choices") if isinstance(event, dict) else None
    if not isinstance(choices, list):
        return False
    deltas = [choice.get("delta") for choice in choices if isinstance(choice, dict)]
    return any(isinstance(delta, dict) and any(delta.get(name) for name in TOKEN_FIELDS) for delta in deltas)


def _plain(value: object) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray, memoryview)):
        return list(value)
    raise TypeError(f"{type(value).__name__} is not a JSON type")
