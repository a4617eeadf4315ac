"""The promised example, end to end: a wrong sum is caught, kept to the byte, told to the model and put right."""

from __future__ import annotations

import gzip
import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import stepladder
from stepladder.embedded.postgres import psql_path
from stepladder.schemas.event import EventKind
from stepladder.sdk import kit
from stepladder.testing import Answer, ScriptedEngine, run
from stepladder.testing.wire import wire_reply

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stepladder.testing import Ran

DOCUMENT = (Path(__file__).parent / "usage-bill.yaml").read_text()
CALLED = Answer('{"action": "usage_query", "team": "search"}', prompt_tokens=50, completion_tokens=14)
WRONG = Answer('{ "hours": 12,  "total": 35 }\n', prompt_tokens=101, completion_tokens=12, chunk_chars=3)
RIGHT = Answer('{"hours":12,"total":36}', prompt_tokens=120, completion_tokens=11)
APPROVED = {"approval": [{"action": "approve"}]}


@pytest.fixture(autouse=True)
def usage_query(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kit, "_tools", {})

    @stepladder.tool("usage_query", effect="read", permissions=["usage:read"])
    def usage_query(team: str) -> dict[str, int]:
        return {"hours": len(team) * 2}


def psql(url: str, query: str) -> list[list[str]]:
    """What people see: rows of text, unaligned, columns apart by a bar."""
    command = [str(psql_path()), url, "--no-psqlrc", "-At", "-v", "ON_ERROR_STOP=1", "-c", query]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [line.split("|") for line in done.stdout.splitlines()]


def written(engine: ScriptedEngine, request: int, answer: Answer) -> bytes:
    """The body that the engine sent for a request."""
    return b"".join(wire_reply(answer, engine.requests[request - 1], model=engine.model).pieces)


async def example(engine: ScriptedEngine, database_url: str, *, stream: bool = True, **options: Any) -> Ran:
    document = DOCUMENT if stream else DOCUMENT.replace("start: usage\n", "start: usage\nstream: false\n")
    return await run(document, {"team": "search"}, engine_url=engine.url, database_url=database_url, **options)


@pytest.mark.parametrize("stream", [True, False])
async def test_a_wrong_total_is_stored_to_the_byte_and_the_right_one_ends_the_job(
    database_url: str, stream: bool
) -> None:
    async with ScriptedEngine([CALLED, WRONG, RIGHT]) as engine:
        ran = await example(engine, database_url, stream=stream, signals=APPROVED)
        assert [request.streamed for request in engine.requests] == [stream] * 3
        sent = written(engine, 2, WRONG)

    assert (ran.job.status, ran.job.result, ran.job.failure) == ("succeeded", {"total": 36}, None)
    assert (ran.job.turn_count, ran.job.attempts, ran.job.tokens) == (2, 3, 50 + 14 + 101 + 12 + 120 + 11)
    query = """
        SELECT
            turn, attempt, outcome, cause, rung_termination, rung_parse, rung_schema, rung_semantic, finish_reason,
            http_status, prompt_tokens, completion_tokens, max_completion_tokens, model, engine_version, request_id
        FROM attempt_outcomes ORDER BY turn, attempt
    """
    rows = psql(database_url, query)
    passed = ["passed"] * 4
    said = ["stop", "200"]
    by = ["scripted", "0.32.0"]
    name = f"stepladder-{ran.job.id}"
    assert rows == [
        ["1", "1", "valid", "", *passed, *said, "50", "14", "128", *by, f"{name}-1-1"],
        ["2", "1", "semantic", "arithmetic", *passed[:3], "failed", *said, "101", "12", "512", *by, f"{name}-2-1"],
        ["2", "2", "valid", "", *passed, *said, "120", "11", "512", *by, f"{name}-2-2"],
    ]
    wrong = "FROM attempt_outcomes WHERE outcome = 'semantic'"
    [[errors, content, raw, encoding]] = psql(
        database_url,
        "SELECT errors, encode(content, 'hex'), encode(raw, 'hex'), raw_encoding " + wrong,
    )
    assert json.loads(errors) == [{"pointer": "/total", "reason": "must be hours times 3", "source": "arithmetic"}]
    assert bytes.fromhex(content) == str(WRONG.content).encode()
    assert encoding == ("gzip" if stream else "identity")
    body = bytes.fromhex(raw)
    assert (gzip.decompress(body) if stream else body) == sent


async def test_a_retry_extends_the_last_message_and_changes_nothing_before_it(database_url: str) -> None:
    async with ScriptedEngine([CALLED, WRONG, RIGHT]) as engine:
        await example(engine, database_url, signals=APPROVED)
        first, second = engine.requests[1:]
    assert "/total" in second.text
    assert "must be hours times 3" in second.text
    assert second.text.startswith(first.text)
    assert "35" not in second.text  # what was wrong is told, and not what was said: models copy it
    # One prefix of bytes up to the very end of the question is what an engine's prefix cache wants.
    question = json.dumps(first.text, ensure_ascii=False)[1:-1].encode()
    end = first.raw.index(question) + len(question)
    assert second.raw[:end] == first.raw[:end]
    assert _without_question(second.body) == _without_question(first.body)
    assert second.messages[:-1] == first.messages[:-1]


def _without_question(body: Mapping[str, Any]) -> dict[str, Any]:
    return {**body, "messages": body["messages"][:-1]}


async def test_the_request_says_everything_that_the_document_asked_for(database_url: str) -> None:
    async with ScriptedEngine([CALLED, RIGHT]) as engine:
        await example(engine, database_url)
        usage, bill = engine.requests
    assert usage.body["model"] == "scripted"
    assert (usage.body["temperature"], usage.body["seed"], usage.body["max_completion_tokens"]) == (0, 7, 128)
    assert "temperature" not in bill.body  # a state's sampling is its own
    assert [message["role"] for message in usage.messages] == ["system", "user"]
    assert [message["role"] for message in bill.messages] == ["system", "user", "assistant", "user"]
    assert bill.messages[2]["content"] == CALLED.content
    schema = usage.body["response_format"]["json_schema"]
    assert usage.body["response_format"]["type"] == "json_schema"
    assert schema["strict"] is True
    assert schema["schema"]["properties"]["action"] == {"enum": ["usage_query"]}
    assert usage.headers["x-request-id"] != bill.headers["x-request-id"]


async def test_without_an_approval_the_job_waits_and_shows_what_is_to_be_approved(database_url: str) -> None:
    async with ScriptedEngine([CALLED, RIGHT]) as engine:
        ran = await example(engine, database_url)
    assert (ran.job.status, ran.job.state, ran.job.waiting_for) == ("waiting", "approve", "approval")
    assert ran.job.result is None
    assert ran.events[-1].kind is EventKind.WAIT_STARTED
    assert psql(database_url, "SELECT status, state, waiting_for FROM job_overview") == [
        ["waiting", "approve", "approval"]
    ]
    assert psql(database_url, "SELECT body -> 'show' FROM visits WHERE kind = 'wait'") == [['{"total": 36}']]


@pytest.mark.parametrize(
    ("action", "status", "failure"), [("approve", "succeeded", None), ("refuse", "failed", "rejected")]
)
async def test_the_signal_decides_the_end(database_url: str, action: str, status: str, failure: str | None) -> None:
    async with ScriptedEngine([CALLED, RIGHT]) as engine:
        ran = await example(engine, database_url, signals={"approval": [{"action": action}]})
    assert (ran.job.status, ran.job.failure) == (status, failure)


async def test_the_other_views_count_what_happened(database_url: str) -> None:
    async with ScriptedEngine([CALLED, WRONG, RIGHT]) as engine:
        await example(engine, database_url, signals=APPROVED)
    turns = "SELECT workflow, version, turn, state, outcome, action, attempts, output FROM turn_outcomes ORDER BY turn"
    assert psql(database_url, turns) == [
        ["usage-bill", "1", "1", "usage", "valid", "usage_query", "1", '{"action": "usage_query", "team": "search"}'],
        ["usage-bill", "1", "2", "bill", "valid", "", "2", '{"hours": 12, "total": 36}'],
    ]
    rates = "SELECT attempts, valid, semantic, first_pass_format, semantic_pass FROM failure_rates"
    assert psql(database_url, rates) == [["3", "2", "1", "1.0000", "0.6667"]]


async def test_three_wrong_answers_go_the_way_that_the_document_gives_them(database_url: str) -> None:
    wrong = [Answer({"hours": 12, "total": total}) for total in (35, 37, 38)]
    async with ScriptedEngine([CALLED, *wrong]) as engine:
        ran = await example(engine, database_url)
        assert len(engine.requests) == 4
    assert (ran.job.status, ran.job.state, ran.job.failure) == ("failed", "broken", "rejected")
    assert [attempt.cause for attempt in ran.turns[1].attempts] == ["arithmetic"] * 3
