"""What the model is told of its failed answer: where and why, and nothing that it said."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepladder.schemas.answer import Received, Verdict, Violation
from stepladder.schemas.outcomes import Cause, Outcome
from stepladder.validation.expressions import Expression, compile_expression
from stepladder.validation.ladder import Criteria, judge
from stepladder.validation.schema import Schema, compile_schema
from stepladder.validation.semantic import Rule
from stepladder.workflows.notes import note_on
from support.machines import rejected

HEAD = "\n\nYour last answer was not accepted:\n"


def told(*errors: tuple[str, str]) -> str:
    note = note_on(rejected(Outcome.SEMANTIC, "rule", errors=tuple(Violation(*error) for error in errors)))
    assert note.startswith(HEAD)
    return note.removeprefix(HEAD)


def test_each_error_is_a_line_with_its_pointer_and_its_reason() -> None:
    assert told(("/total", "must be hours times 3"), ("", "must be complete")) == (
        "- /total: must be hours times 3\n- the answer: must be complete"
    )


def test_a_verdict_without_errors_is_told_by_its_outcome() -> None:
    assert note_on(rejected(Outcome.PARSE_FAILURE, Cause.SYNTAX)) == f"{HEAD}- the answer: parse failure"


def test_a_runaway_is_told_to_end_whatever_else_was_found() -> None:
    found = (Violation("", "the answer repeated itself until it was cut off"),)
    note = note_on(rejected(Outcome.TRUNCATION, Cause.RUNAWAY, errors=found))
    assert note == f"{HEAD}- the answer repeated itself without end: keep it short, and end it"


def test_what_else_was_cut_off_is_told_by_its_errors() -> None:
    found = (Violation("", "the answer was cut off"),)
    assert note_on(rejected(Outcome.TRUNCATION, Cause.BUDGET, errors=found)) == f"{HEAD}- the answer: {found[0].reason}"
    assert "keep it short" not in note_on(rejected(Outcome.SEMANTIC, "runaway", errors=found))


@pytest.mark.parametrize(("count", "lines"), [(10, 10), (17, 11)])
def test_many_errors_are_counted_and_not_all_told(count: int, lines: int) -> None:
    said = told(*[(f"/{number}", "must be there") for number in range(count)]).split("\n")
    assert len(said) == lines
    assert ("- and 7 more" in said) is (lines > 10)


def test_long_words_are_cut_and_broken_lines_are_joined() -> None:
    line = told(("/" + "a" * 5000, "x" * 5000))
    assert line == f"- /{'a' * 199}: {'x' * 300}"
    assert told(("/a\n- b", "must\r\n\tnot\x00break out")) == "- /a - b: must not break out"


def test_what_a_rule_in_python_raised_is_for_people_and_not_for_the_model() -> None:
    def broken(output: Any, **_: Any) -> None:
        raise ValueError(f"cannot read {output!r}\nat all")

    verdict = judged({"n": "secret"}, rules=(Rule("broken", call=broken, pointer="/n"),))
    assert "secret" in verdict.errors[0].reason
    assert note_on(verdict) == f"{HEAD}- /n: could not be checked: ValueError"


def test_what_an_expression_could_not_be_evaluated_for_is_told() -> None:
    assert "turns.a is not known" in told(("", "could not be checked: turns.a is not known"))
    reason = "could not be checked: there is no time zone 'x' (in `date: now`)"
    assert reason in told(("", reason))


# Never the answer -----------------------------------------------------------------------------------------------------


def judged(value: Any, schema: Any = True, rules: tuple[Rule, ...] = ()) -> Verdict:
    return judged_text(json.dumps(value), schema, rules)


def judged_text(text: str, schema: Any = True, rules: tuple[Rule, ...] = ()) -> Verdict:
    compiled = compile_schema(schema)
    assert isinstance(compiled, Schema)
    body = json.dumps({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]})
    return judge(Received(200, body.encode()), Criteria(compiled, rules), {})


MARK = 987654321.5
SAID = "zebra-quagga-okapi"
SCHEMAS: list[Any] = [
    {"type": "object"},
    {"type": "integer"},
    {"type": ["integer", "null"]},
    {"enum": ["a", "b"]},
    {"const": 1},
    {"minLength": 100},
    {"maxLength": 3},
    {"pattern": "^[A-Z]$"},
    {"format": "date"},
    {"format": "uuid"},
    {"minimum": 1e12},
    {"maximum": 3},
    {"exclusiveMinimum": 1e12},
    {"exclusiveMaximum": 3},
    {"multipleOf": 7},
    {"minItems": 9},
    {"maxItems": 1},
    {"uniqueItems": True},
    {"contains": {"type": "null"}},
    {"contains": True, "maxContains": 1},
    {"contains": {"type": "null"}, "minContains": 2},
    {"items": {"type": "null"}},
    {"prefixItems": [{"type": "null"}]},
    {"items": False},
    {"unevaluatedItems": False},
    {"minProperties": 9},
    {"maxProperties": 0},
    {"required": ["other"]},
    {"dependentRequired": {"n": ["other"]}},
    {"dependentSchemas": {"n": False}},
    {"properties": {"n": False, "s": False}},
    {"properties": {"n": {"type": "null"}, "s": {"type": "null"}}},
    {"additionalProperties": False},
    {"additionalProperties": {"type": "null"}},
    {"unevaluatedProperties": False},
    {"patternProperties": {".": {"type": "null"}}},
    {"propertyNames": {"maxLength": 0}},
    {"anyOf": [{"type": "null"}, {"const": 1}]},
    {"anyOf": [{"properties": {"action": {"const": "go"}}, "required": ["action"]}]},
    {"oneOf": [{"type": "null"}, {"const": 1}]},
    {"oneOf": [True, True]},
    {"allOf": [{"const": 1}]},
    {"not": True},
    {"if": True, "then": {"const": 1}},
    {"$ref": "#/$defs/a", "$defs": {"a": {"const": 1}}},
    False,
]


@pytest.mark.parametrize("schema", SCHEMAS, ids=json.dumps)
def test_no_keyword_s_reason_quotes_a_value(schema: Any) -> None:
    broken = 0
    for value in (MARK, SAID, [SAID, SAID], [MARK, MARK], {"n": MARK, "s": SAID}, [{"s": SAID}], {"action": SAID}):
        verdict = judged(value, schema)
        broken += not verdict.ok
        told = note_on(verdict) if not verdict.ok else ""
        assert SAID not in told
        assert str(MARK) not in told
    assert broken, "the schema is broken by none of the values, and so nothing was tried"


def test_the_reason_of_a_rule_is_the_document_s_own() -> None:
    check = compile_expression("output.n == 1")
    assert isinstance(check, Expression)
    for reason in ("must be one", ""):
        note = note_on(judged({"n": MARK}, rules=(Rule("one", check=check, pointer="/n", reason=reason),)))
        assert str(MARK) not in note


NOT_JSON = st.sampled_from(
    [
        "Here is the total that you asked for: {d}",
        "{d} and I hope that this helps you",
        "```json\n{d}\n```",
        "<tool_call>{d}</tool_call>",
        "{{'total': {d}}}",
        '{{"total": {d},}}',
        '{{"total": {d}',
        '{{"total": {d} 7}}',
        "[{d}, NaN]",
        "[{d}, Infinity]",
        '{{"total": "{d}\n"}}',
        '{{"a": "{d}", "a": 1}}',
        '{{"total"：{d}}}',
        "{d} {d}",
        '{{"total": "\\ud800", "b": {d}}}',
    ]
)


@given(NOT_JSON, st.integers(10**8, 10**20))
def test_an_answer_that_is_no_json_is_diagnosed_and_not_quoted(shape: str, secret: int) -> None:
    verdict = judged_text(shape.format(d=secret), {"type": "object"})
    assert not verdict.ok
    assert str(secret) not in note_on(verdict)


@given(st.text(max_size=60).filter(lambda text: text.strip()))
def test_of_any_text_a_note_has_no_more_than_a_word(text: str) -> None:
    """A parse failure may name the word at which it was found, or a field's name: never a sentence."""
    verdict = judged_text(text)
    if not verdict.ok and len(text) > 45:
        assert text not in note_on(verdict)
