"""Which engine answers: its model, version and limits, as far as it reports them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from stepladder.schemas.answer import Lost, Received
from stepladder.schemas.errors import BadInputError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stepladder.engine.client import EngineClient
    from stepladder.schemas.jsontypes import Json

PAGE_TIMEOUT_S = 10.0
"""For each page read here. None of them waits for the model."""

Kind = Literal["vllm", "llama.cpp", "unknown"]


@dataclass(frozen=True, slots=True)
class Identity:
    """What an engine reports about itself; None where it reports nothing.

    ``model`` is the name to send, ``models`` are all names that it serves. ``max_model_len`` counts tokens, prompt
    and completion together. ``backend`` constrains decoding: vLLM reports it only with VLLM_SERVER_DEV_MODE=1, and
    then ``auto`` means that none is pinned.
    """

    model: str
    version: str | None = None
    max_model_len: int | None = None
    backend: str | None = None
    kind: Kind = "unknown"
    models: tuple[str, ...] = ()
    lengths: Mapping[str, int] = field(default_factory=dict)
    """``max_model_len`` of every model that reports it, or whose parent does: an adapter has the length of its base."""


async def identify(client: EngineClient, *, model: str | None = None) -> Identity:
    """Asks the engine for its identity. Without ``model``, the first one that it lists is used.

    Raises ``UnreachableError`` if no OpenAI-compatible engine answers there, and ``BadInputError`` if it does not
    serve ``model``.
    """
    entries = await _models(client)
    names = tuple(str(entry["id"]) for entry in entries)
    known = {name: entry for entry in entries for name in (str(entry["id"]), *_aliases(entry))}
    chosen = names[0] if model is None else model
    if chosen not in known:
        raise BadInputError(
            f"The engine at {client.base_url} does not serve the model {chosen}. It serves: {', '.join(names)}.",
            remedy="Set STEPLADDER_MODEL to one of them, or start the engine with that model.",
        )
    entry = known[chosen]
    lengths = _lengths(entries)
    length = lengths.get(chosen)
    root = root_of(client.base_url)
    if version := _text(await _page(client, f"{root}/version"), "version"):
        config = await _page(client, f"{root}/server_info?config_format=json")
        backend = _text(config, "vllm_config", "structured_outputs_config", "backend")
        return Identity(chosen, version, length, backend, "vllm", names, lengths)
    if entry.get("owned_by") == "llamacpp":
        props = await _page(client, f"{root}/props")
        length = _count(entry, "meta", "n_ctx") or _count(props, "default_generation_settings", "n_ctx")
        # It turns schemas into its own grammars; there is no other backend to choose.
        lengths = {} if length is None else dict.fromkeys((str(entry["id"]), chosen), length)
        return Identity(chosen, _text(props, "build_info"), length, "gbnf", "llama.cpp", names, lengths)
    return Identity(chosen, None, length, models=names, lengths=lengths)


def _lengths(entries: Sequence[Mapping[str, Json]]) -> dict[str, int]:
    told = {str(entry["id"]): _count(entry, "max_model_len") for entry in entries}
    lengths = {str(entry["id"]): told[str(entry["id"])] or told.get(str(entry.get("parent"))) for entry in entries}
    return {name: length for name, length in lengths.items() if length is not None}


async def _models(client: EngineClient) -> Sequence[Mapping[str, Json]]:
    url = f"{client.base_url}/models"
    arrival = await client.get(url, timeout_s=PAGE_TIMEOUT_S)
    match arrival:
        case Lost():
            raise UnreachableError(
                f"No engine answers at {url}: {arrival.cause}, {arrival.detail}",
                remedy="Start the engine, or set STEPLADDER_ENGINE_URL to where it listens.",
            )
        case Received(status=401 | 403):
            raise UnreachableError(
                f"The engine at {url} answers {arrival.status}: it needs a key, or another one.",
                remedy="Set STEPLADDER_ENGINE_API_KEY to the engine's key.",
            )
        case Received(status=503):
            raise UnreachableError(
                f"The engine at {url} answers 503: {_excerpt(arrival.body)}",
                remedy="It may still be loading its model; try again in a moment.",
            )
    page = _json(arrival.body) if arrival.status == 200 else None
    listed = page.get("data") if isinstance(page, dict) else None
    entries = (
        [entry for entry in listed if isinstance(entry, dict) and entry.get("id")] if isinstance(listed, list) else []
    )
    if not entries:
        raise UnreachableError(
            f"The server at {url} is not an OpenAI-compatible engine: {arrival.status}, {_excerpt(arrival.body)}",
            remedy="Set STEPLADDER_ENGINE_URL to the base of its OpenAI-compatible routes; it ends in /v1.",
        )
    return entries


async def _page(client: EngineClient, url: str) -> Json:
    """A page that only some engines have; None without one."""
    arrival = await client.get(url, timeout_s=PAGE_TIMEOUT_S)
    return _json(arrival.body) if isinstance(arrival, Received) and arrival.status == 200 else None


def root_of(base_url: str) -> str:
    """The base of the pages that OpenAI's interface does not have: the URL without ``/v1``."""
    parts = urlsplit(base_url)
    return parts._replace(path=parts.path.removesuffix("/v1")).geturl()


def _json(body: bytes) -> Json:
    try:
        page: Json = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return page


def _excerpt(body: bytes) -> str:
    text = " ".join(body[:400].decode("utf-8", "replace").split())
    if text.startswith("<"):
        return f"a web page, {text[:80]!r}"
    return repr(text[:160]) if text else "an empty body"


def _aliases(entry: Mapping[str, Json]) -> list[str]:
    aliases = entry.get("aliases")
    return [str(alias) for alias in aliases] if isinstance(aliases, list) else []


def _at(page: Json, path: tuple[str, ...]) -> Json:
    for step in path:
        page = page.get(step) if isinstance(page, dict) else None
    return page


def _text(page: Json, *path: str) -> str | None:
    value = _at(page, path)
    return value if isinstance(value, str) and value else None


def _count(page: Json, *path: str) -> int | None:
    value = _at(page, path)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
