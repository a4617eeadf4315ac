"""References and drafts make no difference to what is found in a schema."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepladder.lint.audit.check import audit
from stepladder.lint.audit.remark import Role
from stepladder.validation.drafts import DRAFTS
from support.machines import findings_of

LEAVES = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["string", "integer", "number", "null", "array"]),
        "maxLength": st.integers(1, 9),
        "minimum": st.just(0),
        "maximum": st.just(9),
        "maxlenght": st.just(1),
        "pattern": st.sampled_from(["^a{3}$", "a"]),
        "enum": st.lists(st.sampled_from(["a", "b", 1, None]), min_size=1, max_size=2, unique=True),
    },
)
INSIDE = ("anyOf", "oneOf", "allOf")
HELD = ("properties", *INSIDE, "items")


def nested(inner: Any) -> Any:
    members = st.dictionaries(st.sampled_from(["answer", "reasoning", "a"]), inner, min_size=1)
    required = st.lists(st.sampled_from(["answer", "a", "b"]), max_size=2, unique=True)
    objects = st.fixed_dictionaries(
        {"type": st.just("object"), "properties": members},
        optional={"required": required, "additionalProperties": st.just(False)},
    )
    branches = [st.fixed_dictionaries({word: st.lists(inner, min_size=1, max_size=3)}) for word in INSIDE]
    return st.one_of(objects, st.fixed_dictionaries({"type": st.just("array"), "items": inner}), *branches)


def hoisted(schema: dict[str, Any]) -> dict[str, Any]:
    """Every schema inside under ``$defs``, as pydantic and zod write them."""
    definitions: dict[str, Any] = {}

    def referred(inner: Any) -> Any:
        name = f"D{len(definitions)}"
        definitions[name] = None
        definitions[name] = walked(inner)
        return {"$ref": f"#/$defs/{name}"}

    def walked(inner: Any) -> Any:
        found = dict(inner)
        for word in HELD:
            match found.get(word):
                case dict() as held if word == "properties":
                    found[word] = {name: referred(one) for name, one in held.items()}
                case dict() as held:
                    found[word] = referred(held)
                case list() as held:
                    found[word] = [referred(one) for one in held]
        return found

    root: dict[str, Any] = walked(schema)
    return {**root, "$defs": definitions}


@settings(max_examples=200)
@given(st.recursive(LEAVES, nested, max_leaves=12))
def test_definitions_get_the_findings_of_the_same_schema_written_out(schema: dict[str, Any]) -> None:
    def found(one: Any) -> set[tuple[str, str]]:
        return {(remark.code, remark.message) for remark in audit(one, Role.DECODED)}

    assert found(hoisted(schema)) == found(schema)


def test_schemas_that_contain_each_other_have_no_depth_bound() -> None:
    schema: Any = {
        "$ref": "#/$defs/a",
        "$defs": {
            "a": {"type": "object", "properties": {"b": {"$ref": "#/$defs/b"}}},
            "b": {"type": "array", "items": {"$ref": "#/$defs/a"}, "maxItems": 3},
        },
    }
    places = {remark.path for remark in audit(schema, Role.DECODED) if remark.code == "no_depth_bound"}
    assert places == {("$defs", "a", "properties", "b", "$ref"), ("$defs", "b", "items", "$ref")}


def lint(output: Any, *rules: Any) -> set[tuple[str, str]]:
    states = {"one": {"ask": "Hi", "output": output, "rules": rules, "next": "done"}, "done": {"end": "succeeded"}}
    document = {"name": "one", "version": 1, "start": "one", "states": states}
    return {(one.code, one.pointer.removeprefix("/states/one")) for one in findings_of(json.dumps(document))}


def test_an_endless_reference_is_shown_beside_all_other_findings() -> None:
    endless = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}, "required": ["next"]}
    output = {
        "type": "object",
        "properties": {
            "node": {"$ref": "#/$defs/node"},
            "text": {"type": "string", "maxlenght": 9},
            "code": {"pattern": "(["},
            "bounds": {"type": "array", "items": {"type": "null"}, "minItems": 3, "maxItems": 2},
            "lost": {"$ref": "#/$defs/none"},
            "action": {"enum": ["go"]},
        },
        "required": ["action"],
        "$defs": {"node": endless},
    }
    assert lint(output, {"id": "r", "check": "output.txet == ''", "reason": "x"}) >= {
        ("unknown_name", "/rules/0/check"),
        ("endless_reference", "/output/$defs/node/properties/next"),
        ("no_max_length", "/output/properties/text"),
        ("unknown_keyword", "/output/properties/text/maxlenght"),
        ("bad_schema", "/output/properties/code/pattern"),
        ("no_value", "/output/properties/bounds/minItems"),
        ("dangling_reference", "/output/properties/lost/$ref"),
        ("open_object", "/output"),
        ("unconditional", "/next"),
    }


@pytest.mark.parametrize("draft", DRAFTS[:-1], ids=lambda draft: str(draft.name))
def test_findings_on_an_older_draft_are_at_their_places_in_the_document(draft: Any) -> None:
    text = {"type": "string"}
    cases = {"pair": {"properties": {"more": {"minLength": 3, "maxLength": 2}}}}
    output = {
        "$schema": draft.uri,
        "type": "object",
        "properties": {
            "pair": {"type": "array", "items": [text, {"type": "string", "maxLength": 9}], "additionalItems": text},
            "closed": {"type": "array", "items": [{"enum": ["a"]}], "additionalItems": False},
            "later": {"type": "string", "maxLength": 9, "prefixItems": [True]},
            "referred": {"$ref": "#/definitions/text"},
        },
        "dependencies" if draft.number <= 7 else "dependentSchemas": cases,
        "additionalProperties": False,
        "definitions": {"text": text},
    }
    word = "dependencies" if draft.number <= 7 else "dependentSchemas"
    assert lint(output) - {("untyped_constraint", f"/output/{word}/pair/properties/more/minLength")} == {
        ("no_max_length", "/output/properties/pair/items/0"),
        ("no_max_length", "/output/properties/pair/additionalItems"),
        ("no_max_items", "/output/properties/pair"),
        ("unknown_keyword", "/output/properties/later/prefixItems"),
        ("no_max_length", "/output/definitions/text"),
        ("not_enforced", f"/output/{word}"),
        ("no_value", f"/output/{word}/pair/properties/more/minLength"),
    }


def test_what_a_draft_ignores_beside_a_reference_is_idle() -> None:
    output: Any = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"a": {"$ref": "#/definitions/text", "maxLength": 3, "title": "A"}},
        "additionalProperties": False,
        "definitions": {"text": {"enum": ["a", "b"]}},
    }
    assert lint(output) == {("idle_keyword", "/output/properties/a/maxLength")}
    assert lint({**output, "$schema": DRAFTS[-1].uri}) == set()


def test_an_action_is_read_in_any_draft() -> None:
    output: Any = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$ref": "answer.json",
        "definitions": {
            "answer": {
                "$id": "answer.json",
                "type": "object",
                "properties": {"action": {"const": "go"}},
                "required": ["action"],
                "additionalProperties": False,
            }
        },
    }
    assert lint(output) == {("unconditional", "/next")}
