"""Whatever an engine does, the attempt has one outcome and one cause, and the job goes on or ends as it should."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import stepladder
from stepladder.engine.pool import Settings
from stepladder.testing import Answer, Fault, Raw

from .conftest import NUMBER, asking

if TYPE_CHECKING:
    from stepladder.testing import FaultKind, Line

    from .conftest import Open

HASTY = Settings(first_byte_timeout_s=0.3, stall_timeout_s=0.3)
VALID = ("valid", None)
NONE, FAILED, PASSED = "not_reached", "failed", "passed"


@pytest.mark.parametrize(
    ("kind", "streamed", "whole"),
    [
        ("reset_before", "disconnected", "disconnected"),
        ("reset_mid", "disconnected", "disconnected"),
        ("hang", "timeout", "timeout"),
        ("stall", "timeout", "timeout"),
        ("close_mid_stream", "disconnected", "disconnected"),
        ("stream_error", "stream_error", "http_5xx"),
        ("no_finish_reason", "stream_incomplete", "stream_incomplete"),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
async def test_a_transport_fault_is_retried(
    works: Open, kind: FaultKind, streamed: str, whole: str, stream: bool
) -> None:
    w = await works(Fault(kind, '{"n": 1}'), {"n": 2}, settings=HASTY)
    done = await w.run({"only": asking(stream=stream)})
    assert await w.outcomes(done.id) == [("transport", streamed if stream else whole), VALID]
    lost, _ = await w.attempts(done.id)
    assert lost.rungs is not None
    assert {lost.rungs.termination, lost.rungs.parse, lost.rungs.schema, lost.rungs.semantic} == {NONE}
    assert done.status == "succeeded"


async def test_an_engine_that_is_gone_for_a_while_is_a_failed_connection(works: Open) -> None:
    w = await works(Fault("refuse"), {"n": 2})
    job = await w.submit({"only": asking(retry={"transport": 2})})
    done = await w.drive(job)
    assert await w.outcomes(job) == [("transport", "disconnected"), ("transport", "connect"), ("transport", "connect")]
    assert done.failure == "attempts_exhausted"


async def test_a_slow_stream_and_one_without_its_last_line_are_answers(works: Open) -> None:
    w = await works(Fault("slow", {"n": 1}, delay_s=0.001), Fault("no_done", {"n": 1}))
    for _ in range(2):
        done = await w.run({"only": asking()})
        assert await w.outcomes(done.id) == [VALID]


@pytest.mark.parametrize(
    ("reply", "cause"),
    [
        (Answer("busy", status=429, headers={"Retry-After": "0"}), "http_429"),
        (Answer("loading", status=503), "http_503"),
        (Answer("broken", status=502), "http_5xx"),
        (Raw(b"<html><h1>502 Bad Gateway</h1></html>", 502, "text/html"), "http_5xx"),
        (Raw(b"<html><h1>Welcome</h1></html>", 200, "text/html"), "malformed_body"),
        (Raw(b'{"object": "chat.completion"}'), "malformed_body"),
        (Raw(b""), "malformed_body"),
        (Answer(None, finish_reason="abort"), "aborted"),
    ],
)
async def test_what_is_no_answer_is_transport_whatever_its_status(works: Open, reply: Line, cause: str) -> None:
    w = await works(reply, {"n": 2})
    done = await w.run({"only": asking()})
    assert await w.outcomes(done.id) == [("transport", cause), VALID]


@pytest.mark.parametrize(
    ("reply", "outcome", "cause", "failure"),
    [
        (
            Answer("The provided JSON schema contains features not supported by xgrammar.", status=400),
            "schema_rejected",
            None,
            "schema_rejected",
        ),
        (
            Answer("This model's maximum context length is 4096 tokens. Please reduce the length.", status=400),
            "request_rejected",
            "context_length",
            "request_rejected",
        ),
        (Answer("Unknown field.", status=400), "request_rejected", "bad_request", "request_rejected"),
        (Answer("Unauthorized", status=401), "request_rejected", "auth", "request_rejected"),
        (Answer(None, refusal="I cannot help with that."), "refused", "refusal", "refused"),
        (Answer(None, finish_reason="content_filter"), "refused", "content_filter", "refused"),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
async def test_what_would_come_out_the_same_again_is_not_asked_again(
    works: Open, reply: Line, outcome: str, cause: str | None, failure: str, stream: bool
) -> None:
    w = await works(reply)
    done = await w.run({"only": asking(stream=stream)})
    assert await w.outcomes(done.id) == [(outcome, cause)]
    assert (done.status, done.failure) == ("failed", failure)
    assert done.failure_detail is not None
    assert done.failure_detail.startswith("state only: ")
    assert len(w.engine.requests) == 1


async def test_a_failure_takes_the_edge_that_the_state_gives_it(works: Open) -> None:
    w = await works(Answer(None, refusal="No."), {"n": -1}, {"n": 5})
    states: dict[str, Any] = {
        "first": asking(on_failure={"refused": "second"}),
        "second": asking(retry={"attempts": 1}, on_failure={"attempts_exhausted": "third"}),
        "third": asking(next="done"),
        "done": {"end": "succeeded", "result": {"n": "turns.third.n", "first": "has(turns.first)"}},
    }
    done = await w.run(states)
    assert (done.status, done.result) == ("succeeded", {"n": 5, "first": False})
    turns = await w.reads.turns(done.id)
    assert [(turn.state, turn.outcome) for turn in turns] == [
        ("first", "refused"),
        ("second", "schema_violation"),
        ("third", "valid"),
    ]
    # What was refused never becomes part of the conversation.
    assert [message["role"] for message in w.engine.requests[2].messages] == ["user"]


async def test_an_unlisted_action_is_denied_and_ends_the_job(works: Open) -> None:
    output = {"type": "object", "properties": {"action": {"enum": ["go", "stay"]}}, "required": ["action"]}
    w = await works({"action": "stay"})
    done = await w.run({"only": asking(output=output, next={"go": "done"})})
    assert done.failure == "transition_denied"
    assert done.failure_detail is not None
    assert "stay" in done.failure_detail
    assert await w.outcomes(done.id) == [VALID]


@pytest.mark.parametrize("check", ["output.n / (output.n - 1) > 0", "signals.later.action == 'go'"])
async def test_a_rule_that_cannot_be_evaluated_fails_closed(works: Open, check: str) -> None:
    w = await works({"n": 1}, {"n": 1})
    states = {
        "only": asking(rules=[{"id": "odd", "check": check, "reason": "must be odd"}], next="later"),
        "later": {"wait": {"signal": "go"}, "next": {"go": "done"}},
    }
    done = await w.run(states)
    assert done.failure == "attempts_exhausted"
    assert set(await w.outcomes(done.id)) == {("semantic", "odd")}


@pytest.mark.parametrize("says", ["must be odd", ValueError("broken"), False, 7])
async def test_a_rule_in_python_fails_closed_too(works: Open, says: object) -> None:
    @stepladder.rule("odd")
    def odd(output: Any, **_: Any) -> Any:
        if isinstance(says, Exception):
            raise says
        return None if output["n"] % 2 else says

    w = await works({"n": 2}, {"n": 3})
    done = await w.run({"only": asking(rules=[{"id": "odd", "call": "odd", "pointer": "/n"}], retry={"attempts": 1})})
    assert await w.outcomes(done.id) == [("semantic", "odd")]
    assert done.failure == "attempts_exhausted"


async def test_the_bytes_of_every_attempt_are_stored_even_partial_ones(works: Open) -> None:
    w = await works(Fault("close_mid_stream", '{"n": 123456789012345678901234567890}'), {"n": 1})
    done = await w.run({"only": asking(output=NUMBER)})
    rows = await w.rows(
        "SELECT raw, http_status, raw_encoding FROM attempts WHERE job_id = %s ORDER BY ordinal", done.id
    )
    assert [row["http_status"] for row in rows] == [200, 200]
    assert all(row["raw"] for row in rows)
    half, _ = await w.attempts(done.id)
    assert half.content_bytes is not None
    assert b'{"n": 123456789012345678901234567890}'.startswith(half.content_bytes)
