"""The script of a scripted engine: replies, and which request gets which."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stepladder.schemas.jsontypes import Json

FaultKind = Literal[
    "refuse",
    "reset_before",
    "reset_mid",
    "hang",
    "stall",
    "close_mid_stream",
    "stream_error",
    "no_finish_reason",
    "no_done",
    "slow",
]


@dataclass(frozen=True, slots=True)
class Answer:
    """A chat completion, streamed or whole as requested.

    ``content`` is the text, a JSON value to serialize, or None for null. Missing token counts are estimated at 4
    characters a token. ``delay_s`` passes before the first byte, ``chunk_delay_s`` after each piece of a stream, which
    has ``chunk_chars`` characters. With a ``status`` of 400 or more, ``content`` is the message of vLLM's error object.
    """

    content: Json = None
    finish_reason: str | None = "stop"
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: Sequence[Json] = ()
    delay_s: float = 0.0
    chunk_delay_s: float = 0.0
    chunk_chars: int = 12
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str | None:
        if self.content is None or isinstance(self.content, str):
            return self.content
        return json.dumps(self.content, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Raw:
    """An exact HTTP answer to any request."""

    body: bytes
    status: int = 200
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault in transport. ``content`` is the intended answer, part of which may be sent.

    ``reset_before``: the connection is reset before a byte is answered. ``reset_mid``: in the middle of the body.
    ``close_mid_stream``: closed there without an error. ``stall``: silent from there on. ``hang``: silent from the
    start. ``stream_error``: an error event in a stream, status 500 without one. ``no_finish_reason``: nothing
    else is missing. ``no_done``: a stream without its last line. ``slow``: complete, with ``delay_s`` after each piece.
    ``refuse``: the request is reset and the port closed, for ``delay_s`` or, if that is None, until
    ``ScriptedEngine.up``.
    """

    kind: FaultKind
    content: Json = "An unfinished answer."
    delay_s: float | None = None


Reply: TypeAlias = Answer | Raw | Fault
Line: TypeAlias = "Reply | str | Mapping[str, Json]"
"""A reply, or just the content of an ``Answer``: text, or an object to serialize as JSON."""


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """A request as received. ``ordinal`` starts at 1; header names are in lower case."""

    ordinal: int
    body: Mapping[str, Any]
    raw: bytes
    headers: Mapping[str, str]

    @property
    def messages(self) -> Sequence[Mapping[str, Any]]:
        messages = self.body.get("messages")
        return messages if isinstance(messages, list) else []

    @property
    def text(self) -> str:
        """The last user message."""
        said = [message.get("content") for message in self.messages if message.get("role") == "user"]
        return str(said[-1]) if said else ""

    @property
    def streamed(self) -> bool:
        return self.body.get("stream") is True


class Script:
    """Which reply a request gets: from ``respond``, else from ``by_text``, else the next one of ``answers``.

    ``respond`` may return None to pass. ``by_text`` maps texts to look for in the last user message to one reply for
    all such requests, or to a list of replies in turn.
    """

    def __init__(
        self,
        answers: Iterable[Line] = (),
        *,
        respond: Callable[[RecordedRequest], Line | None] | None = None,
        by_text: Mapping[str, Line | Sequence[Line]] | None = None,
    ) -> None:
        self._answers = iter(list(answers))
        self._respond = respond
        self._by_text = {
            key: iter(lines) if isinstance(lines, Sequence) and not isinstance(lines, str) else lines
            for key, lines in (by_text or {}).items()
        }

    def reply(self, request: RecordedRequest) -> Reply | None:
        """The reply, or None when the script has none left."""
        line = self._respond(request) if self._respond is not None else None
        if line is None:
            keyed = next((lines for key, lines in self._by_text.items() if key in request.text), self._answers)
            line = keyed if isinstance(keyed, (Answer, Raw, Fault, str, Mapping)) else next(keyed, None)
        return Answer(line) if isinstance(line, (str, Mapping)) else line
