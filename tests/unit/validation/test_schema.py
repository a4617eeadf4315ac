from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest

from stepladder.schemas.canonical import content_hash
from stepladder.validation.drafts import LATEST
from stepladder.validation.schema import MAX_SCHEMA_DEPTH, BadSchema, Schema, compile_schema
from support.schemas import compiled


def told(schema: Any, value: Any) -> list[tuple[str, str, str]]:
    return [(found.pointer, found.source, found.reason) for found in compiled(schema).violations(value)]


def faults(schema: Any) -> list[tuple[str, str]]:
    result = compile_schema(schema)
    assert isinstance(result, BadSchema), result
    return [(found.pointer, found.source) for found in result.violations]


def test_the_schema_is_kept_as_the_one_object_and_named_by_its_hash() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    result = compiled(schema)
    assert result.schema is schema
    assert result.hash == content_hash({"properties": {"a": {"type": "string"}}, "type": "object"})


def test_all_violations_come_by_pointer_and_then_by_keyword() -> None:
    schema = {
        "properties": {
            "priority": {"enum": ["low", "medium"]},
            "count": {"type": "integer", "maximum": 100},
            "size": {"maximum": 100, "multipleOf": 7},
        },
        "required": ["when", "what"],
        "additionalProperties": False,
    }
    assert told(schema, {"priority": "Low", "count": "3", "size": 150, "note": "", "memo": ""}) == [
        ("", "additionalProperties", 'must not have the field "memo"'),
        ("", "additionalProperties", 'must not have the field "note"'),
        ("", "required", 'must have the field "what"'),
        ("", "required", 'must have the field "when"'),
        ("/count", "type", "must be an integer, not a string"),
        ("/priority", "enum", 'must be one of "low", "medium"'),
        ("/size", "maximum", "must be at most 100"),
        ("/size", "multipleOf", "must be a multiple of 7"),
    ]


@pytest.mark.parametrize(
    ("schema", "value", "pointer", "keyword", "reason"),
    [
        ({"type": ["string", "null"]}, 1, "", "type", "must be null or a string, not an integer"),
        ({"type": "integer"}, 1.5, "", "type", "must be an integer, not a number with a fraction"),
        ({"type": "number"}, True, "", "type", "must be a number, not a boolean"),
        ({"const": {"a": 1}}, 2, "", "const", 'must be {"a": 1}'),
        ({"enum": ["only"]}, 2, "", "enum", 'must be "only"'),
        ({"maxLength": 3}, "four", "", "maxLength", "must have at most 3 characters, and has 4"),
        ({"minItems": 1}, [], "", "minItems", "must have at least 1 item, and has 0"),
        ({"maxProperties": 1}, {"a": 1, "b": 2}, "", "maxProperties", "must have at most 1 field, and has 2"),
        ({"format": "date"}, "2026-02-30", "", "format", "must be in the format date, such as 2026-01-31"),
        ({"pattern": "^[A-Z]+$"}, "abc", "", "pattern", "must match the pattern ^[A-Z]+$"),
        ({"exclusiveMinimum": 0}, 0, "", "exclusiveMinimum", "must be more than 0"),
        ({"additionalProperties": False}, {"x": 1}, "", "additionalProperties", 'must not have the field "x"'),
        ({"properties": {"a": False}}, {"a": 1}, "/a", "properties", "must not be present"),
        ({"prefixItems": [{}], "items": False}, [1, 2], "/1", "items", "must not be present"),
        ({"items": {"prefixItems": [{"type": "null"}]}}, [[1]], "/0/0", "type", "must be null, not an integer"),
        ({"contains": {"const": 1}, "maxContains": 1}, [1, 1], "", "maxContains", None),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, "", "dependentRequired", None),
        ({"if": {}, "then": {"required": ["b"]}}, {}, "", "required", 'must have the field "b"'),
        ({"propertyNames": {"maxLength": 1}}, {"ab": 1}, "", "propertyNames", None),
        ({"unevaluatedProperties": False}, {"a": 1}, "", "unevaluatedProperties", 'must not have the field "a"'),
        ({"oneOf": [{"type": "integer"}, {"minimum": 1}]}, 3, "", "oneOf", None),
        ({"not": {"type": "string"}}, "a", "", "not", None),
        (False, 1, "", "falseSchema", "must not be present"),
        ({"allOf": [{"type": "string"}, {"type": "string"}]}, 1, "", "type", "must be a string, not an integer"),
    ],
)
def test_each_keyword_is_told_in_plain_words(
    schema: Any, value: Any, pointer: str, keyword: str, reason: str | None
) -> None:
    [(at, source, why)] = told(schema, value)
    assert (at, source) == (pointer, keyword)
    assert why.startswith("must")
    assert reason in (None, why)


def test_long_values_and_long_lists_are_shortened() -> None:
    [(_, _, listed)] = told({"enum": [f"option {number}" for number in range(500)]}, "x")
    [(_, _, excluded)] = told({"not": {"enum": ["x" * 5000]}}, "x" * 5000)
    assert listed.endswith("(500 in all)")
    assert max(len(listed), len(excluded)) <= 400


UNION = {
    "anyOf": [
        {
            "type": "object",
            "properties": {"action": {"const": "search"}, "query": {"type": "string"}, "limit": {"type": "integer"}},
            "required": ["action", "query"],
        },
        {"$ref": "#/$defs/reply"},
        {"type": "null"},
    ],
    "$defs": {
        "reply": {
            "oneOf": [
                {"type": "object", "properties": {"action": {"enum": ["reply"]}}, "required": ["action", "text"]},
                {"type": "object", "properties": {"action": {"const": "stop"}}, "required": ["action", "why"]},
            ]
        }
    },
}


def test_of_a_union_the_branch_that_the_action_names_is_told() -> None:
    assert told(UNION, {"action": "search", "limit": "9"}) == [
        ("", "required", 'must have the field "query"'),
        ("/limit", "type", "must be an integer, not a string"),
    ]
    assert told(UNION, {"action": "stop"}) == [("", "required", 'must have the field "why"')]


def test_of_a_union_that_nothing_fits_all_actions_are_told() -> None:
    reason = 'the field "action" must be one of "search", "reply", "stop"'
    assert told(UNION, {"action": "shout"}) == [("", "anyOf", reason)]
    [(_, keyword, reason)] = told({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, {})
    assert (keyword, reason) == (
        "anyOf",
        'must fit one of 2 allowed forms: must have the field "a"; or must have the field "b"',
    )


def test_big_integers_are_compared_exactly() -> None:
    schema = {"type": "integer", "maximum": 2**64, "multipleOf": 2}
    assert told(schema, 2**64) == []
    assert [found[1] for found in told(schema, 2**64 + 1)] == ["maximum", "multipleOf"]
    assert told({"maximum": 10**300}, 10**300) == []
    assert [found[1] for found in told({"maximum": 10**300}, 10**300 + 1)] == ["maximum"]


def test_values_that_are_no_json_break_a_schema_that_looks_at_them() -> None:
    schema = {"properties": {"a": {"uniqueItems": True}}}
    assert [found[:2] for found in told(schema, {"a": ["ok", "\ud800"]})] == [("/a/1", "type")]
    assert [found[:2] for found in told(schema, {"a": {1, 2}})] == [("/a", "type")]
    assert told({"required": ["b"]}, MappingProxyType({"a": 1})) == [("", "required", 'must have the field "b"')]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (None, [("", "type")]),
        ([{}], [("", "type")]),
        ({"type": "text"}, [("/type", "anyOf")]),
        ({"minLength": -1, "required": "a"}, [("/minLength", "minimum"), ("/required", "type")]),
        ({"properties": {"a": {"maximum": "3", "type": 1}}},
         [("/properties/a/maximum", "type"), ("/properties/a/type", "anyOf")]),
        ({"$schema": "http://json-schema.org/draft-03/schema#"}, [("/$schema", "$schema")]),
        ({"$ref": "https://example.com/s"}, [("/$ref", "$ref")]),
        ({"items": {"$ref": "file:///etc/passwd"}}, [("/items/$ref", "$ref")]),
        ({"$ref": "#/$defs/none"}, [("/$ref", "$ref")]),
        ({"pattern": "([", "items": {"patternProperties": {"*": {}}}},
         [("/items/patternProperties", "patternProperties"), ("/pattern", "pattern")]),
        ({"const": "\ud800"}, [("/const", "type")]),
        ({"maximum": float("inf")}, [("/maximum", "type")]),
        ({"$ref": "#"}, [("", "$ref")]),
        ({"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"not": {"$ref": "#"}}}},
         [("/$defs/a/not", "$ref"), ("/allOf/0", "$ref")]),
        ({"anyOf": [{"$ref": "#"}, {"type": "null"}]}, [("/anyOf/0", "$ref")]),
        ({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}, [("/properties/a", "$ref")]),
        ({"type": "array", "items": {"$ref": "#"}, "minItems": 1}, [("/items", "$ref")]),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_schema_comes_back_at_once(schema: Any, expected: list[tuple[str, str]]) -> None:
    assert faults(schema) == expected


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {"$schema": LATEST.uri, "$id": "https://example.com/bill", "type": "object"},
        {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}}},
        {"anyOf": [{"type": "null"}, {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]}]},
        {"properties": {"a": {"$ref": "#name"}}, "$defs": {"n": {"$anchor": "name", "type": "string"}}},
        {"properties": {"a": {"$ref": "#/shared/a~1b%25"}}, "shared": {"a/b%": {"type": "string"}}},
        {"enum": [{"$ref": "https://example.com"}], "default": {"$ref": "#"}},
        {"properties": {"$ref": {"type": "string"}, "$id": {}, "$schema": {}}},
        {"pattern": r"^\p{Lu}(?<rest>\d{4})$"},
    ],
)
def test_sound_schemas_compile(schema: Any) -> None:
    assert isinstance(compile_schema(schema), Schema)


def test_depth_and_size_are_bounded() -> None:
    schema: Any = {}
    for _ in range(MAX_SCHEMA_DEPTH):
        schema = {"not": schema}
    assert faults(schema) == [("", "size")]
    assert faults({"enum": list(range(30_000))}) == [("", "size")]


@pytest.mark.parametrize("name", ["0", "7", "07", "+7", "00", "007a", "-1", "18446744073709551616"])
def test_a_field_whose_name_is_a_number_is_named_to_the_letter(name: str) -> None:
    schema = compile_schema({"additionalProperties": {"type": "object", "additionalProperties": False}})
    assert isinstance(schema, Schema)
    assert [found.pointer for found in schema.violations({name: {"x": 1}})] == [f"/{name}"]
    assert [found.pointer for found in schema.violations({name: [{"x": 1}]})] == [f"/{name}"]
