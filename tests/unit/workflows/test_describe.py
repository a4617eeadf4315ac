from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from stepladder.lint.actions import with_tools
from stepladder.workflows.describe import MOST_LINES, describe
from support.machines import QUERY, tool


def lines(schema: Any) -> list[str]:
    return describe(schema, strict=True).splitlines()[1:]


def line(value: Any) -> str:
    """What is said of one required field."""
    (text,) = lines({"type": "object", "properties": {"x": value}, "required": ["x"]})
    return text.removeprefix("- x: ")


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({}, "any value"),
        (True, "any value"),
        ({"type": "integer"}, "integer"),
        ({"type": "integer", "minimum": 0, "maximum": 9}, "integer from 0 to 9"),
        ({"type": "number", "minimum": 0.5}, "number from 0.5"),
        ({"type": "number", "maximum": 0}, "number up to 0"),
        ({"type": "boolean"}, "true or false"),
        ({"type": ["string", "null"]}, "string or null"),
        ({"type": "string", "minLength": 0, "maxLength": 0}, "string of at most 0 characters"),
        ({"type": "array", "minItems": 2, "maxItems": 9}, "list of at least 2 items, of at most 9 items"),
        ({"type": "string", "pattern": "^a$"}, "string matching ^a$"),
        ({"type": "string", "format": "date"}, "string as date"),
        ({"enum": ["a"]}, 'exactly "a"'),
        ({"enum": ["é", 1, None]}, 'one of "é", 1, null'),
        ({"const": {"a": 1}}, 'exactly {"a": 1}'),
        ({"type": "string", "description": "who pays"}, "string (who pays)"),
        ({"type": "array", "maxItems": 3}, "list of at most 3 items"),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, 'list, each one of "a", "b"'),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string or null"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}], "description": "if known"}, "integer or null (if known)"),
    ],
)
def test_a_field_is_told_in_one_line(schema: Any, text: str) -> None:
    assert line(schema) == text


def test_fields_may_be_left_out_unless_they_are_required() -> None:
    properties = {"a": {"type": "string"}, "b": {"type": "string"}}
    assert lines({"type": "object", "properties": properties, "required": ["b"]}) == [
        "- a: string, may be left out",
        "- b: string",
    ]


def test_fields_inside_fields_and_lists_are_indented() -> None:
    inner = {"type": "object", "properties": {"q": {"type": "integer"}}, "required": ["q"]}
    schema = {
        "type": "object",
        "properties": {"one": inner, "many": {"type": "array", "items": inner}},
        "required": ["one", "many"],
    }
    assert lines(schema) == ["- one: object", "  - q: integer", "- many: list", "  - q: integer"]


def test_a_choice_of_tools_is_told_branch_by_branch() -> None:
    own: dict[str, Any] = {"type": "object", "properties": {"action": {"enum": ["stop"]}}, "required": ["action"]}
    assert lines(with_tools(own, [tool("look", parameters=QUERY, description="Looks.")])) == [
        "either",
        '  - action: exactly "stop"',
        "or",
        '  - action: exactly "look" (Looks.)',
        "  - arguments: object",
        "    - q: string",
    ]


class Plan(BaseModel):
    name: Literal["basic", "premium"]


class Bill(BaseModel):
    plan: Plan = Field(description="the plan of the team")
    hours: int | None
    tags: list[str] = Field(max_length=3)


def test_pydantics_references_keep_what_is_said_of_the_field() -> None:
    assert lines(Bill.model_json_schema()) == [
        "- plan: object (the plan of the team)",
        '  - name: one of "basic", "premium"',
        "- hours: integer or null",
        "- tags: list of at most 3 items, each string",
    ]


TREE: dict[str, Any] = {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#"}}}}
LISTS = {"$defs": {"L": {"type": "array", "items": {"$ref": "#/$defs/L"}}}, "properties": {"x": {"$ref": "#/$defs/L"}}}
WIDE = {f"p{n}": {"$ref": "#/$defs/W"} for n in range(100)}


@pytest.mark.parametrize("schema", [TREE, LISTS, {"$ref": "#/$defs/W", "$defs": {"W": {"properties": WIDE}}}])
def test_a_schema_that_holds_itself_is_told_in_bounded_words(schema: Any) -> None:
    assert 0 < len(lines(schema)) <= MOST_LINES


@pytest.mark.parametrize("schema", [{}, {"type": "array"}, {"type": "string"}])
def test_what_has_no_fields_is_one_document(schema: Any) -> None:
    assert describe(schema, strict=True) == "Answer with one JSON document."


def test_without_a_strict_decoder_the_whole_schema_stands_in_the_prompt() -> None:
    text = describe(TREE, strict=False)
    assert json.loads(text.splitlines()[-1]) == TREE
