"""The request of an attempt, from stored pieces alone, so that it can be built again to the byte."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stepladder.schemas.jsontypes import Json, JsonObject
    from stepladder.workflows.job import Attempt, Message, Turn
    from stepladder.workflows.machine import AskState


def messages_of(transcript: Sequence[Message], turn: Turn, attempt: Attempt) -> list[Json]:
    """System, transcript, then one user message. A retry's note extends that message and changes nothing before it."""
    before = [
        {"role": message.role, "content": message.content}
        for message in transcript
        if message.turn == 0 or attempt.history_from <= message.ordinal <= attempt.history_to
    ]
    return [*before, {"role": "user", "content": turn.question + attempt.note}]


def body_of(
    state: AskState, model: str, transcript: Sequence[Message], turn: Turn, attempt: Attempt
) -> dict[str, Json]:
    """The body of ``POST /chat/completions``. Fields that engines ignore or no longer know are never sent."""
    schema = {state.name: state.schema.schema} if state.strict else {}
    return _body(model, messages_of(transcript, turn, attempt), attempt, schema, stream=state.stream)


def rebuilt(
    document: JsonObject, schema: Json, model: str, transcript: Sequence[Message], turn: Turn, attempt: Attempt
) -> dict[str, Json]:
    """The same from the document as it is stored, and the turn's schema: the tools that it names are not needed."""
    strict = _chosen(document, turn.state, "decoding", "strict") == "strict"
    stream = _chosen(document, turn.state, "stream", True) is True
    messages = messages_of(transcript, turn, attempt)
    return _body(model, messages, attempt, {turn.state: schema} if strict else {}, stream=stream)


def _chosen(document: JsonObject, state: str, field: str, default: Json) -> Json:
    """A state's own word wins over the workflow's."""
    states: Any = document["states"]
    words = (states[state].get(field), document.get(field))
    return next((word for word in words if word is not None), default)


def _body(
    model: str, messages: list[Json], attempt: Attempt, schema: Mapping[str, Json], *, stream: bool
) -> dict[str, Json]:
    body: dict[str, Json] = {
        "model": model,
        "messages": messages,
        **attempt.sampling,
        "max_completion_tokens": attempt.max_completion_tokens,
        "stream": stream,
    }
    if stream:
        body["stream_options"] = {"include_usage": True}
    for name, decoded in schema.items():
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": name, "schema": decoded, "strict": True},
        }
    return body


def history_range(transcript: Sequence[Message], history: int | str) -> tuple[int, int]:
    """First and last ordinal of the transcript that a turn is shown; first > last if there is none."""
    last = transcript[-1].ordinal if transcript else 0
    if history == "all":
        return next((message.ordinal for message in transcript if message.turn > 0), last + 1), last
    turns = list(dict.fromkeys(message.turn for message in transcript if message.turn > 0))
    shown = set(turns[max(0, len(turns) - int(history)) :]) if int(history) > 0 else set()
    return next((message.ordinal for message in transcript if message.turn in shown), last + 1), last
