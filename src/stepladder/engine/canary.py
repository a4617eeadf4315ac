"""A request that every working engine can answer: if it fails, the engine is at fault, not the schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepladder.validation.termination import receive

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stepladder.engine.client import EngineClient
    from stepladder.schemas.jsontypes import Json, JsonObject

KNOWN_GOOD: JsonObject = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}},
    "required": ["ok"],
    "additionalProperties": False,
}
"""A schema that every grammar backend compiles."""

MAX_TOKENS = 16
"""Enough for the one document that the schema allows."""


def known_good_request(model: str, sampling: JsonObject | None = None) -> Mapping[str, Json]:
    """The body of a strict request for ``{"ok": ...}``, some ten tokens each way."""
    return {
        "model": model,
        "messages": [{"role": "user", "content": 'Answer with the JSON object {"ok": true}.'}],
        **(sampling or {}),
        "max_completion_tokens": MAX_TOKENS,
        "stream": False,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "known_good", "schema": KNOWN_GOOD, "strict": True},
        },
    }


async def answers_known_good(
    client: EngineClient, model: str, *, request_id: str, timeout_s: float, sampling: JsonObject | None = None
) -> bool:
    """Whether the engine answers the known-good request now, with any content. One request; never raises."""
    exchange = await client.ask(
        known_good_request(model, sampling), request_id=request_id, timeout_s=timeout_s, fresh=True
    )
    return receive(exchange.arrival).rejection is None
