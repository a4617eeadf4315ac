"""A scripted reply as the bytes that a real engine would send, and how the connection ends."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, assert_never

from stepladder.testing.script import Answer, Fault, RecordedRequest, Reply

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepladder.schemas.jsontypes import Json

CREATED = 1_795_970_000
"""Constant, so that tests can compare answers."""

SLOW_PAUSE_S = 0.05


class Ending(StrEnum):
    """What happens to the connection after the last piece."""

    COMPLETE = "complete"
    CLOSE = "close"
    RESET = "reset"
    HANG = "hang"


@dataclass(frozen=True, slots=True)
class WireReply:
    """What the server sends: headers (none if ``status`` is None), then pieces, after ``delay_s`` seconds.

    ``length`` is the Content-Length; None means a chunked body.
    """

    status: int | None = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    pieces: Sequence[bytes] = ()
    length: int | None = None
    delay_s: float = 0.0
    pause_s: float = 0.0
    ending: Ending = Ending.COMPLETE


def wire_reply(reply: Reply, request: RecordedRequest, *, model: str) -> WireReply:
    if isinstance(reply, Fault):
        return _faulty(reply, request, model)
    if isinstance(reply, Answer):
        return _answered(reply, request, model)
    headers = {"Content-Type": reply.content_type, **reply.headers}
    return WireReply(reply.status, headers, (reply.body,), len(reply.body), reply.delay_s)


def error(status: int, message: str, headers: Mapping[str, str] | None = None, delay_s: float = 0.0) -> WireReply:
    """An error in vLLM's format."""
    body = _dump({"error": _error(status, message)})
    return WireReply(status, {"Content-Type": "application/json", **(headers or {})}, (body,), len(body), delay_s)


def page(body: Json) -> WireReply:
    text = _dump(body)
    return WireReply(200, {"Content-Type": "application/json"}, (text,), len(text))


def _answered(answer: Answer, request: RecordedRequest, model: str) -> WireReply:
    if answer.status >= 400:
        return error(answer.status, answer.text or "", answer.headers, answer.delay_s)
    if request.streamed:
        headers = {"Content-Type": "text/event-stream; charset=utf-8", **answer.headers}
        pieces = _events(answer, request, model)
        return WireReply(answer.status, headers, pieces, None, answer.delay_s, answer.chunk_delay_s)
    reply = page(_whole(answer, request, model))
    headers = {**reply.headers, **answer.headers}
    return replace(reply, status=answer.status, headers=headers, delay_s=answer.delay_s)


def _faulty(fault: Fault, request: RecordedRequest, model: str) -> WireReply:
    whole = _answered(Answer(fault.content), request, model)
    match fault.kind:
        case "refuse" | "reset_before":
            return WireReply(None, ending=Ending.RESET)
        case "hang":
            return WireReply(None, ending=Ending.HANG)
        case "reset_mid":
            return replace(whole, pieces=_first_half(whole.pieces), ending=Ending.RESET)
        case "close_mid_stream":
            return replace(whole, pieces=_first_half(whole.pieces), ending=Ending.CLOSE)
        case "stall":
            return replace(whole, pieces=_first_half(whole.pieces), ending=Ending.HANG)
        case "stream_error" if request.streamed:
            event = _event({"error": _error(500, "EngineCore encountered an issue.")})
            return replace(whole, pieces=(*_first_half(whole.pieces), event, _DONE))
        case "stream_error":
            return error(500, "EngineCore encountered an issue.")
        case "no_finish_reason":
            return _answered(Answer(fault.content, finish_reason=None), request, model)
        case "no_done":
            return replace(whole, pieces=[piece for piece in whole.pieces if piece != _DONE])
        case "slow":
            pieces = whole.pieces if request.streamed else (*_first_half(whole.pieces), *_second_half(whole.pieces))
            return replace(whole, pieces=pieces, pause_s=SLOW_PAUSE_S if fault.delay_s is None else fault.delay_s)
        case _:
            assert_never(fault.kind)


def _whole(answer: Answer, request: RecordedRequest, model: str) -> Json:
    message: dict[str, Json] = {
        "role": "assistant",
        "content": answer.text,
        "refusal": answer.refusal,
        "tool_calls": answer.tool_calls,
        "reasoning": answer.reasoning,
    }
    choice: dict[str, Json] = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": answer.finish_reason,
        "stop_reason": None,
    }
    return {**_head("chat.completion", request, model), "choices": [choice], "usage": _usage(answer, request)}


def _events(answer: Answer, request: RecordedRequest, model: str) -> tuple[bytes, ...]:
    """The stream as vLLM sends it: role, text piece by piece, finish reason, usage if requested, ``[DONE]``."""
    head = _head("chat.completion.chunk", request, model)

    def chunk(delta: Mapping[str, Json], finish_reason: str | None = None) -> bytes:
        choice: dict[str, Json] = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return _event({**head, "choices": [choice]})

    def deltas(name: str, text: str | None) -> list[bytes]:
        step = max(1, answer.chunk_chars)
        return [chunk({name: (text or "")[at : at + step]}) for at in range(0, len(text or ""), step)]

    events = [chunk({"role": "assistant", "content": ""})]
    events += deltas("reasoning", answer.reasoning)
    events += deltas("content", answer.text)
    events += deltas("refusal", answer.refusal)
    events += [chunk({"tool_calls": [call]}) for call in answer.tool_calls]
    if answer.finish_reason is not None:
        events.append(chunk({"content": ""}, answer.finish_reason))
    options = request.body.get("stream_options")
    if isinstance(options, Mapping) and options.get("include_usage") is True:
        events.append(_event({**head, "choices": [], "usage": _usage(answer, request)}))
    return (*events, _DONE)


def _head(kind: str, request: RecordedRequest, model: str) -> dict[str, Json]:
    name = request.headers.get("x-request-id", str(request.ordinal))
    return {
        "id": f"chatcmpl-{name}",
        "object": kind,
        "created": CREATED,
        "model": str(request.body.get("model", model)),
        "system_fingerprint": "scripted",
    }


def _usage(answer: Answer, request: RecordedRequest) -> Json:
    said = (answer.text or "") + (answer.reasoning or "") + (answer.refusal or "")
    asked = "".join(str(message.get("content")) for message in request.messages)
    prompt = _estimated_tokens(asked) if answer.prompt_tokens is None else answer.prompt_tokens
    completion = _estimated_tokens(said) if answer.completion_tokens is None else answer.completion_tokens
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _estimated_tokens(text: str) -> int:
    return -(-len(text) // 4)


def _error(status: int, message: str) -> dict[str, Json]:
    kind = "InternalServerError" if status >= 500 else "BadRequestError"
    return {"message": message, "type": kind, "param": None, "code": status}


def _first_half(pieces: Sequence[bytes]) -> Sequence[bytes]:
    if len(pieces) == 1:
        return (pieces[0][: len(pieces[0]) // 2],)
    return pieces[: len(pieces) // 2]


def _second_half(pieces: Sequence[bytes]) -> Sequence[bytes]:
    return (pieces[0][len(pieces[0]) // 2 :],)


def _event(body: Mapping[str, Json]) -> bytes:
    return b"data: " + _dump(body) + b"\n\n"


def _dump(body: Json) -> bytes:
    # A lone surrogate is escaped, as a Python server would send it.
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")


_DONE = b"data: [DONE]\n\n"
