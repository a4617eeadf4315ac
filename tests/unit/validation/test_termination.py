from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stepladder.schemas.answer import Completion, Lost, Received, Usage
from stepladder.schemas.outcomes import Cause, Outcome
from stepladder.validation.completion import _loads
from stepladder.validation.sse import Event, events
from stepladder.validation.termination import ENDINGS, STOPS, check, is_runaway, receive

if TYPE_CHECKING:
    from collections.abc import Callable


def whole(message: dict[str, Any], finish: str | None = "stop", **more: Any) -> Received:
    body = {"choices": [{"index": 0, "message": message, "finish_reason": finish}], **more}
    return Received(200, json.dumps(body).encode())


def stream(*chunks: dict[str, Any]) -> Received:
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    return Received(200, body.encode(), streamed=True)


def test_a_completion_holds_all_that_the_answer_says() -> None:
    answer = whole(
        {"content": "{}", "reasoning": "hm", "refusal": None, "tool_calls": [{"id": "1"}]},
        "tool_calls",
        model="m",
        system_fingerprint="vllm-1",
        usage={"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
    )
    assert receive(answer).completion == Completion(
        content=b"{}",
        reasoning="hm",
        finish_reason="tool_calls",
        tool_calls=True,
        usage=Usage(7, 3),
        model="m",
        fingerprint="vllm-1",
    )


def test_a_stream_is_put_together_to_the_same_completion() -> None:
    def piece(delta: Any, finish: str | None = None, **more: Any) -> dict[str, Any]:
        return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], "model": "m", **more}

    answer = stream(
        piece({"role": "assistant", "content": ""}, system_fingerprint="vllm-1"),
        piece({"reasoning": "h"}),
        piece({"reasoning": "m"}),
        piece({"content": '{"ä'}),
        {"choices": [{"index": 1, "delta": {"content": "another choice"}, "finish_reason": "length"}]},
        piece({"content": '": 1}'}),
        piece({"tool_calls": [{"index": 0}]}),
        piece({}, "stop"),
        {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}},
    )
    assert receive(answer).completion == Completion(
        content='{"ä": 1}'.encode(),
        reasoning="hm",
        finish_reason="stop",
        tool_calls=True,
        usage=Usage(7, 3),
        model="m",
        fingerprint="vllm-1",
    )


def test_the_responses_api_streams_its_whole_answer_last() -> None:
    final = {
        "status": "incomplete",
        "incomplete_details": {"reason": "max_output_tokens"},
        "output": [{"type": "message", "content": [{"type": "output_text", "text": '{"a": 1'}]}],
        "usage": {"input_tokens": 5, "output_tokens": 9},
    }
    cut = [
        {"type": "response.output_text.delta", "delta": '{"a"'},
        {"type": "response.output_text.delta", "delta": ": 1"},
    ]
    reading = receive(stream(*cut, {"type": "response.incomplete", "response": final}))
    assert reading.completion.content == b'{"a": 1'
    assert (reading.completion.finish_reason, reading.completion.usage) == ("max_output_tokens", Usage(5, 9))
    assert receive(stream(*cut)).completion == Completion(content=b'{"a": 1')
    failed = receive(stream(*cut, {"type": "response.failed", "response": {"error": {"message": "lost"}}}))
    assert failed.rejection is not None
    assert failed.rejection.cause is Cause.STREAM_ERROR


def test_of_a_lost_answer_the_part_that_came_is_kept() -> None:
    body = b'data: {"choices":[{"index":0,"delta":{"content":"{\\"a\\""}}]}\n\ndata: {"choi'
    reading = receive(Lost(Cause.TIMEOUT, "no byte for 30 s", body, 200, streamed=True))
    assert reading.completion.content == b'{"a"'
    assert reading.rejection is not None
    assert (reading.rejection.cause, reading.rejection.reason) == (Cause.TIMEOUT, "no byte for 30 s")


def test_events_are_read_as_the_standard_has_it() -> None:
    body = b"\xef\xbb\xbf: hello\r\n\r\nid: 1\r\ndata: a\rdata:b\n\nevent: x\n\n\n"
    body += b"event: error\ndata:  c\xe2\x80\xa8d\n\ndata: end"
    assert list(events(body)) == [
        Event("", b"a\nb"),
        Event("error", " c\u2028d".encode()),
        Event("", b"end", cut=True),
    ]


@given(st.binary(max_size=40) | st.text('{}[]",:\\ud8Ee+-.01 NaIfinty\ufeff\n', max_size=40).map(str.encode))
@example(b'{"a": NaN}')
@example(b'[1e400, -0, 1.0, 1E2, {"a": 1, "b": 2, "a": 3}]')
@example(rb'["\ud800", "\ud83d\ude00"]')
@example(b'["\xed\xa0\x80"]')
@example(b"\xef\xbb\xbf[1]")
@example("[1]".encode("utf-16"))
@example(b"[" + b"1" * 4300 + b"]")
@example(b"[-" + b"1" * 4301 + b"]")
@example(b"[" * 500 + b"]" * 500)
def test_a_body_is_read_as_the_standard_library_reads_it(body: bytes) -> None:
    def told(read: Callable[[bytes], Any]) -> str:
        try:
            return repr(read(body))
        except ValueError:
            return "no JSON"

    assert told(_loads) == told(json.loads)


@pytest.mark.parametrize("words", [STOPS, frozenset(ENDINGS)])
def test_words_that_end_an_answer_are_written_in_lower_case_and_have_one_meaning(words: frozenset[str]) -> None:
    assert words == {word.lower() for word in words}
    assert not STOPS & ENDINGS.keys()


@pytest.mark.parametrize(
    ("finish", "tokens", "outcome"),
    [
        ("stop", 100, None),
        ("end_turn", 100, None),
        ("tool_calls", 99, None),
        ("tool_calls", 100, Outcome.TRUNCATION),
        ("somehow", 99, None),
        ("somehow", 100, Outcome.TRUNCATION),
        ("content_filter", 100, Outcome.TRUNCATION),
        ("length", 3, Outcome.TRUNCATION),
        ("LENGTH", 3, Outcome.TRUNCATION),
        ("somehow", None, None),
    ],
)
def test_tokens_at_the_budget_tell_of_a_cut_that_the_word_hides(
    finish: str, tokens: int | None, outcome: Outcome | None
) -> None:
    usage = {} if tokens is None else {"usage": {"prompt_tokens": 1, "completion_tokens": tokens}}
    found = check(receive(whole({"content": "{}"}, finish, **usage)), 100)
    assert (found.outcome if found else None) is outcome


@pytest.mark.parametrize(
    "text",
    [
        "1" * 40,
        '{"n": ' + "3141592653589793" * 4,
        "x" + " \n\t" * 20,
        "ab" * 30,
        "[[" * 40,
        "so it goes, " * 6,
        "0, " * 40,
    ],
)
def test_a_tail_that_repeats_is_a_runaway(text: str) -> None:
    assert is_runaway(text)
    assert is_runaway("some words before it: " + text)
    assert not is_runaway(text + " and then some words that are new")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1" * 39,
        "\n" + " " * 58,
        '{"title": "Login crashes on a cold morn',
        '[{"sku": "A1", "qty": 1}, {"sku": "A2", "qty": 2}, {"sku": "A3", "qty": 3}, {"sku": "A4", "qty": 4}, {"sku',
        "the quick brown fox " * 3 + "the qu",
    ],
)
def test_a_tail_that_does_not_repeat_is_none(text: str) -> None:
    assert not is_runaway(text)


def test_of_an_error_the_engine_s_own_words_are_kept_clean_and_short() -> None:
    shapes: list[bytes] = [
        b'{"error": {"message": "no such\\u0000model"}}',
        b'{"error": "no such model"}',
        b'{"object": "error", "message": "no such model", "code": 404}',
        b'{"detail": [{"msg": "no such"}, {"msg": "model"}]}',
        b'{"message": "no such model"}',
        b'data: {"error": {"message": "no such model"}}\n\n',
        b"no such model",
    ]
    told = {
        (rejection.reason.replace(";", "") if (rejection := receive(Received(404, body)).rejection) else "")
        for body in shapes
    }
    assert told == {"no such model"}
    long = receive(Received(404, b"x" * 100_000)).rejection
    assert long is not None
    assert len(long.reason) < 2100


@pytest.mark.parametrize("status", [0, 100, 199, 300, 304, 400, 402, 404, 409, 418, 451, 501, 529, 599, 600, 999])
def test_every_status_has_an_outcome(status: int) -> None:
    rejection = receive(Received(status, b"")).rejection
    assert rejection is not None
    assert rejection.outcome in (Outcome.TRANSPORT, Outcome.REQUEST_REJECTED)


def test_a_count_that_no_request_can_have_is_no_count() -> None:
    body = {"choices": [{"message": {"content": "{}"}, "finish_reason": "stop"}]}
    for count in (2**31, 2**63, -1):
        whole = json.dumps({**body, "usage": {"prompt_tokens": count, "completion_tokens": 3}}).encode()
        usage = receive(Received(200, whole)).completion.usage
        assert usage is not None
        assert (usage.prompt_tokens, usage.completion_tokens) == (0, 3)
