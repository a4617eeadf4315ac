from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepladder.schemas.answer import Arrival, Lost, Received, Verdict, Violation
from stepladder.schemas.outcomes import CAUSES, Cause, Outcome, Rungs, RungState
from stepladder.validation.expressions import Expression, compile_expression
from stepladder.validation.ladder import RUNGS, Criteria, judge
from stepladder.validation.parse import MAX_BYTES
from stepladder.validation.schema import Schema, compile_schema
from stepladder.validation.semantic import Rule
from support.schemas import compiled
from support.specimens import SPECIMENS, streamed


def criteria_of(specimen: dict[str, Any]) -> Criteria:
    rules = []
    for spec in specimen.get("rules", ()):
        check = compile_expression(spec["check"])
        assert isinstance(check, Expression)
        rules.append(Rule(**spec | {"check": check}))
    known_bad = specimen.get("schema_known_bad", False)
    schema = compile_schema(specimen["schema"])
    schema = schema if isinstance(schema, Schema) else compiled(True)  # of one that the engine refused as well
    return Criteria(schema, tuple(rules), specimen["max_completion_tokens"], known_bad)


def arrival_of(response: dict[str, Any]) -> Arrival:
    if "transport" in response:
        return Lost(Cause(response["transport"]), "")
    body = response["body"]
    return Received(response["status"], (body if isinstance(body, str) else json.dumps(body)).encode())


def in_short(verdict: Verdict) -> tuple[Any, ...]:
    return verdict.outcome, verdict.cause, verdict.rungs, verdict.errors, verdict.observed, verdict.output


@pytest.mark.parametrize("specimen", SPECIMENS, ids=[specimen["id"] for specimen in SPECIMENS])
def test_a_specimen_gets_its_verdict_whole_and_streamed(specimen: dict[str, Any]) -> None:
    criteria, expect = criteria_of(specimen), specimen["expect"]
    verdict = judge(arrival_of(specimen["response"]), criteria, {})
    rungs = [getattr(verdict.rungs, name).value for name in ("termination", "parse", "schema", "semantic")]
    assert (verdict.outcome, verdict.cause, rungs) == (expect["outcome"], expect["cause"], expect["rungs"])
    assert verdict.ok == (verdict.errors == ())
    if "pointer" in expect:
        assert verdict.errors[0].pointer == expect["pointer"]
    if "output" in expect:
        assert verdict.output == expect["output"]
    if (stream := streamed(specimen["response"])) is not None:
        assert in_short(judge(Received(200, stream, streamed=True), criteria, {})) == in_short(verdict)


def test_the_specimens_show_every_outcome_and_every_cause() -> None:
    shown = {(specimen["expect"]["outcome"], specimen["expect"]["cause"]) for specimen in SPECIMENS}
    assert {outcome for outcome, _ in shown} == set(Outcome)
    causes = {(outcome, cause) for outcome, listed in CAUSES.items() for cause in listed}
    assert causes - shown == {(Outcome.PARSE_FAILURE, Cause.TOO_LARGE)}  # a file of a megabyte; see below


def test_every_outcome_has_its_rungs() -> None:
    assert list(RUNGS) == list(Outcome)


def chat(content: str | None, finish: str = "stop", **more: Any) -> Received:
    body = {"choices": [{"message": {"content": content}, "finish_reason": finish}], **more}
    return Received(200, json.dumps(body).encode(), retry_after_s=1.5)


ANY = Criteria(compiled(True))


def test_an_answer_over_the_bound_is_too_large() -> None:
    verdict = judge(chat(json.dumps("x" * MAX_BYTES)), ANY, {})
    assert (verdict.outcome, verdict.cause) == (Outcome.PARSE_FAILURE, Cause.TOO_LARGE)


def test_a_verdict_carries_the_completion_and_what_the_engine_said_beside_it() -> None:
    verdict = judge(chat("[1]", "halt", model="m", usage={"prompt_tokens": 2, "completion_tokens": 1}), ANY, {})
    assert (verdict.ok, verdict.output, verdict.retry_after_s) == (True, [1], 1.5)
    assert (verdict.completion.finish_reason, verdict.completion.model) == ("halt", "m")
    assert verdict.completion.usage is not None
    assert verdict.completion.usage.total == 3


def test_the_output_of_an_answer_that_fell_is_never_handed_on() -> None:
    rule = Rule("never", call=lambda *_, **__: "must be better")
    verdict = judge(chat("[1]"), Criteria(compiled(True), (rule,)), {})
    assert (verdict.outcome, verdict.output) == (Outcome.SEMANTIC, None)


def test_observed_rules_are_recorded_beside_either_verdict() -> None:
    seen = Rule("seen", call=lambda *_, **__: "must be watched", severity="observe")
    broken = Rule("broken", call=lambda *_, **__: "must be fixed")
    observed = (Violation("", "must be watched", "seen"),)
    passed = judge(chat("1"), Criteria(compiled(True), (seen,)), {})
    fell = judge(chat("1"), Criteria(compiled(True), (seen, broken)), {})
    assert (passed.ok, passed.observed) == (True, observed)
    assert (fell.cause, fell.observed, len(fell.errors)) == ("broken", observed, 1)


def test_rules_read_the_machine_s_names_and_the_output() -> None:
    check = compile_expression("output.n == turns.ask.n && input.team == 'a'")
    assert isinstance(check, Expression)
    criteria = Criteria(compiled(True), (Rule("carried", check=check),))
    names: dict[str, Any] = {"input": {"team": "a"}, "turns": {"ask": {"n": 1}}, "output": "is overlaid"}
    assert judge(chat('{"n": 1.0}'), criteria, names).ok
    assert judge(chat('{"n": 2}'), criteria, names).cause == "carried"


FRAGMENTS = rb"""data: |data: [DONE]|event: error|{"choices":[|{"index":0,|"delta":{"content":|"finish_reason":"stop"|
"message":{"content":"{\"a\":1}"}|"usage":{"completion_tokens":1}|}]}|}|]|"output":[|{"type":"message","content":[|
{"error":{"code":400,"message":"failed to parse grammar"}}|\ud800|NaN|,|:|null|"|0"""
fragments = st.sampled_from([*FRAGMENTS.split(b"|"), b"\n\n", b"\r\n", b"\xff", b"\xed\xa0\x80", b"[" * 2000])


@given(
    st.lists(fragments | st.binary(max_size=4), max_size=14).map(b"".join),
    st.sampled_from([200, 200, 200, 400, 500, 0]),
    st.booleans(),
    st.booleans(),
)
def test_whatever_the_bytes_there_is_one_verdict_and_nothing_is_raised(
    body: bytes, status: int, as_stream: bool, known_bad: bool
) -> None:
    verdict = judge(Received(status, body, as_stream), Criteria(compiled(True), schema_known_bad=known_bad), {})
    assert verdict.ok == (verdict.rungs == Rungs(*[RungState.PASSED] * 4))
    assert verdict.cause is None or verdict.cause in CAUSES.get(verdict.outcome, ())
    lost = judge(Lost(Cause.DISCONNECTED, "", body, status, as_stream), ANY, {})
    assert (lost.outcome, lost.cause) == (Outcome.TRANSPORT, Cause.DISCONNECTED)


FIELDS = """choices message delta content finish_reason usage error output type status code refusal tool_calls reasoning
stop_reason index text incomplete_details function_call completion_tokens response"""
json_like: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS.split()), inner, max_size=4),
    max_leaves=20,
)


@given(json_like, st.sampled_from([200, 400, 500]))
def test_bodies_of_any_shape_get_a_verdict(value: Any, status: int) -> None:
    whole = json.dumps(value)
    for body in (whole, f"data: {whole}\n\n", json.dumps({"choices": [value]}), f'data: {{"choices":[{whole}]}}\n\n'):
        judge(Received(status, body.encode()), ANY, {})


@given(st.text(max_size=40), st.sampled_from(["stop", "length", "tool_calls", None, "odd"]), st.integers(1, 7))
def test_a_streamed_answer_gets_the_verdict_of_the_whole_one(text: str, finish: str | None, size: int) -> None:
    whole = {"choices": [{"index": 0, "message": {"content": text}, "finish_reason": finish}]}
    pieces = [text[start : start + size] for start in range(0, len(text), size)] or [""]
    chunks = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    stream = "".join(f"data: {json.dumps(chunk)}\r\n\r\n" for chunk in chunks)
    assert judge(Received(200, json.dumps(whole).encode()), ANY, {}) == judge(Received(200, stream.encode()), ANY, {})
