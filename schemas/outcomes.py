"""The result of an attempt: one outcome, at most one cause, four rungs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class Outcome(StrEnum):
    """The result of one attempt. Apart from ``valid``, the members are in their order of precedence."""

    VALID = "valid"
    TRANSPORT = "transport"
    TRUNCATION = "truncation"
    SCHEMA_REJECTED = "schema_rejected"
    REQUEST_REJECTED = "request_rejected"
    REFUSED = "refused"
    EMPTY = "empty"
    PARSE_FAILURE = "parse_failure"
    SCHEMA_VIOLATION = "schema_violation"
    SEMANTIC = "semantic"


class Cause(StrEnum):
    """The closed causes. A ``schema_violation`` is caused by a keyword and a ``semantic`` by a rule's id instead."""

    CONNECT = "connect"
    TIMEOUT = "timeout"
    DISCONNECTED = "disconnected"
    HTTP_429 = "http_429"
    HTTP_503 = "http_503"
    HTTP_5XX = "http_5xx"
    ABORTED = "aborted"
    MALFORMED_BODY = "malformed_body"
    STREAM_ERROR = "stream_error"
    STREAM_INCOMPLETE = "stream_incomplete"
    ABANDONED = "abandoned"
    BUDGET = "budget"
    REASONING = "reasoning"
    RUNAWAY = "runaway"
    CONTEXT_LENGTH = "context_length"
    BAD_REQUEST = "bad_request"
    AUTH = "auth"
    REFUSAL = "refusal"
    CONTENT_FILTER = "content_filter"
    NO_CONTENT = "no_content"
    CONTENT_IN_REASONING = "content_in_reasoning"
    UNEXPECTED_TOOL_CALLS = "unexpected_tool_calls"
    MARKDOWN_FENCE = "markdown_fence"
    PROSE_BEFORE = "prose_before"
    PROSE_AFTER = "prose_after"
    QUOTES = "quotes"
    TRAILING_COMMA = "trailing_comma"
    TOOL_CALL_MARKUP = "tool_call_markup"
    DUPLICATE_KEY = "duplicate_key"
    NON_FINITE_NUMBER = "non_finite_number"
    NUMBER_TOO_LARGE = "number_too_large"
    BAD_UNICODE = "bad_unicode"
    TOO_DEEP = "too_deep"
    TOO_LARGE = "too_large"
    SYNTAX = "syntax"


CAUSES: MappingProxyType[Outcome, tuple[Cause, ...]] = MappingProxyType(
    {
        Outcome.TRANSPORT: (
            Cause.CONNECT,
            Cause.TIMEOUT,
            Cause.DISCONNECTED,
            Cause.HTTP_429,
            Cause.HTTP_503,
            Cause.HTTP_5XX,
            Cause.ABORTED,
            Cause.MALFORMED_BODY,
            Cause.STREAM_ERROR,
            Cause.STREAM_INCOMPLETE,
            Cause.ABANDONED,
        ),
        Outcome.TRUNCATION: (Cause.BUDGET, Cause.REASONING, Cause.RUNAWAY),
        Outcome.REQUEST_REJECTED: (Cause.CONTEXT_LENGTH, Cause.BAD_REQUEST, Cause.AUTH),
        Outcome.REFUSED: (Cause.REFUSAL, Cause.CONTENT_FILTER),
        Outcome.EMPTY: (Cause.NO_CONTENT, Cause.CONTENT_IN_REASONING, Cause.UNEXPECTED_TOOL_CALLS),
        Outcome.PARSE_FAILURE: (
            Cause.MARKDOWN_FENCE,
            Cause.PROSE_BEFORE,
            Cause.PROSE_AFTER,
            Cause.QUOTES,
            Cause.TRAILING_COMMA,
            Cause.TOOL_CALL_MARKUP,
            Cause.DUPLICATE_KEY,
            Cause.NON_FINITE_NUMBER,
            Cause.NUMBER_TOO_LARGE,
            Cause.BAD_UNICODE,
            Cause.TOO_DEEP,
            Cause.TOO_LARGE,
            Cause.SYNTAX,
        ),
    }
)
"""The causes that an outcome may have. The other outcomes have none, or keywords and rule ids."""


class RungState(StrEnum):
    """The state of one rung."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_REACHED = "not_reached"


@dataclass(frozen=True, slots=True)
class Rungs:
    """The four rungs of the ladder, in order."""

    termination: RungState = RungState.NOT_REACHED
    parse: RungState = RungState.NOT_REACHED
    schema: RungState = RungState.NOT_REACHED
    semantic: RungState = RungState.NOT_REACHED

    @classmethod
    def climbed(cls, passed: int, *, fell: bool = True) -> Rungs:
        """``passed`` rungs held; the next one failed, or (``fell=False``) was never tried. 4 means all held."""
        states = [RungState.PASSED] * passed + [RungState.FAILED if fell else RungState.NOT_REACHED]
        return cls(*states[:4])
