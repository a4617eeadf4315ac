"""A scripted reply as the bytes and the ending that a real engine would give it."""

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
"""Answers differ in nothing but what they say, so that tests can compare them."""

SLOW_PAUSE_S = 0.05


class Ending(StrEnum):
    """How the connection fares after the last piece."""

    COMPLETE = "complete"
    CLOSE = "close"
    RESET = "reset"
    HANG = "hang"


@dataclass(frozen=True, slots=True)
class Performance:
    """What the server does: waits, sends headers (a ``status`` of None: not even those) and pieces, and ends.

    ``length`` is the announced Content-Length; None means a chunked body.
    """

    status: int | None = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    pieces: Sequence[bytes] = ()
    length: int | None = None
    delay_s: float = 0.0
    pause_s: float = 0.0
    ending: Ending = Ending.COMPLETE


def stage(reply: Reply, request: RecordedRequest, *, model: str) -> Performance:
    if isinstance(reply, Fault):
        return _faulty(reply, request, model)
    if isinstance(reply, Answer):
        return _answered(reply, request, model)
    headers = {"Content-Type": reply.content_type, **reply.headers}
    return Performance(reply.status, headers, (reply.body,), len(reply.body), reply.delay_s)


def error(status: int, message: str, headers: Mapping[str, str] | None = None, delay_s: float = 0.0) -> Performance:
    """An error in the form in which vLLM reports one."""
    body = _dump({"error": _error(status, message)})
    return Performance(status, {"Content-Type": "application/json", **(headers or {})}, (body,), len(body), delay_s)


def page(body: Json) -> Performance:
    text = _dump(body)
    return Performance(200, {"Content-Type": "application/json"}, (text,), len(text))


def _answered(answer: Answer, request: RecordedRequest, model: str) -> Performance:
    if answer.status >= 400:
        return error(answer.status, answer.text or "", answer.headers, answer.delay_s)
    if request.streamed:
        headers = {"Content-Type": "text/event-stream; charset=utf-8", **answer.headers}
        pieces = _events(answer, request, model)
        return Performance(answer.status, headers, pieces, None, answer.delay_s, answer.chunk_delay_s)
    performance = page(_whole(answer, request, model))
    headers = {**performance.headers, **answer.headers}
    return replace(performance, status=answer.status, headers=headers, delay_s=answer.delay_s)


def _faulty(fault: Fault, request: RecordedRequest, model: str) -> Performance:
    whole = _answered(Answer(fault.content), request, model)
    match fault.kind:
        case "refuse" | "reset_before":
            return Performance(None, ending=Ending.RESET)
        case "hang":
            return Performance(None, ending=Ending.HANG)
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
    """The stream as vLLM sends it: the role, the text piece by piece, the finish, the usage if asked for, the end."""
    head = _head("chat.completion.chunk", request, model)

    def chunk(delta: Mapping[str, Json], finish_reason: str | None = None) -> bytes:
        choice: dict[str, Json] = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return _event({**head, "choices": [choice]})

    def spoken(name: str, text: str | None) -> list[bytes]:
        step = max(1, answer.chunk_chars)
        return [chunk({name: (text or "")[at : at + step]}) for at in range(0, len(text or ""), step)]

    events = [chunk({"role": "assistant", "content": ""})]
    events += spoken("reasoning", answer.reasoning)
    events += spoken("content", answer.text)
    events += spoken("refusal", answer.refusal)
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
    prompt = _guess(asked) if answer.prompt_tokens is None else answer.prompt_tokens
    completion = _guess(said) if answer.completion_tokens is None else answer.completion_tokens
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _guess(text: str) -> int:
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
    # A lone surrogate is escaped, as a server in Python would send it.
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")


_DONE = b"data: [DONE]\n\n"
