"""A retry on the wire: it extends the last message, changes nothing before it, and never shows the failed answer."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from stepladder.engine.pool import Settings
from stepladder.testing import Answer, Fault, eventually

from .conftest import NUMBER, asking

if TYPE_CHECKING:
    from stepladder.testing import Line, RecordedRequest

    from .conftest import Open

RULE = {"id": "lucky", "check": "output.n != 13", "pointer": "/n", "reason": "must be lucky"}
SECRET = "pangolin"
"""A word that only failed answers contain."""
TWICE = {"ask": "First?", "output": NUMBER, "next": "only"}


def parts(request: RecordedRequest) -> tuple[bytes, bytes]:
    """The bytes up to the end of the last message's text, and those behind it with the budget taken out."""
    text = json.dumps(request.text, ensure_ascii=False).encode()
    assert request.raw.count(text) == 1
    end = request.raw.index(text) + len(text) - 1
    budget = b'"max_completion_tokens":%d,' % request.body["max_completion_tokens"]
    assert request.raw.count(budget, end) == 1
    return request.raw[:end], request.raw[end:].replace(budget, b"")


FAILED: list[tuple[Line, str | None, int]] = [
    (Answer('{"n": 13}'), "- /n: must be lucky", 512),
    (Answer(f'{{"n": "{SECRET}"}}'), "- /n: must be an integer, not a string", 512),
    (Answer(f'{{"n": 1, "{SECRET}": 1}}'), f'- the answer: must not have the field "{SECRET}"', 512),
    (Answer(f"{SECRET}!"), "- the answer: the answer must be one JSON document; it contains none", 512),
    (Answer(""), "- the answer: the answer must be one JSON document; it is empty", 512),
    (Answer(f'{{"n": {"7" * 99}', finish_reason="length"), "- the answer repeated itself", 512),
    (Answer(f'{{"n": "{SECRET}', finish_reason="length"), None, 1024),
    (Answer(None, reasoning=f"Well, {SECRET}", finish_reason="length"), None, 1024),
    (Answer("busy", status=503), None, 512),
    (Answer("slow down", status=429, headers={"Retry-After": "0"}), None, 512),
    (Fault("reset_mid", f'{{"n": "{SECRET}"}}'), None, 512),
    (Fault("stream_error", f'{{"n": "{SECRET}"}}'), None, 512),
]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(("failed", "line", "budget"), FAILED)
async def test_a_retry_only_adds_a_note_and_changes_the_budget(
    works: Open, failed: Line, line: str | None, budget: int, stream: bool
) -> None:
    w = await works({"n": 1}, failed, {"n": 2})
    states = {"first": TWICE, "only": asking(ask="Größe? „so“", rules=[RULE], stream=stream)}
    done = await w.run(states, system="Be brief.", sampling={"temperature": 0, "seed": 7})
    assert done.status == "succeeded"
    _, asked, again = w.engine.requests
    (head, tail), (new_head, new_tail) = parts(asked), parts(again)
    assert new_head.startswith(head)
    assert new_tail == tail
    assert again.body["max_completion_tokens"] == budget
    added = new_head.removeprefix(head)
    if line is None:
        assert added == b""
    else:
        note = json.loads(b'"' + added + b'"')
        assert note.startswith(f"\n\nYour last answer was not accepted:\n{line}")
        assert note.count("\n- ") == 1
    if line is None or SECRET not in line:  # a field that must not be present has to be named
        assert SECRET.encode() not in again.raw
    own = {"x-request-id", "content-length"}
    assert {k: v for k, v in again.headers.items() if k not in own} == {
        k: v for k, v in asked.headers.items() if k not in own
    }
    assert again.headers["x-request-id"] != asked.headers["x-request-id"]


async def test_a_retry_shows_only_the_latest_errors(works: Open) -> None:
    cut = Answer('{"n": 5', finish_reason="length", completion_tokens=512)
    w = await works({"n": -1}, {"n": 13}, Answer("busy", status=503), cut, {"n": 2})
    done = await w.run({"only": asking(rules=[RULE], retry={"attempts": 9})})
    assert done.status == "succeeded"
    first, second, third, fourth, fifth = w.engine.requests
    assert "must be at least 0" in second.text.removeprefix(first.text)
    assert third.text == f"{first.text}\n\nYour last answer was not accepted:\n- /n: must be lucky"
    assert fourth.raw == third.raw  # it never arrived
    assert fifth.text == third.text  # it needs room, and what was wrong before still is
    assert fifth.body["max_completion_tokens"] == 1024


async def test_a_worker_that_takes_over_sends_the_same_bytes(works: Open) -> None:
    w = await works({"n": 1}, {"n": 13}, Fault("hang"), {"n": 2})
    job = await w.submit({"first": TWICE, "only": asking(rules=[RULE])}, system="Be brief.")
    worker = asyncio.create_task(w.runner(owner="first").run_slice(job))
    await eventually(lambda: len(w.engine.requests) == 3)
    worker.cancel()
    with pytest.raises(asyncio.CancelledError):
        await worker
    assert (await w.drive(job, owner="second")).status == "succeeded"
    assert "must be lucky" in w.engine.requests[2].text
    assert w.engine.requests[3].raw == w.engine.requests[2].raw


# Connections


@pytest.mark.parametrize(("keep_alive_s", "connections"), [(30.0, [1, 1, 2, 2]), (0.0, [1, 2, 3, 4])])
async def test_a_lost_exchange_is_retried_on_a_fresh_connection(
    works: Open, keep_alive_s: float, connections: list[int]
) -> None:
    used: list[int] = []

    def answer(request: RecordedRequest) -> Any:
        used.append(w.engine.connections - before)
        return [{"n": -1}, Answer("busy", status=503), {"n": 13}, {"n": 2}][request.ordinal - 1]

    w = await works(respond=answer, settings=Settings(keep_alive_s=keep_alive_s))
    before = 0 if keep_alive_s else w.engine.connections  # kept from when the engine was asked who it is
    done = await w.run({"only": asking(rules=[RULE], stream=False, retry={"attempts": 9})})
    assert done.status == "succeeded"
    assert used == connections


# Bounds


async def test_a_first_budget_beyond_the_models_limit_is_lowered_to_it(works: Open) -> None:
    """vLLM answers 400 to a larger one, whatever the prompt."""

    def strict(request: RecordedRequest) -> Answer:
        if request.body["max_completion_tokens"] > 300:
            return Answer("max_completion_tokens must be at most max_model_len=300.", status=400)
        return Answer({"n": 1})

    w = await works(respond=strict, max_model_len=300)
    done = await w.run({"only": asking(max_completion_tokens=4096)})
    assert done.status == "succeeded"
    [attempt] = await w.attempts(done.id)
    assert attempt.max_completion_tokens == 300


async def test_another_model_is_bound_by_its_own_limit(works: Open) -> None:
    cut = Answer('{"n": 1', finish_reason="length", prompt_tokens=100, completion_tokens=200)
    w = await works(cut, {"n": 1}, max_model_len=300)
    done = await w.run({"only": asking(model="larger", max_completion_tokens=200)})
    assert done.status == "succeeded"
    assert [request.body["max_completion_tokens"] for request in w.engine.requests] == [200, 400]


async def test_the_failure_of_a_job_says_which_bound_it_was(works: Open) -> None:
    cut = Answer('{"n": 1', finish_reason="length", prompt_tokens=100, completion_tokens=64)
    w = await works(
        cut, Answer('{"n": 12', finish_reason="length", prompt_tokens=100, completion_tokens=80), max_model_len=180
    )
    done = await w.run({"only": asking(max_completion_tokens=64)}, retry={"attempts": 9})
    assert [request.body["max_completion_tokens"] for request in w.engine.requests] == [64, 80]
    assert done.failure == "attempts_exhausted"
    assert done.failure_detail is not None
    assert done.failure_detail.startswith("state only: the model's limit of 180 tokens, 100 of them for the prompt")
