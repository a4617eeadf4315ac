"""Schemas of all drafts: each means what its draft says, and the form for the decoder means the same."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepladder.validation.drafts import DRAFTS, LATEST, Draft
from stepladder.validation.schema import BadSchema, Schema, compile_schema
from support.schemas import compiled

OLDER = [draft for draft in DRAFTS if draft is not LATEST]
D4, D6, D7, D2019, D2020 = DRAFTS
NAMES_OF = [draft.name for draft in DRAFTS]


def of(draft: Draft, schema: dict[str, Any]) -> dict[str, Any]:
    return {"$schema": draft.uri, **schema}


def decoder_of(schema: Schema) -> Any:
    """What decides as the engine's decoder would, if it enforced all keywords of the latest draft."""
    form: Any = schema.schema
    return jsonschema_rs.Draft202012Validator(form)


def broken(schema: dict[str, Any], value: Any) -> list[str]:
    return [found.source for found in compiled(schema).violations(value)]


@pytest.mark.parametrize("draft", DRAFTS, ids=NAMES_OF)
def test_the_draft_may_be_spelled_in_each_usual_way(draft: Draft) -> None:
    bare = draft.uri.rstrip("#").partition("://")[2]
    for uri in (f"http://{bare}", f"https://{bare}", f"http://{bare}#", f"https://{bare}#"):
        assert broken({"$schema": uri, "type": "string"}, 1) == ["type"]


@pytest.mark.parametrize(
    ("drafts", "schema", "fits", "breaks", "keyword"),
    [
        ([D4], {"minimum": 1, "exclusiveMinimum": True}, 2, 1, "exclusiveMinimum"),
        ([D4], {"maximum": 1, "exclusiveMaximum": False}, 1, 2, "maximum"),
        ([D6, D7, D2019, D2020], {"exclusiveMinimum": 1}, 2, 1, "exclusiveMinimum"),
        ([D4, D6, D7, D2019], {"items": [{"type": "string"}]}, ["a", 1], [1], "type"),
        ([D4, D6, D7, D2019], {"items": [{}], "additionalItems": False}, [1], [1, 2], "additionalItems"),
        ([D4, D6, D7, D2019], {"items": {}, "additionalItems": False}, [1, 2], None, ""),
        ([D4, D6, D7], {"dependencies": {"a": ["b"]}}, {"a": 1, "b": 2}, {"a": 1}, "dependencies"),
        ([D4, D6, D7], {"dependencies": {"a": {"maxProperties": 1}}}, {"b": 1, "c": 2}, {"a": 1, "b": 2},
         "maxProperties"),
        ([D6, D7], {"dependencies": {"a": False}}, {}, {"a": 1}, "dependencies"),
        ([D4, D6, D7], {"$ref": "#/definitions/a", "maxLength": 1, "definitions": {"a": {"type": "string"}}},
         "long", 1, "type"),
        ([D2019, D2020], {"$ref": "#/$defs/a", "maxLength": 1, "$defs": {"a": {"type": "string"}}},
         "a", "long", "maxLength"),
        ([D4], {"const": 1, "contains": {}, "propertyNames": False, "if": True, "then": False}, [], None, ""),
        ([D6, D7, D2019, D2020], {"const": 1}, 1, 2, "const"),
        ([D6], {"if": True, "then": False}, 1, None, ""),
        ([D7, D2019, D2020], {"if": {"minimum": 1}, "then": {"maximum": 1}}, 0, 2, "maximum"),
        ([D4, D6, D7], {"dependentRequired": {"a": ["b"]}, "unevaluatedProperties": False}, {"a": 1}, None, ""),
        ([D2019, D2020], {"dependentRequired": {"a": ["b"]}}, {"b": 1}, {"a": 1}, "dependentRequired"),
        ([D4, D6, D7, D2019], {"prefixItems": [False]}, [1], None, ""),
        ([D2020], {"prefixItems": [{"type": "string"}], "items": False}, ["a"], ["a", 1], "items"),
        ([D2019], {"type": "object", "additionalProperties": {"$recursiveRef": "#"}}, {"a": {}}, {"a": 1}, "type"),
        ([D4, D6, D7, D2020], {"type": "object", "$recursiveRef": "#/nothing"}, {"a": 1}, 1, "type"),
    ],
)  # fmt: skip
def test_keywords_mean_what_the_draft_says(
    drafts: list[Draft], schema: dict[str, Any], fits: Any, breaks: Any, keyword: str
) -> None:
    for draft in DRAFTS:
        if draft in drafts:
            one = compiled(of(draft, schema))
            assert one.violations(fits) == ()
            assert keyword == "" or [found.source for found in one.violations(breaks)] == [keyword]
            decoder = decoder_of(one)
            assert decoder.is_valid(fits)
            assert keyword == "" or not decoder.is_valid(breaks)


NAMES = ("a", "b")
values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=2),
    max_leaves=5,
)


def schemas(draft: Draft) -> st.SearchStrategy[dict[str, Any]]:
    def holding(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        some, named = st.lists(inner, min_size=1, max_size=2), st.dictionaries(st.sampled_from(NAMES), inner)
        names = st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True)
        keywords: dict[str, Any] = {
            "type": st.sampled_from(["string", "integer", "array", "object", "null"]),
            "enum": st.lists(values, min_size=1, max_size=3, unique_by=repr),
            "maxLength": st.integers(0, 2),
            "items": inner | (inner if draft is LATEST else some),
            "additionalItems": inner if draft is not LATEST else st.booleans(),
            "properties": named,
            "additionalProperties": inner,
            "required": names,
            "allOf": some,
            "anyOf": some,
            "not": inner,
            "const": values,
            "if": inner,
            "then": inner,
            "$ref": st.sampled_from(["#/definitions/a", "#/definitions/b"]),
        }
        if draft.number <= 7:
            keywords["dependencies"] = st.dictionaries(st.sampled_from(NAMES), names | inner)
        else:
            keywords |= {"dependentSchemas": named, "unevaluatedItems": inner, "unevaluatedProperties": inner}
        bounds = st.fixed_dictionaries({}, optional=keywords)
        if draft.number > 4:
            return bounds
        numbers = {"minimum": st.integers(-2, 2), "exclusiveMinimum": st.booleans()}
        return bounds | st.fixed_dictionaries(numbers)

    leaves: st.SearchStrategy[Any] = st.just({}) if draft.number == 4 else st.booleans()
    inside = {"a": {"type": "string"}, "b": {"items": {"type": "integer"}}}
    return st.recursive(leaves, holding, max_leaves=6).map(
        lambda root: of(draft, {"properties": {"root": root}, "definitions": inside})
    )


@given(st.data(), st.sampled_from(DRAFTS))
def test_every_verdict_is_that_of_the_reference_implementation_and_the_decoder(data: Any, draft: Draft) -> None:
    schema = data.draw(schemas(draft))
    one, reference = compiled(schema), draft.described(schema)
    decoder = decoder_of(one)
    for root in data.draw(st.lists(values, min_size=1, max_size=5)):
        fits = one.violations({"root": root}) == ()
        assert reference.is_valid({"root": root}) == fits == decoder.is_valid({"root": root}), root


def test_the_decoder_gets_the_words_of_the_latest_draft() -> None:
    one = compiled(
        of(D4, {
            "id": "https://example.com/bill",
            "properties": {
                "n": {"minimum": 1, "exclusiveMinimum": True, "const": 3},
                "pair": {"items": [{"$ref": "part"}], "additionalItems": False},
                "odd": {"$ref": "#/properties/pair/items/0", "title": "Odd", "type": "null"},
            },
            "dependencies": {"n": ["odd"], "odd": {"required": ["n"]}},
            "definitions": {"part": {"id": "part", "type": "string"}},
        })
    )  # fmt: skip
    assert one.schema == {
        "properties": {
            "n": {"exclusiveMinimum": 1},
            "pair": {"prefixItems": [{"$ref": "#/definitions/part"}], "items": False},
            "odd": {"$ref": "#/properties/pair/prefixItems/0", "title": "Odd"},
        },
        "dependentRequired": {"n": ["odd"]},
        "dependentSchemas": {"odd": {"required": ["n"]}},
        "definitions": {"part": {"type": "string"}},
    }


LATER = {"$ref": "#/items"}


@pytest.mark.parametrize("draft", DRAFTS, ids=NAMES_OF)
def test_references_lead_to_any_part_of_the_document(draft: Draft) -> None:
    name = draft.id
    anchor = {name: "#short"} if draft.number <= 7 else {"$anchor": "short"}
    schema = of(draft, {
        name: "https://example.com/root.json",
        "properties": {
            "pointer": {"$ref": "#/definitions/text"},
            "whole": {"$ref": "https://example.com/root.json#/definitions/text"},
            "relative": {"$ref": "parts/text.json"},
            "inside": {"$ref": "parts/list.json#/definitions/item"},
            "anchor": {"$ref": "#short"},
            "urn": {"$ref": "urn:example:text"},
        },
        "definitions": {
            "text": {"type": "string"},
            "file": {name: "parts/text.json", "type": "string"},
            "list": {name: "parts/list.json", "items": {"$ref": "text.json"}, "definitions": {"item": LATER}},
            "short": {**anchor, "type": "string"},
            "urn": {name: "urn:example:text", "type": "string"},
        },
    })  # fmt: skip
    one = compiled(schema)
    decoder = decoder_of(one)
    for member in schema["properties"]:
        assert one.violations({member: "a"}) == ()
        assert [found.pointer for found in one.violations({member: 1})] == [f"/{member}"]
        assert not decoder.is_valid({member: 1})


@pytest.mark.parametrize("draft", DRAFTS, ids=NAMES_OF)
def test_what_needs_the_network_is_refused_and_the_drafts_metaschema_does_not(draft: Draft) -> None:
    outside = compile_schema(of(draft, {"properties": {"a": {"$ref": "other.json"}, "b": {"$ref": "#/definitions/c"}}}))
    assert isinstance(outside, BadSchema)
    assert [(fault.pointer, fault.code) for fault in outside.violations] == [
        ("/properties/a/$ref", "remote_reference"),
        ("/properties/b/$ref", "dangling_reference"),
    ]
    own = compiled(of(draft, {"$ref": draft.uri}))
    assert own.violations({"type": "text"}) != ()
    assert decoder_of(own).is_valid({"type": "text"})  # a decoder has no metaschema


@pytest.mark.parametrize("draft", DRAFTS, ids=NAMES_OF)
def test_a_name_in_a_reference_may_have_any_characters(draft: Draft) -> None:
    for name, reference in (("Page<Order>", "Page<Order>"), ("a b|ü", "a b|ü"), ("50%", "50%25"), ("a/b~", "a~1b~0")):
        schema = of(draft, {"items": {"$ref": f"#/definitions/{reference}"}, "definitions": {name: {"type": "string"}}})
        one = compiled(schema)
        assert [found.pointer for found in one.violations(["a", 1])] == ["/1"]
        if draft is not LATEST:
            assert not decoder_of(one).is_valid([1])


def test_notes_where_a_later_draft_has_schemas_are_none() -> None:
    one = compiled(of(D7, {"$defs": {"description": "Two of them", "text": {"type": "string"}}, "dependentSchemas": 3}))
    assert one.schema == {"$defs": {"text": {"type": "string"}}}


def test_a_part_may_be_in_a_draft_of_its_own() -> None:
    pair = of(D7, {"items": [{"type": "string"}], "additionalItems": False})
    for part in (pair, pair | {"$id": "https://example.com/pair"}):
        assert broken({"properties": {"a": part, "b": {"prefixItems": [False]}}}, {"a": ["x", "y"]}) == ["items"]
    whole = {"properties": {"a": of(D7, {"type": 7}), "b": of(D4, {"const": 1})}}
    found = compile_schema(whole)
    assert isinstance(found, BadSchema)
    assert [fault.pointer for fault in found.violations] == ["/properties/a/type"]


@pytest.mark.parametrize("draft", OLDER, ids=NAMES_OF[:-1])
def test_a_fault_has_its_place_in_the_schema_as_written(draft: Draft) -> None:
    cases = {"a": {"pattern": "(["}, "b": {"items": [{}, {"pattern": "(["}], "additionalItems": {"pattern": "(["}}}
    found = compile_schema(of(draft, {"dependencies" if draft.number <= 7 else "dependentSchemas": cases}))
    assert isinstance(found, BadSchema)
    word = "dependencies" if draft.number <= 7 else "dependentSchemas"
    places = ["a/pattern", "b/additionalItems/pattern", "b/items/1/pattern"]
    assert [fault.pointer for fault in found.violations] == [f"/{word}/{place}" for place in places]


def test_a_schema_that_names_no_draft_is_told_which_it_may_mean() -> None:
    older: list[Any] = [{"items": [{}]}, {"minimum": 1, "exclusiveMinimum": True}]
    for schema in older:
        found = compile_schema(schema)
        assert isinstance(found, BadSchema)
        assert "without `$schema` it is draft 2020-12; for draft" in found.violations[0].remedy


hostile = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["#", "#/a", "#x", "urn:x", "http://[", "a", "%"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["$id", "id", "$ref", "$recursiveRef", "$dynamicRef", "$anchor", "$schema", "items", "$defs",
                         "dependencies", "properties", "additionalItems", "allOf", "exclusiveMinimum", "minimum"]),
        inner | st.sampled_from([draft.uri for draft in DRAFTS]),
        max_size=4,
    ),
    max_leaves=15,
)  # fmt: skip


@settings(max_examples=300)
@given(hostile)
def test_any_json_is_a_schema_or_is_told_why_not(schema: Any) -> None:
    found = compile_schema(schema)
    assert isinstance(found, Schema) or found.violations
