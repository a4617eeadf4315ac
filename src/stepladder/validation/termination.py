"""The first rung: did a complete answer arrive? Told by termination metadata alone, never by the look of the text."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING

from stepladder.schemas.answer import Lost, Received
from stepladder.schemas.outcomes import Cause, Outcome
from stepladder.validation.bodies import Reading, read_body
from stepladder.validation.enginewords import error_of, refusal
from stepladder.validation.failing import Failing

if TYPE_CHECKING:
    from stepladder.schemas.answer import Arrival, Completion

STOPS = frozenset({"stop", "eos", "end_turn", "stop_sequence", "completed"})
"""The words for an answer that ended by itself, in the vocabularies of Chat Completions, Responses and Messages."""

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
"""What the other words mean. A word that stands in neither table counts as ``stop``, and is recorded as it came."""

AT_MODEL_LIMIT = frozenset({"model_length", "model_context_window_exceeded"})
"""Of these, the words of an engine that has no more room whatever the budget is."""

_CUT = MappingProxyType(
    {
        Cause.BUDGET: "the answer was cut off",
        Cause.REASONING: "the reasoning used the budget up before the answer began: cut off",
        Cause.RUNAWAY: "the answer repeated itself until it was cut off",
    }
)

# A number this long is no number that anybody asked for; nor is that much white space, or that much of one pattern.
_RUNAWAY_DIGITS = re.compile(r"[0-9]{40}\Z")
_RUNAWAY_SPACE = re.compile(r"[ \t\r\n]{60}\Z")
_RUNAWAY_LENGTH = 60
_RUNAWAY_TIMES = 4
_TAIL = 4096
_OPEN_THOUGHT = re.compile(r"\s*<(think|thinking|reasoning)>(?!.*</\1>)", re.DOTALL)


def receive(arrival: Arrival, *, schema_known_bad: bool = False) -> Reading:
    """What came back, as one completion, whichever API and shape it came in; or why there is none. Never raises.

    Of a lost answer whatever can be read is kept.
    """
    match arrival:
        case Lost(cause=cause, detail=detail, body=body, streamed=streamed):
            partial = read_body(body, streamed=streamed).completion
            return Reading(partial, Failing(Outcome.TRANSPORT, cause, detail or f"no answer arrived: {cause}"))
        case Received(status=status, body=body, streamed=streamed) if 200 <= status <= 299:
            return read_body(body, streamed=streamed)
        case Received(status=status, body=body):
            return Reading(failing=refusal(status, error_of(body), schema_known_bad=schema_known_bad))


def transport(reading: Reading) -> Failing | None:
    """No complete answer arrived."""
    if reading.failing is not None:
        return reading.failing if reading.failing.outcome is Outcome.TRANSPORT else None
    word = reading.completion.finish_reason
    if word is None:
        return Failing(Outcome.TRANSPORT, Cause.STREAM_INCOMPLETE, "the answer ended without a finish reason")
    return _ending(word, Outcome.TRANSPORT, f"the engine gave the request up: {word}")


def truncation(reading: Reading, max_completion_tokens: int) -> Failing | None:
    """Cut off: by the engine's word, or by tokens at the budget under another word than ``stop``."""
    completion = reading.completion
    if reading.failing is not None or completion.finish_reason is None:
        return None
    word = completion.finish_reason.lower()
    used = completion.usage.completion_tokens if completion.usage is not None else None
    outcome, cause = ENDINGS.get(word, (None, None))
    if cause is Cause.RUNAWAY:
        return Failing(Outcome.TRUNCATION, cause, "the engine stopped an answer that repeated itself")
    at_budget = used is not None and used >= max_completion_tokens and word not in STOPS
    if outcome is not Outcome.TRUNCATION and not at_budget:
        return None
    spent = f"after {used} tokens, the budget being {max_completion_tokens}" if used is not None else "by the budget"
    cause = _why_cut(completion)
    return Failing(Outcome.TRUNCATION, cause, f"{_CUT[cause]} {spent}")


def rejected(reading: Reading, outcome: Outcome) -> Failing | None:
    """The engine refused the schema (``schema_rejected``) or the request (``request_rejected``)."""
    return reading.failing if reading.failing is not None and reading.failing.outcome is outcome else None


def refused(reading: Reading) -> Failing | None:
    """The model or a filter declined."""
    completion = reading.completion
    if completion.refusal is not None and completion.refusal.strip():
        return Failing(Outcome.REFUSED, Cause.REFUSAL, f"the model declined: {completion.refusal.strip()[:500]}")
    word = completion.finish_reason or ""
    return _ending(word, Outcome.REFUSED, f"the answer was declined: {word}")


def _ending(word: str, outcome: Outcome, reason: str) -> Failing | None:
    ends, cause = ENDINGS.get(word.lower(), (None, None))
    return Failing(outcome, cause, reason) if ends is outcome else None


def _why_cut(completion: Completion) -> Cause:
    text = completion.content.decode("utf-8", "replace") if completion.content is not None else ""
    if is_runaway(text) or (not text.strip() and is_runaway(completion.reasoning or "")):
        return Cause.RUNAWAY
    began = bool(text.strip() or completion.tool_calls or completion.refusal)
    if not began or _OPEN_THOUGHT.match(text):
        return Cause.REASONING
    return Cause.BUDGET


def tells_nothing(arrival: Arrival) -> bool:
    """Whether an engine said HTTP 500 and no word, as some do both to a schema that they refuse and of their own fault.

    ``schema_known_bad`` then decides between the two, and nothing else can.
    """
    return arrival.status == 500 and receive(arrival) != receive(arrival, schema_known_bad=True)


def is_runaway(text: str) -> bool:
    """Whether a text ends in a long run of digits or white space, or in one short pattern over and over.

    Looks at the last 4,096 characters, in time linear in them. A larger budget would only buy more of the same.
    """
    tail = text[-_TAIL:]
    if _RUNAWAY_DIGITS.search(tail) or _RUNAWAY_SPACE.search(tail):
        return True
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
