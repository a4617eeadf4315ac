"""Who answers, and what is said when it is nobody or somebody else."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from aiohttp import web

from stepladder.engine.client import EngineClient
from stepladder.engine.identity import Identity, identify
from stepladder.schemas.errors import BadInputError, UnreachableError
from stepladder.testing.engine import ScriptedEngine

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from stepladder.schemas.jsontypes import Json


@asynccontextmanager
async def pages(content: Mapping[str, Json | bytes], status: int = 200) -> AsyncIterator[str]:
    """A server with these pages and no other, by path and query."""

    async def serve(request: web.BaseRequest) -> web.StreamResponse:
        page = content.get(request.path_qs)
        if page is None:
            return web.json_response({"error": {"message": "File Not Found"}}, status=404)
        body = page if isinstance(page, bytes) else json.dumps(page).encode()
        return web.Response(body=body, status=status, content_type="application/json")

    runner = web.ServerRunner(web.Server(serve, access_log=None))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


VLLM: dict[str, Json | bytes] = {
    "/v1/models": {
        "object": "list",
        "data": [
            {"id": "base", "owned_by": "vllm", "max_model_len": 8192},
            {"id": "lora", "parent": "base", "max_model_len": None},
            {"id": "other"},
        ],
    },
    "/version": {"version": "0.32.0"},
}
LLAMA: dict[str, Json | bytes] = {
    "/v1/models": {
        "object": "list",
        "data": [
            {
                "id": "/models/small.gguf",
                "aliases": ["small"],
                "owned_by": "llamacpp",
                "meta": {"n_ctx": 1024, "n_ctx_train": 8192},
            }
        ],
    },
    "/props": {"default_generation_settings": {"n_ctx": 1024}, "build_info": "b9000-abcdef"},
}


async def test_vllm_tells_its_version_and_its_limit() -> None:
    async with pages(VLLM) as url, EngineClient(f"{url}/v1/") as client:
        lengths = {"base": 8192, "lora": 8192}
        names = ("base", "lora", "other")
        assert await identify(client) == Identity("base", "0.32.0", 8192, None, "vllm", names, lengths)
        lora = await identify(client, model="lora")
        assert (lora.model, lora.max_model_len) == ("lora", 8192)


async def test_vllm_in_development_mode_tells_the_pinned_backend() -> None:
    info: Json = {"vllm_config": {"structured_outputs_config": {"backend": "xgrammar"}}}
    async with pages({**VLLM, "/server_info?config_format=json": info}) as url, EngineClient(f"{url}/v1") as client:
        assert (await identify(client)).backend == "xgrammar"


async def test_llama_cpp_tells_its_build_and_the_context_of_one_slot() -> None:
    path = "/models/small.gguf"
    async with pages(LLAMA) as url, EngineClient(f"{url}/v1") as client:
        assert await identify(client, model="small") == Identity(
            "small", "b9000-abcdef", 1024, "gbnf", "llama.cpp", (path,), {path: 1024, "small": 1024}
        )


async def test_an_engine_that_tells_only_its_models_is_good_enough() -> None:
    async with pages({"/v1/models": {"data": [{"id": "m", "meta": None}]}}) as url, EngineClient(f"{url}/v1") as client:
        assert await identify(client) == Identity("m", models=("m",))


async def test_the_scripted_engine_can_be_identified() -> None:
    async with (
        ScriptedEngine(model="m", max_model_len=99, version="0.30.1") as engine,
        EngineClient(engine.url) as client,
    ):
        assert await identify(client) == Identity("m", "0.30.1", 99, None, "vllm", ("m",), {"m": 99})


async def test_a_model_that_is_not_served_is_named_with_those_that_are() -> None:
    async with pages(VLLM) as url, EngineClient(f"{url}/v1") as client:
        with pytest.raises(BadInputError, match=r"does not serve the model big\. It serves: base, lora, other\."):
            await identify(client, model="big")


async def test_a_missing_engine_is_unreachable() -> None:
    async with ScriptedEngine() as engine, EngineClient(engine.url) as client:
        await asyncio.to_thread(engine.down)
        with pytest.raises(UnreachableError, match=rf"No engine answers at {engine.url}/models: connect") as failure:
            await identify(client)
        assert "STEPLADDER_ENGINE_URL" in failure.value.remedy


async def test_the_wrong_key() -> None:
    async with ScriptedEngine(api_key="right") as engine, EngineClient(engine.url, api_key="wrong-key") as client:
        with pytest.raises(UnreachableError, match="answers 401") as failure:
            await identify(client)
        assert "STEPLADDER_ENGINE_API_KEY" in failure.value.remedy
        assert "wrong-key" not in str(failure.value)


async def test_a_model_that_is_still_loading() -> None:
    loading: Json = {"error": {"message": "Loading model"}}
    async with pages({"/v1/models": loading}, status=503) as url, EngineClient(f"{url}/v1") as client:
        with pytest.raises(UnreachableError, match=r"answers 503.*Loading model"):
            await identify(client)


@pytest.mark.parametrize(
    ("page", "told"),
    [
        (b"<!doctype html><title>Welcome</title>", "a web page, .*Welcome"),
        (b"", "an empty body"),
        (b"[" * 100_000, "not an OpenAI-compatible engine"),
        (b"\xff\xfe", "not an OpenAI-compatible engine"),
        (b'{"data": []}', "not an OpenAI-compatible engine"),
        (b'{"data": [3, {"id": null}]}', "not an OpenAI-compatible engine"),
        (b'{"data": {"id": "m"}}', "not an OpenAI-compatible engine"),
        (b"[]", "not an OpenAI-compatible engine"),
        (None, "404, .*File Not Found"),
    ],
)
async def test_a_server_that_is_not_an_engine_is_refused(page: bytes | None, told: str) -> None:
    async with pages({"/v1/models": page}) as url, EngineClient(f"{url}/v1") as client:
        with pytest.raises(UnreachableError, match=told) as failure:
            await identify(client)
        assert f"{url}/v1/models" in str(failure.value)
