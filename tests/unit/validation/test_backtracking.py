"""No pattern and no text keeps a worker busy. What hangs here hangs for hours, so that coming back is the test."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stepladder.validation.costs import MAX_CHARACTERS
from stepladder.validation.parse import MAX_BYTES, Parsed, parse
from stepladder.validation.schema import BadSchema, compile_schema
from support.schemas import compiled

STUCK = "could not be checked: the pattern takes too long on this text"
TANGLED = r"^(a*)*\1b$"
TEXT = "a" * 5_000


def reasons(schema: Any, value: Any) -> list[str]:
    return [found.reason for found in compiled(schema).violations(value)]


@pytest.mark.parametrize(
    "pattern",
    [
        r"^(a+)+$",
        r"^(a|a)*$",
        r"^(a|aa)+$",
        r"^(.*a){20}$",
        r"^([a-zA-Z]+)*$",
        r"^(a+a+)+b$",
        r"^(([a-z])+.)+[A-Z]([a-z])+$",
        r"^(\w+\s?)*$",
        r"^(a?){100}a{100}$",
        r"^(.{1,50}a){1,50}$",
        r"^([\w.-]+)+@([\w-]+\.)+[a-z]{2,}$",
    ],
)
def test_a_pattern_that_looks_only_forward_is_matched_in_linear_time(pattern: str) -> None:
    text = "a" * 500_000 + "!"
    assert reasons({"pattern": pattern}, text) == [f"must match the pattern {pattern}"]
    assert reasons({"patternProperties": {pattern: False}}, {text: 1}) == []
    assert reasons({"propertyNames": {"pattern": pattern}}, {text: 1}) != []


@pytest.mark.parametrize(
    "pattern",
    [
        TANGLED,
        r"^(?=a)(a+)+(a|aa)+\1$",
        r"^(?:(?=a)a|a)*$",
        r"(.+)\1\1\1b$",
        r"(?=(.*)(?=\1b))c",
        r"(?:a(?=.*))*c",
        r"(?:(?<=a*)a)*c",
        r"(?=.*(?=.*(?=.*b)))c",
        r"(?=.*b)c",
        r"(?<=a*)b",
        r"a(?!.*$)",
    ],
)
def test_a_pattern_with_a_lookaround_or_backreference_is_given_up_in_time(pattern: str) -> None:
    for text in ("a" * (MAX_CHARACTERS - 1) + "!", "a" * (MAX_BYTES - 2)):
        [reason] = reasons({"pattern": pattern}, text)
        assert reason.startswith(("must match the pattern", STUCK, f"must have at most {MAX_CHARACTERS} characters"))


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"pattern": TANGLED}, TEXT),
        ({"not": {"pattern": TANGLED}}, TEXT),
        ({"oneOf": [{"pattern": TANGLED}, {}]}, TEXT),
        ({"if": {"pattern": TANGLED}, "then": False}, TEXT),
        ({"contains": {"pattern": TANGLED}, "minContains": 0, "maxContains": 0}, [TEXT]),
        ({"patternProperties": {TANGLED: False}}, {TEXT: 1}),
        ({"propertyNames": {"not": {"pattern": TANGLED}}}, {TEXT: 1}),
    ],
)
def test_a_pattern_given_up_counts_as_broken_in_every_place(schema: Any, value: Any) -> None:
    [reason] = reasons(schema, value)
    assert STUCK in reason


def test_with_a_lookaround_all_characters_of_names_and_texts_count() -> None:
    schema = {"properties": {"key": {"pattern": r"^(?=.*[A-Z])(?=.*\d).{8,}$"}}}
    rest = MAX_CHARACTERS - len("key" + "Ab345678" + "note")
    value = {"key": "Ab345678", "note": ["x" * (rest - 5), "x" * 5]}
    assert reasons(schema, value) == []
    [reason] = reasons(schema, {**value, "n": 1})
    assert reason.startswith(f"must have at most {MAX_CHARACTERS} characters in all its texts, and has 10001: ")
    assert reasons({"properties": {"key": {"pattern": "^[A-Z]"}}}, {"key": "A", "note": "x" * MAX_BYTES}) == []


@pytest.mark.parametrize(
    ("pattern", "fits", "fits_not"),
    [
        (r"^(?:(?!foo).)*$", "bar " * 2_000, "bar " * 2_000 + "foo"),
        (r"^(?!.*(\w)\1{3}).+$", "abcd" * 500, "abcd" * 500 + "eeee"),
        (r"^(?=.*[A-Z])(?=.*[0-9]).{8,}$", "a" * 2_000 + "A1", "a" * 2_000),
        (r"(?<=^|\s)#\w+(?!\S)", "x " * 2_000 + "#tag", "x# " * 2_000),
    ],
)
def test_honest_patterns_that_look_around_judge_long_texts(pattern: str, fits: str, fits_not: str) -> None:
    assert reasons({"pattern": pattern}, fits) == []
    assert reasons({"pattern": pattern}, fits_not) == [f"must match the pattern {pattern}"]


@pytest.mark.parametrize(
    "pattern",
    [
        "^(((a{100}){100}){100}){100}$",
        "(?:\\p{L}{1,1000}){1,1000}",
        "a{2000000000}",
        "(" * 100_000 + ")" * 100_000,
        "(?=" * 300 + "a" + ")" * 300,
    ],
    ids=["powers", "classes", "count", "brackets", "looks"],
)
def test_a_pattern_too_large_to_compile_is_refused_with_the_schema(pattern: str) -> None:
    assert isinstance(compile_schema({"pattern": pattern}), BadSchema)


def test_an_answer_of_the_largest_size_is_judged_by_a_pattern_in_every_field() -> None:
    text = json.dumps({f"k{number}": "a" * 80 + "!" for number in range(10_000)})
    parsed = parse(text.encode())
    assert isinstance(parsed, Parsed)
    schema = compiled({"additionalProperties": {"pattern": "^(a+)+$"}, "propertyNames": {"pattern": r"^(\w+)+$"}})
    assert [found.source for found in schema.violations(parsed.value)] == ["pattern"]
