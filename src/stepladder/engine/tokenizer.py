"""How many tokens a text has, counted by the engine's own tokenizer."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from stepladder.engine.identity import PAGE_TIMEOUT_S, root_of
from stepladder.schemas.answer import Lost, Received

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stepladder.engine.client import EngineClient
    from stepladder.engine.identity import Identity
    from stepladder.schemas.jsontypes import Json, JsonObject

AT_ONCE = 8
"""Requests in flight: the tokenizer shares the engine's CPU with the model."""

Form = Literal["vllm", "llama.cpp"]
_NOT_THERE = (404, 405, 501)


@dataclass(frozen=True, slots=True)
class Uncounted:
    """Why there is no count."""

    reason: str


async def count_tokens(
    client: EngineClient, identity: Identity, texts: Iterable[str], *, model: str | None = None
) -> dict[str, int] | Uncounted:
    """The tokens of each text, without those that a tokenizer adds to a prompt. ``model`` is
    ``identity``'s unless named.

    Asks ``POST /tokenize`` next to the OpenAI-compatible routes, in vLLM's form or llama.cpp's. Raises nothing.
    """
    name = identity.model if model is None else model
    if name != identity.model and identity.models and name not in identity.models:
        return Uncounted(f"the engine at {client.base_url} does not serve the model {name}")
    limit = asyncio.Semaphore(AT_ONCE)

    async def one(text: str) -> int | Uncounted:
        async with limit:
            return await _count(client, identity, name, text)

    different = list(dict.fromkeys(texts))
    counts: dict[str, int] = {}
    for text, count in zip(different, await asyncio.gather(*map(one, different)), strict=True):
        if isinstance(count, Uncounted):
            return count
        counts[text] = count
    return counts


async def _count(client: EngineClient, identity: Identity, model: str, text: str) -> int | Uncounted:
    forms: tuple[Form, ...] = ("vllm", "llama.cpp") if identity.kind == "unknown" else (identity.kind,)
    said = Uncounted(f"the engine at {client.base_url} has no tokenizer to ask")
    for form in forms:
        arrival = await client.post(
            f"{root_of(client.base_url)}/tokenize", _question(form, model, text), timeout_s=PAGE_TIMEOUT_S
        )
        match arrival:
            case Lost():
                return Uncounted(f"the engine at {client.base_url} gave no count: {arrival.cause}, {arrival.detail}")
            case Received(status=200):
                count = _told(arrival.body)
                if count is not None:
                    return count
            case Received(status=401 | 403):
                return Uncounted(f"the engine at {client.base_url} rejects the API key for its tokenizer")
            case Received(status=status) if status not in _NOT_THERE:
                said = Uncounted(f"the engine at {client.base_url} answers {status} when asked for a count")
    return said


def _question(form: Form, model: str, text: str) -> JsonObject:
    if form == "vllm":
        return {"model": model, "prompt": text, "add_special_tokens": False}
    return {"content": text, "add_special": False}


def _told(body: bytes) -> int | None:
    """``count``, or the length of ``tokens``, whichever form the answer is in."""
    try:
        page: Json = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(page, dict):
        return None
    count, tokens = page.get("count"), page.get("tokens")
    if isinstance(count, int) and not isinstance(count, bool) and count >= 0:
        return count
    return len(tokens) if isinstance(tokens, list) else None
