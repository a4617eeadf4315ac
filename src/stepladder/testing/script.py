"""What a scripted engine is told to say: replies, and which request gets which."""

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
    """A chat completion, streamed or whole as the request wants it.

    ``content`` is the text itself, or a JSON value that is written out, or None for null. Token counts that are not
    given are guessed at 4 characters a token. ``delay_s`` passes before the first byte, ``chunk_delay_s`` after each
    piece of a stream, which holds ``chunk_chars`` characters. A ``status`` from 400 on answers with vLLM's error
    object, whose message is ``content``.
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
    """An HTTP answer to the byte, whatever the request was."""

    body: bytes
    status: int = 200
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that goes wrong on the way. ``content`` is what would have been said; a part of it may get through.

    ``reset_before``: the connection is reset before a byte is answered. ``reset_mid``: in the middle of the body.
    ``close_mid_stream``: closed there, politely but too early. ``stall``: silent from there on. ``hang``: silent from
    the start. ``stream_error``: an error event in a stream, status 500 without one. ``no_finish_reason``: everything
    else is there. ``no_done``: a stream without its last line. ``slow``: whole, with ``delay_s`` after each piece.
    ``refuse``: the engine dies of this request, which is reset, and its port is closed to the next ones: for
    ``delay_s``, or until ``ScriptedEngine.up`` where that is None.
    """

    kind: FaultKind
    content: Json = "An answer that was never to be finished."
    delay_s: float | None = None


Reply: TypeAlias = Answer | Raw | Fault
Line: TypeAlias = "Reply | str | Mapping[str, Json]"
"""A reply, or in short the content of an ``Answer``: text, or an object to be written as JSON."""


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """One request as it came. ``ordinal`` starts at 1; ``headers`` have lower-case names."""

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

    ``respond`` may answer None to pass. The keys of ``by_text`` are looked for in the last user message, in their
    order; a list there is used up one by one, a single reply lasts for ever.
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
