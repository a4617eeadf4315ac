"""What is asked: which words of a document end up in which field of the request."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from stepladder.engine.client import EngineClient
from stepladder.engine.identity import identify
from stepladder.schemas.canonical import canonical
from stepladder.testing import ScriptedEngine
from stepladder.validation.schema import Schema, compile_schema

from .conftest import NUMBER, asking

if TYPE_CHECKING:
    from .conftest import Open


async def test_prompt_decoder_and_validator_use_the_same_schema(works: Open) -> None:
    w = await works({"n": 1})
    done = await w.run({"only": asking()})
    body = w.engine.requests[0].body
    assert body["response_format"]["json_schema"]["schema"] == NUMBER
    assert "- n: integer from 0 to 999" in w.engine.requests[0].text
    compiled = compile_schema(NUMBER)
    assert isinstance(compiled, Schema)
    [attempt] = await w.attempts(done.id)
    assert attempt.schema_hash == compiled.hash
    kept = await w.rows("SELECT schema FROM output_schemas WHERE hash = %s", compiled.hash)
    assert kept == [{"schema": NUMBER}]


async def test_decoding_by_prompt_sends_no_schema_and_says_it_in_full(works: Open) -> None:
    w = await works('{"n": 1} ', {"n": 2})
    await w.run({"only": asking(decoding="prompt")})
    request = w.engine.requests[0]
    assert "response_format" not in request.body
    assert canonical(NUMBER).decode() in request.text


@pytest.mark.parametrize("stream", [True, False])
async def test_a_stream_asks_for_its_usage_and_a_whole_answer_does_not(works: Open, stream: bool) -> None:
    w = await works({"n": 1})
    done = await w.run({"only": asking()}, stream=stream)
    body = w.engine.requests[0].body
    assert body["stream"] is stream
    assert body.get("stream_options") == ({"include_usage": True} if stream else None)
    [attempt] = await w.attempts(done.id)
    assert (attempt.ttft_ms is not None) is stream
    assert attempt.usage is not None
    assert done.tokens == attempt.usage.total > 0


async def test_the_model_of_a_state_overrides_that_of_the_workflow(works: Open) -> None:
    w = await works({"n": 1}, {"n": 2}, {"n": 3}, {"n": 4})
    states = {
        "plain": asking(next="special"),
        "special": asking(
            model="large", sampling={"temperature": 1.5, "top_k": 3}, max_completion_tokens=7, stream=True, next="done"
        ),
    }
    done = await w.run(states, model="small", sampling={"temperature": 0.1, "seed": 9}, max_completion_tokens=99)
    plain, special = (request.body for request in w.engine.requests)
    assert (plain["model"], plain["temperature"], plain["seed"], plain["max_completion_tokens"]) == (
        "small",
        0.1,
        9,
        99,
    )
    assert (special["model"], special["temperature"], special["seed"], special["top_k"]) == ("large", 1.5, 9, 3)
    assert special["max_completion_tokens"] == 7
    stored = [(attempt.engine.model, attempt.sampling) for attempt in await w.attempts(done.id)]
    assert stored == [
        ("small", {"temperature": 0.1, "seed": 9}),
        ("large", {"temperature": 1.5, "seed": 9, "top_k": 3}),
    ]
    await w.run({"only": asking()})
    assert w.engine.requests[-1].body["model"] == "scripted"


@pytest.mark.parametrize(
    ("history", "seen"),
    [("all", ["system", "1", "1", "2", "2", "3"]), (1, ["system", "2", "2", "3"]), ("none", ["system", "3"])],
)
async def test_history_is_how_many_turns_the_model_is_shown(works: Open, history: Any, seen: list[str]) -> None:
    w = await works({"n": 1}, {"n": 2}, {"n": 3})
    states = {
        "one": asking(ask="Question 1", next="two"),
        "two": asking(ask="Question 2", next="three"),
        "three": asking(ask="Question 3", history=history),
    }
    await w.run(states, system="Be brief.")
    shown = [_turn(str(message["content"])) for message in w.engine.requests[2].messages]
    assert shown == seen


def _turn(content: str) -> str:
    if content == "Be brief.":
        return "system"
    return str(json.loads(content)["n"]) if content.startswith("{") else content.removeprefix("Question ")[:1]


async def test_a_rejected_answer_leaves_no_trace_in_the_conversation(works: Open) -> None:
    w = await works({"n": -5}, {"n": 1}, {"n": 2})
    await w.run({"one": asking(next="two"), "two": asking(ask="And then?")})
    said = json.dumps(w.engine.requests[2].messages)
    assert "-5" not in said
    assert "not accepted" not in said


async def test_the_same_answer_over_and_over_is_a_loop(works: Open) -> None:
    output = {"type": "object", "properties": {"action": {"enum": ["again"]}}, "required": ["action"]}
    w = await works(respond=lambda _: {"action": "again"})
    states = {"again": asking(output=output, max_visits=9, next={"again": "again", "exhausted": "done"})}
    done = await w.run(states)
    assert (done.failure, done.turn_count) == ("loop", 3)
    off = await w.run({"again": states["again"] | {"loop": "off"}})
    assert (off.status, off.turn_count) == ("succeeded", 9)


async def test_the_key_goes_to_the_engine_and_nowhere_else(works: Open) -> None:
    w = await works()
    async with ScriptedEngine([{"n": 1}], api_key="sk-hidden") as engine:
        async with EngineClient(engine.url, api_key="sk-hidden") as client:
            w.engine, w.client, w.identity = engine, client, await identify(client)
            job = await w.submit({"only": asking()})
            assert (await w.drive(job)).status == "succeeded"
        assert engine.requests[0].headers["authorization"] == "Bearer sk-hidden"
    assert "sk-hidden" not in str(await w.dump(job))
