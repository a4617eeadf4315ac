"""The first rung: did a complete answer arrive? Decided by termination metadata alone, never by the text."""

from __future__ import annotations

import json
import re
from types import MappingProxyType
from typing import TYPE_CHECKING

from stepladder.schemas.answer import Lost, Received
from stepladder.schemas.outcomes import Cause, Outcome
from stepladder.validation.completion import Reading, read_body
from stepladder.validation.engine_errors import error_of, rejection_of
from stepladder.validation.rejection import Rejection

if TYPE_CHECKING:
    from stepladder.schemas.answer import Arrival, Completion

STOPS = frozenset({"stop", "eos", "end_turn", "stop_sequence", "completed"})
"""Finish reasons of a complete answer, in Chat Completions, Responses and Messages."""

ENDINGS = MappingProxyType(
    {
        "length": (Outcome.TRUNCATION, Cause.BUDGET),
        "max_tokens": (Outcome.TRUNCATION, Cause.BUDGET),
        "max_output_tokens": (Outcome.TRUNCATION, Cause.BUDGET),
        "model_length": (Outcome.TRUNCATION, Cause.BUDGET),
        "model_context_window_exceeded": (Outcome.TRUNCATION, Cause.BUDGET),
        "incomplete": (Outcome.TRUNCATION, Cause.BUDGET),
        "repetition": (Outcome.TRUNCATION, Cause.RUNAWAY),
        "content_filter": (Outcome.REFUSED, Cause.CONTENT_FILTER),
        "refusal": (Outcome.REFUSED, Cause.REFUSAL),
        "abort": (Outcome.TRANSPORT, Cause.ABORTED),
        "cancelled": (Outcome.TRANSPORT, Cause.ABORTED),
        "error": (Outcome.TRANSPORT, Cause.ABORTED),
        "failed": (Outcome.TRANSPORT, Cause.ABORTED),
        "in_progress": (Outcome.TRANSPORT, Cause.STREAM_INCOMPLETE),
        "queued": (Outcome.TRANSPORT, Cause.STREAM_INCOMPLETE),
    }
)
"""The other finish reasons. A reason in neither table counts as ``stop``, and is recorded unchanged."""

AT_MODEL_LIMIT = frozenset({"model_length", "model_context_window_exceeded"})
"""Of these, the reasons for a full context window, regardless of the budget."""

_CUT = MappingProxyType(
    {
        Cause.BUDGET: "the answer was cut off",
        Cause.REASONING: "the reasoning used up the budget before the answer began: cut off",
        Cause.RUNAWAY: "the answer repeated itself until it was cut off",
    }
)

# No legitimate answer has a number this long, this much white space, or this much of one pattern.
_DIGITS, _SPACE = re.compile(r"[0-9]{40}"), re.compile(r"[ \t\r\n]{60}")
_RUNAWAY_LENGTH = 60
_RUNAWAY_TIMES = 4
_TAIL = 4096
_PROBE = 64  # characters, by which longer patterns are found
_MOST_PROBES = 50
_DECODER = json.JSONDecoder()
_BRACKET = re.compile(r"[{\[]")
_BETWEEN = re.compile(r"[\s,;`]*(?:json\b)?[\s,;`]*")
_FIRST_NAME = re.compile(r'\{\s*"(?:[^"\\]|\\.)*"\s*:')
_OPEN_THOUGHT = re.compile(r"\s*<(think|thinking|reasoning)>(?!.*</\1>)", re.DOTALL)


def receive(arrival: Arrival, *, schema_known_bad: bool = False) -> Reading:
    """The arrival as one completion, for any API and shape; or why there is none. Never raises.

    The readable part of a lost answer is included.
    """
    match arrival:
        case Lost(cause=cause, detail=detail, body=body, streamed=streamed):
            partial = read_body(body, streamed=streamed).completion
            return Reading(partial, Rejection.of(Outcome.TRANSPORT, cause, detail or f"no answer arrived: {cause}"))
        case Received(status=status, body=body, streamed=streamed) if 200 <= status <= 299:
            return read_body(body, streamed=streamed)
        case Received(status=status, body=body):
            return Reading(rejection=rejection_of(status, error_of(body), schema_known_bad=schema_known_bad))


def check(reading: Reading, max_completion_tokens: int) -> Rejection | None:
    """Why there is no complete answer, by the engine's error or by its finish reason; None if there is one."""
    if reading.rejection is not None:
        return reading.rejection
    completion = reading.completion
    word = completion.finish_reason
    if word is None:
        return Rejection.of(Outcome.TRANSPORT, Cause.STREAM_INCOMPLETE, "the answer ended without a finish reason")
    outcome, cause = ENDINGS.get(word.lower(), (None, None))
    if outcome is Outcome.TRANSPORT:
        return Rejection.of(outcome, cause, f"the engine gave up on the request: {word}")
    if cut := _truncation(completion, word.lower(), max_completion_tokens):
        return cut
    if completion.refusal is not None and (refusal := completion.refusal.strip()):
        return Rejection.of(Outcome.REFUSED, Cause.REFUSAL, f"the model declined: {refusal[:500]}")
    return Rejection.of(outcome, cause, f"the answer was declined: {word}") if outcome is Outcome.REFUSED else None


def _truncation(completion: Completion, word: str, max_completion_tokens: int) -> Rejection | None:
    """Cut off: by the engine's word, or by tokens at the budget under another word than ``stop``."""
    outcome, cause = ENDINGS.get(word, (None, None))
    if cause is Cause.RUNAWAY and not _only_reasons(completion):
        return Rejection.of(Outcome.TRUNCATION, cause, "the engine stopped an answer that repeated itself")
    used = completion.usage.completion_tokens if completion.usage is not None else None
    at_budget = used is not None and used >= max_completion_tokens and word not in STOPS
    if outcome is not Outcome.TRUNCATION and not at_budget:
        return None
    spent = "by the budget" if used is None else f"after {used} tokens, with a budget of {max_completion_tokens}"
    cause = _why_cut(completion)
    return Rejection.of(Outcome.TRUNCATION, cause, f"{_CUT[cause]} {spent}")


def _why_cut(completion: Completion) -> Cause:
    text = _text_of(completion)
    if not text.strip() and not completion.tool_calls and not completion.refusal:
        return Cause.REASONING
    if _OPEN_THOUGHT.match(text):
        return Cause.REASONING
    return Cause.RUNAWAY if is_runaway(text) else Cause.BUDGET


def _only_reasons(completion: Completion) -> bool:
    return completion.reasoning is not None and _why_cut(completion) is Cause.REASONING


def _text_of(completion: Completion) -> str:
    return completion.content.decode("utf-8", "replace") if completion.content is not None else ""


def tells_nothing(arrival: Arrival) -> bool:
    """Whether an engine answered HTTP 500 without a message, as for a refused schema or an internal error.

    Only ``schema_known_bad`` can tell the two apart.
    """
    return arrival.status == 500 and receive(arrival) != receive(arrival, schema_known_bad=True)


def is_runaway(text: str) -> bool:
    """Whether a text repeats, or ends in a long run of digits."""
    return _DIGITS.fullmatch(text[-40:]) is not None or repeats(text)


def repeats(text: str) -> bool:
    """Whether a text ends in white space or in one pattern over and over, or begins with a whole document and goes on
    with more of the same. In linear time."""
    if _SPACE.fullmatch(text[-60:]) or _short_pattern(text[-_TAIL:]):
        return True
    return (len(text) > _TAIL and _long_pattern(text)) or _same_again(text)


def _short_pattern(tail: str) -> bool:
    # The prefix function of the reversed tail: a run that ends the text begins its mirror image, and a prefix of
    # length n whose longest border is b has the period n - b.
    mirrored = tail[::-1]
    borders = [0] * len(mirrored)
    border = 0
    for index in range(1, len(mirrored)):
        while border and mirrored[index] != mirrored[border]:
            border = borders[border - 1]
        border += mirrored[index] == mirrored[border]
        borders[index] = border
        length, period = index + 1, index + 1 - border
        if length >= _RUNAWAY_LENGTH and length >= period * _RUNAWAY_TIMES:
            return True
    return False


def _long_pattern(text: str) -> bool:
    """A pattern that the tail is too short for: its last characters stand where it ended before."""
    probe, end = text[-_PROBE:], len(text)
    for _ in range(_MOST_PROBES):
        end = text.rfind(probe, 0, end - 1) + len(probe)
        period = len(text) - end
        length = period * _RUNAWAY_TIMES
        if length > len(text):
            return False
        if text[-length:-period] == text[period - length :]:
            return True
    return False


def _same_again(text: str) -> bool:
    """A whole document, and then the same document, another with the same first field, or the beginning of one."""
    start = opening.start() if (opening := _BRACKET.search(text)) else len(text)
    try:
        _, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return False
    document, between = text[start:end], _BETWEEN.match(text, end)
    rest = text[between.end() if between else end :]
    first, again = _FIRST_NAME.match(document), _FIRST_NAME.match(rest)
    if rest[: len(document)] == document[: len(rest)]:
        return bool(rest)
    if first is None or again is None:
        return False
    return first.group().split() == again.group().split()
