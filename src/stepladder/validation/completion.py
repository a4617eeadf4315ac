"""Response bodies of three APIs, whole or streamed, read into one ``Completion``.

Chat Completions, Responses and Anthropic's Messages differ in shape and vocabulary. The body itself shows its shape;
finish reasons are kept as they are, and ``termination`` interprets them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import jiter

from stepladder.schemas.answer import Completion, Usage
from stepladder.schemas.outcomes import Cause, Outcome
from stepladder.validation.engine_errors import error_in, error_of, rejection_of
from stepladder.validation.rejection import Rejection
from stepladder.validation.sse import events, looks_like_events


@dataclass(frozen=True, slots=True)
class Reading:
    """What could be read, and, if that is not an answer, why. A partial completion is kept."""

    completion: Completion = field(default_factory=Completion)
    rejection: Rejection | None = None


def read_body(body: bytes, *, streamed: bool) -> Reading:
    """Reads the body of a successful response. Never raises."""
    try:
        if body.startswith(b"{") or not (streamed or looks_like_events(body)):
            return _whole(body)
        begins_as_json = body.lstrip().startswith((b"{", b"["))
        return _whole(body) if begins_as_json else _stream(body)
    except RecursionError:
        return _malformed("the body is nested too deeply")


def _whole(body: bytes) -> Reading:
    try:
        value = read_json(body)
    except ValueError as problem:
        return _malformed(f"the body is not JSON, or is incomplete: {problem}")
    if not isinstance(value, dict):
        return _malformed("the body is JSON, but not an object")
    draft = _Draft()
    understood = draft.take_whole(value)
    if (error := error_in(value)) is not None:
        if error.code is None:
            reason = f"the engine reported success, but the body is an error: {error.message}"
            return Reading(draft.completion(), Rejection.of(Outcome.TRANSPORT, Cause.MALFORMED_BODY, reason))
        return Reading(draft.completion(), rejection_of(error.code, error, schema_known_bad=False))
    return Reading(draft.completion()) if understood else _malformed("the body contains no completion")


def _stream(body: bytes) -> Reading:
    draft = _Draft()
    for event in events(body):
        if event.data.strip() == b"[DONE]":
            break
        if event.name == "error":
            return _stream_error(draft, error_of(event.data).message)
        try:
            chunk = read_json(event.data)
        except ValueError:
            if event.cut:
                break
            return _malformed("the stream contains an event that is not JSON", draft)
        if not isinstance(chunk, dict):
            return _malformed("the stream contains an event that is not an object", draft)
        error = error_in(chunk) or ("response" in chunk and error_in(chunk["response"])) or None
        if error is not None:
            return _stream_error(draft, error.message)
        draft.take_chunk(chunk)
    return Reading(draft.completion())


def read_json(data: bytes) -> Any:
    """Like ``json.loads``, which decides about everything that the faster ``jiter`` does not accept.

    What both accept they read alike: the last of two values with one name, and 1e400 as infinity.
    """
    try:
        return jiter.from_json(data, allow_inf_nan=False, cache_mode="keys")
    except ValueError:
        return json.loads(data)


def _malformed(reason: str, draft: _Draft | None = None) -> Reading:
    completion = draft.completion() if draft else Completion()
    return Reading(completion, Rejection.of(Outcome.TRANSPORT, Cause.MALFORMED_BODY, reason))


def _stream_error(draft: _Draft, message: str) -> Reading:
    reason = f"the engine ended the stream with an error: {message or 'no reason given'}"
    return Reading(draft.completion(), Rejection.of(Outcome.TRANSPORT, Cause.STREAM_ERROR, reason))


MOST_TOKENS = 2**31 - 1
"""A larger count is ignored: no request has as many, and the database column could not store it."""

_COUNTS = (
    ("prompt_tokens", "prompt"),
    ("input_tokens", "prompt"),
    ("completion_tokens", "completion"),
    ("output_tokens", "completion"),
)


@dataclass(slots=True)
class _Draft:
    """A completion under construction."""

    content: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    refusal: list[str] = field(default_factory=list)
    finish: str | None = None
    tool_calls: bool = False
    usage: dict[str, int] = field(default_factory=dict)
    model: str | None = None
    fingerprint: str | None = None

    def completion(self) -> Completion:
        counted = Usage(self.usage.get("prompt", 0), self.usage.get("completion", 0)) if self.usage else None
        return Completion(
            # An unpaired surrogate is left for the parse rung to report; every other byte stays as it came.
            content="".join(self.content).encode("utf-8", "surrogatepass") if self.content else None,
            reasoning="".join(self.reasoning) if self.reasoning else None,
            refusal="".join(self.refusal) if self.refusal else None,
            finish_reason=self.finish,
            tool_calls=self.tool_calls,
            usage=counted,
            model=self.model,
            fingerprint=self.fingerprint,
        )

    def take_whole(self, value: dict[str, Any]) -> bool:
        """Reads a whole body; False if its shape is unknown."""
        self._take_head(value)
        if "choices" in value:
            return self._take_choices(value["choices"], "message")
        if isinstance(value.get("output"), list):
            self._take_response(value)
            return True
        if value.get("type") == "message" and "content" in value:
            self._take_finish(value.get("stop_reason"))
            return self._take_text(value["content"])
        return False

    def take_chunk(self, chunk: dict[str, Any]) -> None:
        """Reads one event of a stream. Events about anything but the answer are ignored."""
        kind = chunk.get("type")
        if "choices" in chunk:
            self._take_head(chunk)
            self._take_choices(chunk["choices"], "delta")
        elif isinstance(kind, str) and kind.startswith("response."):
            self._take_response_event(kind, chunk)
        elif isinstance(kind, str):
            self._take_message_event(kind, chunk)

    def _take_head(self, value: dict[str, Any]) -> None:
        self.model = self.model or _word(value.get("model"))
        self.fingerprint = self.fingerprint or _word(value.get("system_fingerprint"))
        self._take_usage(value.get("usage"))

    def _take_usage(self, usage: Any) -> None:
        if not isinstance(usage, dict):
            return
        for name, ours in _COUNTS:
            if isinstance(count := usage.get(name), int) and 0 <= count <= MOST_TOKENS:
                self.usage[ours] = int(count)

    def _take_finish(self, word: Any) -> None:
        self.finish = _word(word) or self.finish

    def _take_choices(self, choices: Any, held: str) -> bool:
        """The first choice of Chat Completions; ``held`` is the field with its text."""
        if not isinstance(choices, list):
            return False
        for choice in choices:
            if not isinstance(choice, dict) or choice.get("index") not in (0, None):
                continue
            self._take_finish(choice.get("finish_reason"))
            message = choice.get(held) or {}
            if not isinstance(message, dict):
                return False
            for name in ("reasoning", "reasoning_content"):
                if isinstance(text := message.get(name), str) and text:
                    self.reasoning.append(text)
                    break
            if isinstance(text := message.get("refusal"), str):
                self.refusal.append(text)
            call = message.get("function_call")
            called = isinstance(call, dict) and any(call.values())
            self.tool_calls = self.tool_calls or bool(message.get("tool_calls")) or called
            return self._take_text(message.get("content"))
        return False

    def _take_text(self, content: Any) -> bool:
        """Content is a string, null, or a list of typed parts. False for anything else."""
        if isinstance(content, str):
            self.content.append(content)
        elif isinstance(content, list):
            for part in content:
                self._take_part(part)
        return content is None or isinstance(content, (str, list))

    def _take_part(self, part: Any) -> None:
        if isinstance(part, str):
            self.content.append(part)
        if not isinstance(part, dict):
            return
        match part.get("type"):
            case "text" | "output_text" | "text_delta":
                self.content.append(_text_of(part.get("text")))
            case "thinking" | "thinking_delta":
                self.reasoning.append(_text_of(part.get("thinking")))
            case "reasoning" | "reasoning_text" | "summary_text":
                self.reasoning.append(_text_of(part.get("text") or part.get("content") or part.get("summary")))
            case "refusal":
                self.refusal.append(_text_of(part.get("refusal")))
            case "message":
                self._take_text(part.get("content"))
            case "tool_use" | "tool_call" | "function_call" | "custom_tool_call":
                self.tool_calls = True

    def _take_response(self, value: dict[str, Any]) -> None:
        """A whole body of the Responses API. The reason of an incomplete one, if given, is its finish reason."""
        for item in value.get("output") or ():
            self._take_part(item)
        details = value.get("incomplete_details")
        reason = _word(details.get("reason")) if isinstance(details, dict) else None
        self._take_finish(reason if value.get("status") == "incomplete" and reason else value.get("status"))

    def _take_response_event(self, kind: str, chunk: dict[str, Any]) -> None:
        whole = chunk.get("response")
        if isinstance(whole, dict) and kind.split(".")[1] in ("completed", "incomplete", "failed", "cancelled"):
            # The last event repeats the whole answer and replaces what was pieced together.
            self.content, self.reasoning, self.refusal = [], [], []
            self._take_head(whole)
            self._take_response(whole)
        elif isinstance(text := chunk.get("delta"), str):
            match kind:
                case "response.output_text.delta":
                    self.content.append(text)
                case "response.refusal.delta":
                    self.refusal.append(text)
                case "response.reasoning_text.delta" | "response.reasoning_summary_text.delta":
                    self.reasoning.append(text)

    def _take_message_event(self, kind: str, chunk: dict[str, Any]) -> None:
        """An event of Anthropic's Messages."""
        match kind, chunk:
            case "message_start", {"message": dict() as message}:
                self._take_head(message)
            case "content_block_start", {"content_block": block}:
                self._take_part(block)
            case "content_block_delta", {"delta": delta}:
                self._take_part(delta)
            case "message_delta", {"delta": dict() as delta}:
                self._take_finish(delta.get("stop_reason"))
                self._take_usage(chunk.get("usage"))


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


def _text_of(value: Any) -> str:
    """The text of a part, which some servers wrap in further parts."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return _text_of(value.get("text"))
    return "".join(_text_of(item) for item in value) if isinstance(value, list) else ""
