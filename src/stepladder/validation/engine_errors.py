"""Errors of engines: the error inside a body, and what its status and message mean."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from stepladder.schemas.outcomes import Cause, Outcome
from stepladder.validation.rejection import Rejection
from stepladder.validation.sse import events, looks_like_events

MAX_MESSAGE = 2000
"""Characters of an engine's message that are kept; some quote the whole request."""

# Messages of xgrammar, guidance, outlines and lm-format-enforcer behind vLLM, of llama.cpp and of SGLang. An error
# about something else may name a backend too, so a backend's name alone proves nothing.
_SCHEMA_REFUSED = re.compile(
    r"""features?\ not\ supported\ by
    |failed\ to\ (?:transform|convert|compile|parse|build|generate|initiali[sz]e)\b[^.]{0,60}\b(?:grammar|schema|regex)
    |(?:grammar|schema)\ (?:is\ |was\ )?(?:invalid|unsupported|not\ supported|not\ valid|too\ complex|too\ large)
    |invalid\ (?:json\ )?(?:grammar|schema)
    |(?:unsupported|unrecogni[sz]ed|unsatisfiable)\ (?:json\ )?schema
    |(?:unsupported|unknown|unexpected)\b[^.]{0,60}\bin\ (?:the\ |json\ )*schema
    |grammar\ (?:error|compilation)
    |unimplemented\ keys
    |schema\ conversion\ failed
    |error\ resolving\ ref
    |cannot\ parse\ schema
    |regex\ (?:parsing\ error|compilation|uses\ unsupported|does\ not\ have\ an?\ anchored)
    |error\ parsing\ regex
    |structured\ outputs?\ (?:json\ ?schema|backend\ does\ not\ support)
    |lm[ -]format[ -]enforcer\b[^.]{0,60}\bnot\ support""",
    re.VERBOSE | re.IGNORECASE,
)
_TOO_LONG = re.compile(
    r"""context[ _](?:length|size|window)
    |maximum\ context
    |max(?:imum)?[ _]model[ _]len
    |max_total_tokens
    |(?:prompt|input)\ (?:is\ )?too\ long
    |too\ many\ (?:input\ |prompt\ )?tokens
    |reduce\ the\ length\ of""",
    re.VERBOSE | re.IGNORECASE,
)
_WORDLESS = re.compile(r"(?:internal server error|bad request)?\W*", re.IGNORECASE)
_STATUS = re.compile("[45][0-9]{2}")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]+")


@dataclass(frozen=True, slots=True)
class EngineError:
    """The engine's own message. ``code`` is a status inside the body, which may differ from HTTP's."""

    message: str
    kind: str = ""
    code: int | None = None


def error_in(value: Any) -> EngineError | None:
    """The error that a parsed body contains instead of an answer or with it, in any of the usual shapes."""
    if not isinstance(value, dict):
        return None
    found = value.get("error")
    if not found and (choices := value.get("choices")) and isinstance(choices, list):
        found = choices[0].get("error") if isinstance(choices[0], dict) else None
    if not found and (value.get("object") == "error" or value.get("type") == "error"):
        found = value
    if isinstance(found, dict) and found:
        code = next((found[name] for name in ("code", "status_code", "status") if _is_status(found.get(name))), None)
        kind = " ".join(str(found[name]) for name in ("type", "code", "param") if isinstance(found.get(name), str))
        return EngineError(_clean(found.get("message")), kind, int(code) if code is not None else None)
    return EngineError(_clean(found)) if isinstance(found, str) and found else None


def error_of(body: bytes) -> EngineError:
    """The error in the body of a response with an error status, be it JSON, an event or a proxy's page."""
    parts = [event.data for event in events(body)] if looks_like_events(body) else [body]
    try:
        value = json.loads(parts[0]) if parts else None
        if (error := error_in(value)) is not None:
            return error
        if isinstance(value, dict):
            return EngineError(_clean(value.get("message") or value.get("detail")))
        return EngineError(_clean(value))
    except (ValueError, RecursionError):
        return EngineError(_clean(body.decode("utf-8", "replace")))


def rejection_of(status: int, error: EngineError, *, schema_known_bad: bool) -> Rejection:
    """What an error status means.

    ``schema_known_bad``: the engine refused this schema while it answered a known-good one. Some engines send the same
    500 without a message for a refused schema and for an internal error, and only this distinguishes them.
    """
    too_long = _TOO_LONG.search(f"{error.message} {error.kind}") is not None
    not_internal = status != 500 and not too_long  # a 500 with a message is an internal error
    refuses_schema = _SCHEMA_REFUSED.search(error.message) is not None or (
        schema_known_bad and (not_internal or _WORDLESS.fullmatch(error.message) is not None)
    )
    outcome, cause = _meaning(status, refuses_schema=refuses_schema, too_long=too_long)
    return Rejection.of(outcome, cause, error.message or f"the engine answered HTTP {status} without a reason")


def _meaning(status: int, *, refuses_schema: bool, too_long: bool) -> tuple[Outcome, Cause | None]:
    match status:
        case 408:
            return Outcome.TRANSPORT, Cause.TIMEOUT
        case 429:
            return Outcome.TRANSPORT, Cause.HTTP_429
        case 499:
            return Outcome.TRANSPORT, Cause.DISCONNECTED
        case 503:
            return Outcome.TRANSPORT, Cause.HTTP_503
        case 401 | 403 | 407:
            return Outcome.REQUEST_REJECTED, Cause.AUTH
        case 400 | 422 | 500 if refuses_schema:
            return Outcome.SCHEMA_REJECTED, None
        case 413:
            return Outcome.REQUEST_REJECTED, Cause.CONTEXT_LENGTH
        case _ if 500 <= status <= 599:
            return Outcome.TRANSPORT, Cause.HTTP_5XX
        case _ if 300 <= status <= 499:
            return Outcome.REQUEST_REJECTED, Cause.CONTEXT_LENGTH if too_long else Cause.BAD_REQUEST
    return Outcome.TRANSPORT, Cause.MALFORMED_BODY


def _is_status(value: Any) -> bool:
    if isinstance(value, str):
        return _STATUS.fullmatch(value) is not None
    return isinstance(value, int) and 400 <= value <= 599


def _clean(message: Any) -> str:
    """One message as plain text; lists of messages (``detail`` of a validator) are joined."""
    if isinstance(message, str):
        text = message
    elif isinstance(message, dict):
        text = str(message.get("msg") or message.get("message") or json.dumps(message))
    elif isinstance(message, list):
        text = "; ".join(_clean(item) for item in message[:10])
    else:
        text = "" if message is None else str(message)
    text = _CONTROL.sub(" ", text).strip()
    return text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]}…"
