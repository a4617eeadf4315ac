"""The scripted engine speaks as a real one does, and remembers what it was asked."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from stepladder.engine.client import EngineClient
from stepladder.schemas.answer import Lost, Received
from stepladder.schemas.outcomes import Cause
from stepladder.testing.engine import ScriptedEngine
from stepladder.testing.script import Answer, Fault, Raw
from stepladder.testing.wait import eventually, wait_until

if TYPE_CHECKING:
    from stepladder.schemas.answer import Arrival
    from stepladder.schemas.jsontypes import Json
    from stepladder.testing.script import Line, RecordedRequest


def post(engine: ScriptedEngine, text: str = "Hello?", **more: object) -> httpx.Response:
    """One request from code that knows no event loop."""
    body = {"model": "m", "messages": [{"role": "user", "content": text}], **more}
    with httpx.Client(trust_env=False, timeout=10) as client:
        return client.post(f"{engine.url}/chat/completions", json=body)


def content(response: httpx.Response) -> object:
    return response.json()["choices"][0]["message"]["content"]


def events(response: httpx.Response) -> list[Any]:
    lines = [line.removeprefix("data: ") for line in response.text.split("\n\n") if line]
    return [line if line == "[DONE]" else json.loads(line) for line in lines]


async def ask(client: EngineClient) -> Arrival:
    return (await client.ask({"messages": []}, request_id="r")).arrival


def test_answers_come_in_the_order_of_the_script() -> None:
    with ScriptedEngine(["one", {"action": "two"}, Answer("three", status=429), Raw(b"<four>", 502)]) as engine:
        assert content(post(engine)) == "one"
        assert json.loads(str(content(post(engine)))) == {"action": "two"}
        assert (third := post(engine)).status_code == 429
        assert third.json()["error"]["message"] == "three"
        assert ((fourth := post(engine)).status_code, fourth.content) == (502, b"<four>")


def test_a_stream_carries_the_same_answer_as_a_whole_body() -> None:
    call: Json = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    answer = Answer("Grüße 😀, at some length", "length", 7, 9, reasoning="Let me see.", tool_calls=[call])
    with ScriptedEngine([answer, answer]) as engine:
        whole = post(engine).json()
        stream = events(post(engine, stream=True, stream_options={"include_usage": True}))

    message, finish = whole["choices"][0]["message"], whole["choices"][0]["finish_reason"]
    assert stream.pop() == "[DONE]"
    usage = stream.pop()
    assert usage["choices"] == []
    assert usage["usage"] == whole["usage"] == {"prompt_tokens": 7, "completion_tokens": 9, "total_tokens": 16}
    deltas = [chunk["choices"][0]["delta"] for chunk in stream]
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert "".join(delta.get("content", "") for delta in deltas) == message["content"] == answer.content
    assert "".join(delta.get("reasoning", "") for delta in deltas) == message["reasoning"] == answer.reasoning
    assert [delta["tool_calls"] for delta in deltas if "tool_calls" in delta] == [[call]]
    assert message["tool_calls"] == [call]
    assert [chunk["choices"][0]["finish_reason"] for chunk in stream][-1] == finish == "length"
    assert sum("content" in delta for delta in deltas) > 3  # in several pieces


def test_usage_comes_with_a_stream_only_if_asked_for() -> None:
    with ScriptedEngine(["hi"]) as engine:
        assert all("usage" not in event for event in events(post(engine, stream=True)))


def test_a_key_finds_its_reply_in_the_last_user_message() -> None:
    by_text: dict[str, Line | list[Line]] = {"weather": "sunny", "time": ["noon", Answer("one")]}
    with ScriptedEngine(["else"], by_text=by_text) as engine:
        asked = ["the time?", "the weather?", "the time?", "who?", "the weather?"]
        assert [content(post(engine, text)) for text in asked] == ["noon", "sunny", "one", "else", "sunny"]
        assert post(engine, "the time?").status_code == 400
        assert engine.exhausted == [6]


def test_a_function_may_answer_or_pass() -> None:
    def respond(request: RecordedRequest) -> str | None:
        return f"{request.ordinal}: {request.text}" if request.text != "pass" else None

    with ScriptedEngine(["scripted"], respond=respond) as engine:
        assert [content(post(engine, text)) for text in ("a", "pass", "b")] == ["1: a", "scripted", "3: b"]


def test_a_script_that_has_run_out_says_so_and_names_the_request() -> None:
    with ScriptedEngine(["only one"]) as engine:
        post(engine)
        response = post(engine)
        assert response.status_code == 400
        assert response.json()["error"]["message"] == "The script has no reply for request 2."
        assert engine.exhausted == [2]


def test_a_script_that_raises_is_raised_where_the_test_can_see_it() -> None:
    def respond(request: RecordedRequest) -> str:
        raise KeyError(request.text)

    engine = ScriptedEngine(respond=respond)
    with pytest.raises(KeyError, match="Hello"), engine:
        assert post(engine).status_code == 400


def test_every_request_is_remembered() -> None:
    with ScriptedEngine(["a", "b"]) as engine:
        post(engine, "first", seed=7)
        post(engine, "second", stream=True)
        first, second = engine.requests
        assert (first.ordinal, first.text, first.body["seed"], first.streamed) == (1, "first", 7, False)
        assert (second.ordinal, second.text, second.streamed) == (2, "second", True)
        assert json.loads(first.raw) == first.body
        assert first.headers["content-type"] == "application/json"


def test_a_key_is_wanted_on_every_page_if_there_is_one() -> None:
    with ScriptedEngine(api_key="k") as engine:
        assert post(engine).status_code == 401
        assert httpx.get(f"{engine.url}/models", trust_env=False).status_code == 401
        allowed = httpx.get(f"{engine.url}/models", headers={"Authorization": "Bearer k"}, trust_env=False)
        assert allowed.json()["data"][0]["id"] == "scripted"
        assert engine.requests == []


@pytest.mark.parametrize("nonsense", [b"", b"{", b"[1]", b"\xff"])
def test_a_request_that_is_not_an_object_is_refused(nonsense: bytes) -> None:
    with ScriptedEngine(["hi"]) as engine:
        response = httpx.post(f"{engine.url}/chat/completions", content=nonsense, trust_env=False)
        assert response.status_code == 400
        assert content(post(engine)) == "hi"


async def test_down_breaks_requests_and_up_takes_the_same_port() -> None:
    async with ScriptedEngine([Fault("hang"), "back"]) as engine, EngineClient(engine.url) as client:
        url = engine.url
        asking = asyncio.create_task(ask(client))
        await eventually(lambda: engine.in_flight == 1)
        await asyncio.to_thread(engine.down)
        broken, refused = await asking, await ask(client)
        assert isinstance(broken, Lost)
        assert isinstance(refused, Lost)
        assert (broken.cause, refused.cause) == (Cause.DISCONNECTED, Cause.CONNECT)
        await asyncio.to_thread(engine.up)
        assert engine.url == url
        assert isinstance(await ask(client), Received)
        assert engine.aborted == []  # the client stayed; the engine went


async def test_an_engine_that_crashes_comes_back_by_itself() -> None:
    async with ScriptedEngine([Fault("refuse", delay_s=0.1), "back"]) as engine, EngineClient(engine.url) as client:
        arrivals = [await ask(client)]
        while not isinstance(arrivals[-1], Received):
            arrivals.append(await ask(client))
        causes = [arrival.cause for arrival in arrivals if isinstance(arrival, Lost)]
        assert causes[0] is Cause.DISCONNECTED
        assert set(causes[1:]) == {Cause.CONNECT}


async def test_the_peak_of_requests_at_work_is_counted() -> None:
    async with ScriptedEngine([Fault("hang")] * 7 + ["hi"]) as engine, EngineClient(engine.url) as client:
        asking = [asyncio.create_task(ask(client)) for _ in range(7)]
        await eventually(lambda: engine.in_flight == 7)
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        await eventually(lambda: engine.in_flight == 0)
        await ask(client)
        assert engine.peak_in_flight == 7
        assert sorted(engine.aborted) == [1, 2, 3, 4, 5, 6, 7]


async def test_it_stops_at_once_whatever_is_in_flight() -> None:
    replies: list[Line] = [Fault("hang"), Answer("x", delay_s=60)]
    async with ScriptedEngine(replies) as engine, EngineClient(engine.url) as client:
        asking = [asyncio.create_task(ask(client)) for _ in range(2)]
        await eventually(lambda: engine.in_flight == 2)
        await asyncio.to_thread(engine.stop)
        assert all(isinstance(arrival, Lost) for arrival in await asyncio.gather(*asking))
        assert engine.aborted == []


def test_waiting_ends_with_the_condition_or_says_what_never_came() -> None:
    tries = iter([0, "", "there"])
    assert wait_until(lambda: next(tries)) == "there"
    with pytest.raises(AssertionError, match=r"the letter was still not true after 0\.01 s"):
        wait_until(lambda: False, 0.01, what="the letter")


async def test_waiting_in_a_coroutine_lets_the_loop_go_on() -> None:
    done = asyncio.Event()
    asyncio.get_running_loop().call_soon(done.set)
    assert await eventually(done.is_set)
    with pytest.raises(AssertionError, match="the letter"):
        await eventually(lambda: False, 0.01, what="the letter")
