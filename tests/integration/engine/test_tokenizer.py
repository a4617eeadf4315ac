"""Tokens by the engine's own count, and what is said where there is none."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import httpx
import pytest
from aiohttp import web

from stepladder.embedded import llama
from stepladder.embedded.model import ensure_model
from stepladder.engine.client import EngineClient
from stepladder.engine.identity import Identity, identify
from stepladder.engine.tokenizer import Uncounted, count_tokens

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from stepladder.schemas.jsontypes import Json

TEXTS = ('{"total": 36, "reason": "the invoice of Harrow & Sons came late"}', '{"total": 1284.5}', "Ünïcödé ✓ 漢字", "")


@pytest.fixture(scope="module")
def engine_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with llama.running(ensure_model(), tmp_path_factory.mktemp("llama") / "llama.log") as url:
        yield url


async def test_llama_cpp_counts_with_its_own_tokenizer(engine_url: str) -> None:
    root = engine_url.removesuffix("/v1")
    async with EngineClient(engine_url) as client:
        counts = await count_tokens(client, await identify(client), TEXTS)
    assert isinstance(counts, dict)
    async with httpx.AsyncClient(timeout=60) as http:
        for text in TEXTS:  # the pieces that it gives, put together, are the text again
            tokens = (await http.post(f"{root}/tokenize", json={"content": text})).json()["tokens"]
            pieces = (await http.post(f"{root}/detokenize", json={"tokens": tokens})).json()["content"]
            assert (counts[text], pieces.strip()) == (len(tokens), text)


async def test_a_count_is_what_the_engine_says_that_its_own_answer_took(engine_url: str) -> None:
    question = {"role": "user", "content": "Write one friendly sentence."}
    body = {"model": llama.ALIAS, "messages": [question], "max_tokens": 200, "temperature": 0, "seed": 7}
    async with httpx.AsyncClient(base_url=engine_url, timeout=120) as http:
        answer = (await http.post("chat/completions", json=body)).json()
    text, took = answer["choices"][0]["message"]["content"], answer["usage"]["completion_tokens"]
    async with EngineClient(engine_url) as client:
        counts = await count_tokens(client, await identify(client), [text])
    assert isinstance(counts, dict)
    assert counts[text] <= took <= counts[text] + 1  # the end of the answer is a token too


@asynccontextmanager
async def served(
    answer: Callable[[dict[str, Json]], web.Response], **headers: str
) -> AsyncIterator[tuple[str, list[str]]]:
    """A server whose one page is the tokenizer, and the paths that were asked for."""
    paths: list[str] = []

    async def serve(request: web.BaseRequest) -> web.StreamResponse:
        paths.append(request.path)
        if any(request.headers.get(name) != value for name, value in headers.items()):
            return web.json_response({"error": "Unauthorized"}, status=401)
        return answer(json.loads(await request.read()))

    runner = web.ServerRunner(web.Server(serve, access_log=None))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1", paths
    finally:
        await runner.cleanup()


def of_vllm(body: dict[str, Json]) -> web.Response:
    """A token for each word, and one before them where it was not told to leave that out."""
    if "prompt" not in body or body.get("model") not in ("base", "lora"):
        return web.json_response({"error": {"message": "validation error"}}, status=400)
    tokens = [1] * (len(str(body["prompt"]).split()) + (body.get("add_special_tokens") is not False))
    return web.json_response({"count": len(tokens), "max_model_len": 8192, "tokens": tokens, "token_strs": None})


def of_llama(body: dict[str, Json]) -> web.Response:
    """Any body is fine, and without ``content`` there is nothing in it."""
    return web.json_response({"tokens": [7] * len(str(body.get("content", "")).split())})


async def test_vllm_is_asked_in_its_own_form_beside_the_routes_of_openai() -> None:
    async with served(of_vllm) as (url, paths), EngineClient(url) as client:
        assert await count_tokens(client, Identity("base", kind="vllm"), ["a b c", "a", "a b c"]) == {
            "a b c": 3,
            "a": 1,
        }
    assert paths == ["/tokenize", "/tokenize"], "each text is counted once"


async def test_an_engine_that_nobody_knows_is_asked_in_both_forms() -> None:
    async with served(of_vllm) as (url, _), EngineClient(url) as client:
        assert await count_tokens(client, Identity("base"), ["a b"]) == {"a b": 2}

    def strict_llama(body: dict[str, Json]) -> web.Response:
        return of_llama(body) if "content" in body else web.Response(status=404)

    async with served(strict_llama) as (url, _), EngineClient(url) as client:
        assert await count_tokens(client, Identity("base"), ["a b"]) == {"a b": 2}


async def test_the_key_goes_along() -> None:
    async with served(of_vllm, Authorization="Bearer sk-1") as (url, _):
        async with EngineClient(url, api_key="sk-1") as client:
            assert await count_tokens(client, Identity("base", kind="vllm"), ["a"]) == {"a": 1}
        async with EngineClient(url) as client:
            counts = await count_tokens(client, Identity("base", kind="vllm"), ["a"])
    assert isinstance(counts, Uncounted)
    assert "key" in counts.reason


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (lambda: web.Response(status=404), "has no tokenizer"),
        (lambda: web.Response(status=405), "has no tokenizer"),
        (lambda: web.Response(body=b"<html>hello</html>"), "has no tokenizer"),
        (lambda: web.Response(body=b'{"count": true, "tokens": 3}'), "has no tokenizer"),
        (lambda: web.Response(body=b"[" * 100_000), "has no tokenizer"),
        (lambda: web.Response(status=500), "answers 500"),
    ],
    ids=["404", "405", "a page", "no count", "deep", "500"],
)
async def test_what_gives_no_count_says_so_and_nothing_is_guessed(answer: Callable[[], web.Response], why: str) -> None:
    async with served(lambda _: answer()) as (url, _), EngineClient(url) as client:
        counts = await count_tokens(client, Identity("base", kind="vllm"), ["a b"])
    assert isinstance(counts, Uncounted)
    assert why in counts.reason
    assert url in counts.reason


async def test_an_unknown_model_and_a_missing_engine_have_no_count() -> None:
    async with EngineClient("http://127.0.0.1:1/v1") as client:
        identity = Identity("base", kind="vllm", models=("base", "lora"))
        other = await count_tokens(client, identity, ["a"], model="other")
        gone = await count_tokens(client, identity, ["a"], model="lora")
    assert isinstance(other, Uncounted)
    assert isinstance(gone, Uncounted)
    assert "does not serve the model other" in other.reason
    assert "connect" in gone.reason
