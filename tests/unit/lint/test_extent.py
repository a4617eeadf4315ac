from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepladder.lint.extent import extent
from stepladder.lint.patterns import read_pattern
from stepladder.validation.schema import Schema, compile_schema

REFUND: dict[str, Any] = {
    "type": "object",
    "properties": {
        "action": {"enum": ["refund", "refuse"]},
        "cents": {"type": "integer", "minimum": 0, "maximum": 1000},
        "reason": {"type": "string", "minLength": 1, "maxLength": 40},
        "note": {"type": "string", "maxLength": 8},
        "day": {"type": "string", "format": "date"},
    },
    "required": ["action", "cents", "reason"],
    "additionalProperties": False,
}
TREE: dict[str, Any] = {
    "$ref": "#/$defs/tree",
    "$defs": {
        "tree": {
            "anyOf": [
                {"type": "integer", "minimum": 0, "maximum": 9},
                {
                    "type": "object",
                    "properties": {"left": {"$ref": "#/$defs/tree"}, "right": {"$ref": "#/$defs/tree"}},
                    "required": ["left", "right"],
                    "additionalProperties": False,
                },
            ]
        }
    },
}


def compiled(schema: Any) -> Schema:
    found = compile_schema(schema)
    assert isinstance(found, Schema), found
    return found


def largest(schema: Any) -> Any:
    found = extent(compiled(schema))
    assert found.largest is not None, found.endless
    assert found.endless == ()
    return found.largest.value


@pytest.mark.parametrize(
    "pattern",
    [
        "^A-[0-9]{4}$",
        r"^\d{4}-\d{2}-\d{2}$",
        "^[A-Z]{2}[0-9]{2}[A-Z0-9]{1,30}$",
        "^(foo|bar+)(?:,(foo|bar))*$",
        r"^[^@\s]+@[a-z]+\.(com|org)$",
        r"^\p{Lu}[\w-]*$",
        "^(?<year>[12]\\d{3})?$",
        r"^\u0041\x42\/$",
        "^.{3,5}?$",
        "order",
    ],
)
def test_common_patterns_are_matched(pattern: str) -> None:
    assert isinstance(largest({"type": "string", "pattern": pattern, "maxLength": 60}), str)


@pytest.mark.parametrize("pattern", ["(?=a)b", r"(a)\1", "a" * 2000, r"\u{61}", "[[a]"])
def test_other_patterns_have_no_match(pattern: str) -> None:
    read = read_pattern(pattern)
    assert read is None or read.text(5) is None


@pytest.mark.parametrize(
    "word", ["date", "date-time", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri", "regex"]
)
def test_formats_are_met(word: str) -> None:
    assert largest({"type": "string", "format": word, "maxLength": 60})


def test_an_optional_part_that_cannot_be_built_is_left_out() -> None:
    odd = {"type": "string", "pattern": "(?=a)b", "maxLength": 3}
    assert largest({"type": "object", "properties": {"odd": odd}, "additionalProperties": False}) == {}
    assert extent(compiled({"type": "object", "properties": {"odd": odd}, "required": ["odd"]})).largest is None


def test_all_of_and_if_are_merged() -> None:
    least = {"minimum": 3}
    assert largest({"type": "integer", "maximum": 7, "allOf": [least]}) in (3, 7)
    found = largest({"type": "object", "properties": {"a": {"const": 1}}, "if": {"required": ["a"]}, "else": False})
    assert found == {"a": 1}


def test_the_largest_reaches_every_bound() -> None:
    schema = {
        "type": "object",
        "properties": {
            "rows": {"type": "array", "items": REFUND, "minItems": 1, "maxItems": 20},
            "code": {"type": "string", "pattern": "^[A-Z]{2}[0-9]{1,30}$"},
        },
        "additionalProperties": False,
    }
    found = largest(schema)
    assert len(found["rows"]) == 20
    assert all(set(row) == set(REFUND["properties"]) and len(row["reason"]) == 40 for row in found["rows"])
    assert {row["cents"] for row in found["rows"]} >= {1000}
    assert len(found["code"]) == 32


def test_the_largest_takes_the_longest_value_and_branch() -> None:
    assert largest({"enum": ["a", "longest", "ab"]}) == "longest"
    assert len(largest({"type": "string", "pattern": "^[A-Z]{1,300}$"})) == 300
    short, long = {"const": "no"}, {"type": "string", "maxLength": 50}
    assert len(largest({"anyOf": [short, long]})) == 50
    assert len(largest({"type": "array", "items": {"enum": ["a", "bb"]}, "uniqueItems": True, "maxItems": 9})) == 2


@pytest.mark.parametrize(
    ("schema", "where", "why"),
    [
        ({"type": "string"}, "", "maxLength"),
        ({"type": "string", "pattern": "^a+$"}, "", "maxLength"),
        ({"type": "string", "pattern": "a{3}"}, "", "maxLength"),
        ({"type": "string", "format": "email"}, "", "maxLength"),
        ({"type": "array", "items": {"type": "null"}}, "", "maxItems"),
        ({"type": "array", "items": {"type": "string"}, "maxItems": 2}, "/*", "maxLength"),
        ({"type": "integer", "minimum": 0}, "", "maximum"),
        ({}, "", "type"),
        ({"type": "object", "properties": {"x": {"minimum": 1}}}, "/x", "type"),
        ({"type": "object", "additionalProperties": {"type": "null"}}, "/*", "any name"),
        ({"type": "string", "maxLength": 10**9}, "", "100,000 characters"),
        ({"type": "array", "items": {"const": "abcdefgh"}, "maxItems": 10**9}, "", "100,000 characters"),
        (TREE, "/left", "its own kind"),
    ],
)
def test_a_value_without_a_limit_is_reported_with_its_place(schema: Any, where: str, why: str) -> None:
    found = extent(compiled(schema))
    assert found.largest is None
    assert any(place == where and why in reason for place, reason in found.endless), found.endless


HOSTILE: list[Any] = [
    {"type": "string", "minLength": 10**12},
    {"type": "array", "minItems": 10**9},
    {"type": "array", "items": {"type": "integer"}, "uniqueItems": True, "minItems": 10**6},
    {"type": "object", "minProperties": 10**9},
    {"type": "string", "pattern": "^(a?){1000}$", "minLength": 500},
    {"type": "string", "pattern": "^((a{50}){50}){2,3}$"},
    {"type": "number", "multipleOf": 1e-300, "minimum": -1e308, "maximum": 1e308},
    {"type": "integer", "minimum": 10**300},
    {"minimum": 5, "maximum": 4},
    {"required": [f"name{number}" for number in range(3000)]},
    {"allOf": [{"anyOf": [{"const": n}, {"const": n + 1}]} for n in range(200)]},
    {"anyOf": [{"anyOf": [{"anyOf": [{"type": "integer"}] * 20}] * 20}] * 20},
    {
        "$ref": "#/$defs/d0",
        "$defs": {f"d{n}": {"type": "array", "items": {"$ref": f"#/$defs/d{n + 1}"}, "minItems": 3} for n in range(45)}
        | {"d45": {"type": "string", "minLength": 1000}},
    },
    {
        "$ref": "#/$defs/d0",
        "$defs": {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(200)} | {"d200": {"type": "null"}},
    },
]


@pytest.mark.parametrize("schema", HOSTILE, ids=lambda schema: json.dumps(schema)[:40])
def test_hostile_schemas_end_by_counted_work(schema: Any) -> None:
    # Without the count these take hours or all memory: returning is the test.
    extent(compiled(schema))


words = st.sampled_from(["a", "b", "c"])
bounds = st.integers(0, 5) | st.sampled_from([10**9, 10**30])


def typed(*types: str, **keywords: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Schemas of one of the types with some of the keywords."""
    return st.fixed_dictionaries({"type": st.sampled_from(types)}, optional=keywords)


def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    members = st.dictionaries(words, inner, max_size=3)
    an_object = typed(
        "object",
        properties=members,
        required=st.lists(words, max_size=2, unique=True),
        additionalProperties=st.booleans() | inner,
        patternProperties=st.dictionaries(st.just("^[xyz]$"), inner),
        minProperties=bounds,
        maxProperties=bounds,
        propertyNames=inner,
        dependentRequired=st.dictionaries(words, st.lists(words, unique=True), max_size=2),
    )
    an_array = typed(
        "array",
        items=inner,
        prefixItems=st.lists(inner, min_size=1, max_size=2),
        contains=inner,
        minItems=bounds,
        maxItems=bounds,
        uniqueItems=st.booleans(),
    )
    branches = [st.fixed_dictionaries({word: st.lists(inner, min_size=1, max_size=4)}) for word in BRANCHES]
    conditions = [{"not": inner}, {"if": inner, "then": inner, "else": inner}]
    return st.one_of(an_object, an_array, *branches, *map(st.fixed_dictionaries, conditions))


BRANCHES = ("allOf", "anyOf", "oneOf")
leaves: st.SearchStrategy[Any] = st.one_of(
    typed(
        "integer",
        "number",
        minimum=st.integers(-9, 9) | st.floats(-9, 9),
        exclusiveMaximum=st.integers(-9, 10**20) | st.floats(0, 1e300),
        multipleOf=st.sampled_from([1, 2, 0.01, 0.5, 7.5, 1e-200]),
    ),
    typed(
        "string",
        minLength=bounds,
        maxLength=bounds,
        pattern=st.sampled_from(["^a*$", "^[ab]{2,}$", "(a|b)c?", "^(?!a)"]) | st.from_regex(r"[ab]{0,3}"),
        format=st.sampled_from(["date", "email", "uuid", "unknown"]),
    ),
    st.fixed_dictionaries(
        {"enum": st.lists(st.sampled_from([1, 1.0, "a", None, True, []]), min_size=1, max_size=3, unique_by=repr)}
    ),
    st.fixed_dictionaries({"const": words}),
    typed("null", "boolean", "array", "object"),
    st.just({"$ref": "#/$defs/again"}),
    st.booleans(),
)
schemas = st.recursive(leaves, nested, max_leaves=10)


@given(schemas, schemas)
def test_answers_are_valid_and_deterministic(schema: Any, again: Any) -> None:
    one = compile_schema({"properties": {"root": schema}, "required": ["root"], "$defs": {"again": again}})
    if not isinstance(one, Schema):  # an endless reference
        return
    found = extent(one)
    assert json.dumps(extent(one).largest) == json.dumps(found.largest)
    assert found.largest is None or one.violations(found.largest.value) == ()
    assert found.endless == () or found.largest is None


# Schemas that always have an answer: each has a type, and bounds that leave room.
plain: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from(
        [
            {"type": "boolean"},
            {"type": "integer", "minimum": -5, "maximum": 500},
            {"type": "number", "exclusiveMinimum": 0, "maximum": 2.5},
            {"type": "string", "maxLength": 12},
            {"type": "string", "pattern": "^[a-f]{2,9}$"},
            {"type": "string", "format": "date-time"},
            {"enum": ["north", "south"]},
            {"type": "array", "prefixItems": [{"type": "null"}], "items": False},
            {"type": ["null", "integer"], "minimum": 0, "maximum": 3},
        ]
    ),
    lambda inner: (
        st.dictionaries(words, inner, min_size=1, max_size=3).map(
            lambda members: {"type": "object", "properties": members, "required": sorted(members)[:1]}
        )
        | st.tuples(inner, st.integers(0, 2), st.integers(2, 5)).map(
            lambda parts: {"type": "array", "items": parts[0], "minItems": parts[1], "maxItems": parts[2]}
        )
        | st.lists(inner, min_size=1, max_size=3).map(lambda branches: {"anyOf": branches})
    ),
    max_leaves=8,
)


@given(plain)
def test_a_plain_schema_has_a_largest_answer(schema: Any) -> None:
    found = extent(compiled(schema))
    assert found.largest is not None
    assert len(json.dumps(found.largest.value)) == found.largest.width
