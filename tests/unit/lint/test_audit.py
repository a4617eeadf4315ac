"""The audit of a schema: for each code a schema that has the finding, and a similar one that does not."""

from __future__ import annotations

from typing import Any

import pytest

from stepladder.lint.audit import design
from stepladder.lint.audit.check import audit
from stepladder.lint.audit.remark import Role
from stepladder.schemas.codes import CODES, SCHEMAS
from stepladder.schemas.finding import Severity
from stepladder.schemas.pointer import pointer
from stepladder.workflows import describe

TEXT: dict[str, Any] = {"type": "string", "maxLength": 9}
WHOLE: dict[str, Any] = {"type": "integer", "minimum": 0, "maximum": 9}


def an_object(*, required: list[str] | None = None, closed: bool = True, **properties: Any) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    schema |= {} if required is None else {"required": required}
    return schema | ({"additionalProperties": False} if closed else {})


def found(schema: Any, role: Role = Role.DECODED) -> set[tuple[str, str]]:
    return {(remark.code, pointer(remark.path)) for remark in audit(schema, role)}


def deep(levels: int) -> dict[str, Any]:
    schema = an_object(x=WHOLE)
    for _ in range(levels - 1):
        schema = an_object(x=schema)
    return schema


NODE = an_object(v=WHOLE, next={"$ref": "#/$defs/node"})
REFERRED: dict[str, Any] = {"$defs": {"name": {"type": "string"}}, "type": "object", "additionalProperties": False}
TAGGED = [an_object(required=["k"], k={"const": word}) for word in ("a", "b")]

HAS_AND_HAS_NOT: list[tuple[str, Any, str, Any]] = [
    # The bounds, wherever they stand.
    ("no_max_length", {"type": "string"}, "", TEXT),
    ("no_max_length", {"type": ["string", "null"]}, "", {"enum": ["a", None]}),
    ("no_max_length", {"type": "string", "pattern": "^[a-z]+$"}, "", {"type": "string", "pattern": "^[a-z]{1,9}$"}),
    ("no_max_length", {"type": "string", "format": "email"}, "", {"type": "string", "format": "date"}),
    ("no_max_length", {"type": "string", "allOf": [{"minLength": 1}]}, "", {"type": "string", "allOf": [TEXT]}),
    (
        "no_max_length",
        REFERRED | {"properties": {"a": {"$ref": "#/$defs/name"}}},
        "/$defs/name",
        REFERRED | {"properties": {"a": {"$ref": "#/$defs/name", "maxLength": 9}}},
    ),
    (
        "no_max_length",
        {"type": "string", "anyOf": [{"minLength": 1}, {"maxLength": 9}]},
        "",
        {"type": "string", "maxLength": 9, "anyOf": [{"minLength": 1}, {"minLength": 2}]},
    ),
    (
        "no_max_length",
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "/anyOf/0",
        {"anyOf": [TEXT, {"const": None}]},
    ),
    ("no_range", {"type": "integer", "minimum": 0}, "", WHOLE),
    ("no_range", {"type": "number", "maximum": 0}, "", {"type": "number", "exclusiveMinimum": 0, "maximum": 1}),
    ("no_max_items", {"type": "array", "items": WHOLE}, "", {"type": "array", "items": WHOLE, "maxItems": 3}),
    (
        "no_max_items",
        {"type": "array", "prefixItems": [WHOLE]},
        "",
        {"type": "array", "prefixItems": [WHOLE], "items": False},
    ),
    (
        "no_max_properties",
        {"type": "object", "additionalProperties": WHOLE},
        "",
        {"type": "object", "additionalProperties": WHOLE, "maxProperties": 3},
    ),
    ("open_object", an_object(a=WHOLE, closed=False), "", an_object(a=WHOLE)),
    ("open_object", {"type": "object"}, "", {"type": "object", "additionalProperties": False}),
    ("any_value", {}, "", {"const": 1}),
    ("any_value", {"type": "array", "maxItems": 3}, "", {"type": "array", "maxItems": 3, "items": WHOLE}),
    (
        "any_value",
        an_object(a={"description": "anything"}),
        "/properties/a",
        an_object(a={"$ref": "#/properties/b"}, b=TEXT),
    ),
    ("no_depth_bound", {"$defs": {"node": NODE}, "$ref": "#/$defs/node"}, "/$defs/node/properties/next/$ref", deep(3)),
    # Keywords.
    ("untyped_constraint", {"maxLength": 9}, "/maxLength", TEXT),
    ("untyped_constraint", {"minimum": 0, "maximum": 9}, "/minimum", {"enum": [1], "minimum": 0}),
    (
        "untyped_constraint",
        {"allOf": [{"maxLength": 9}]},
        "/allOf/0/maxLength",
        {"type": "string", "allOf": [{"maxLength": 9}]},
    ),
    (
        "untyped_constraint",
        {"anyOf": [TEXT, {"minLength": 1}]},
        "/anyOf/1/minLength",
        {"anyOf": [TEXT, {"type": "null"}]},
    ),
    (
        "untyped_constraint",
        {"$defs": {"a": {}}, "$ref": "#/$defs/a", "maxLength": 9},
        "/maxLength",
        {"$defs": {"a": TEXT}, "$ref": "#/$defs/a", "maxLength": 5},
    ),
    ("idle_keyword", {"type": "integer", "minimum": 0, "maximum": 9, "maxLength": 9}, "/maxLength", WHOLE),
    (
        "unknown_keyword",
        TEXT | {"maxlenght": 9},
        "/maxlenght",
        TEXT | {"x-maxlenght": 9, "title": "t", "$comment": "c"},
    ),
    ("unknown_keyword", TEXT | {"nullable": True}, "/nullable", {"type": ["string", "null"], "maxLength": 9}),
    (
        "unknown_keyword",
        {"shared": {"a": TEXT}} | an_object(a=TEXT),
        "/shared",
        {"shared": {"a": TEXT}} | an_object(a={"$ref": "#/shared/a"}),
    ),
    (
        "unknown_format",
        {"type": "string", "format": "emial", "maxLength": 9},
        "/format",
        {"type": "string", "format": "date"},
    ),
    ("unchecked_content", TEXT | {"contentEncoding": "base64"}, "/contentEncoding", TEXT),
    ("unanchored_pattern", TEXT | {"pattern": "[a-z]"}, "/pattern", TEXT | {"pattern": "^[a-z]$"}),
    ("unanchored_pattern", TEXT | {"pattern": "^a|b$"}, "/pattern", TEXT | {"pattern": "^a$|^b$"}),
    ("unanchored_pattern", TEXT | {"pattern": "^a\\$"}, "/pattern", TEXT | {"pattern": "^[$]$"}),
    (
        "no_value",
        an_object(required=["b"], a=WHOLE),
        "/required",
        an_object(required=["b"], a=WHOLE) | {"patternProperties": {"^b$": WHOLE}},
    ),
    # What no engine enforces.
    (
        "not_enforced",
        {"type": "array", "items": TEXT, "maxItems": 3, "uniqueItems": True},
        "/uniqueItems",
        {"enum": [[1]]},
    ),
    ("not_enforced", TEXT | {"not": {"const": "a"}}, "/not", TEXT | {"enum": ["b"]}),
    ("not_enforced", TEXT | {"pattern": "^(?!a)[a-z]$"}, "/pattern", TEXT | {"pattern": "^(?:a)[a-z]$"}),
    ("not_enforced", TEXT | {"pattern": r"^(a|b)\1$"}, "/pattern", TEXT | {"pattern": r"^(a|b)\\1$"}),
    ("not_enforced", TEXT | {"pattern": r"^a\b.$"}, "/pattern", TEXT | {"pattern": r"^a\w.$"}),
    ("not_enforced", {"type": "string", "format": "iri"}, "/format", {"type": "string", "format": "uri"}),
    (
        "not_enforced",
        an_object(a=WHOLE) | {"dependentRequired": {"a": ["a"]}},
        "/dependentRequired",
        an_object(a=WHOLE),
    ),
    (
        "not_enforced",
        an_object(a=WHOLE) | {"propertyNames": {"maxLength": 3}},
        "/propertyNames",
        {"type": "object", "additionalProperties": WHOLE, "propertyNames": {"maxLength": 3}, "maxProperties": 3},
    ),
    (
        "loose_one_of",
        {"oneOf": [WHOLE, {"type": "number", "minimum": 0, "maximum": 5}]},
        "/oneOf",
        {"oneOf": [WHOLE, TEXT]},
    ),
    ("loose_one_of", {"oneOf": [an_object(k={"const": 1}), an_object(k={"const": 2})]}, "/oneOf", {"oneOf": TAGGED}),
    (
        "loose_one_of",
        {"oneOf": [an_object(required=["a"], a=WHOLE, closed=False), an_object(required=["b"], b=WHOLE, closed=False)]},
        "/oneOf",
        {"oneOf": [an_object(required=["a"], a=WHOLE), an_object(required=["b"], b=WHOLE)]},
    ),
    ("loose_one_of", {"oneOf": [WHOLE, WHOLE]}, "/oneOf", {"oneOf": [WHOLE, WHOLE | {"minimum": 10, "maximum": 19}]}),
    # Design.
    (
        "answer_first",
        an_object(answer=TEXT, reasoning=TEXT),
        "/properties/reasoning",
        an_object(reasoning=TEXT, answer=TEXT),
    ),
    ("too_nested", deep(5), "/properties/x" * 5, deep(4)),
    ("large_enum", {"enum": list(range(201))}, "/enum", {"enum": list(range(200))}),
    ("no_unknown", an_object(required=["a"], a=TEXT), "/required", an_object(required=["a"], a={"enum": ["a", "b"]})),
    ("no_unknown", an_object(required=["a"], a=WHOLE), "/required", an_object(a=WHOLE)),
    ("mostly_free", an_object(a=TEXT, b=TEXT, c=TEXT), "", an_object(a=TEXT, b=TEXT, c=WHOLE)),
]


@pytest.mark.parametrize(("code", "has", "where", "has_not"), HAS_AND_HAS_NOT)
def test_one_schema_has_the_finding_and_the_other_does_not(code: str, has: Any, where: str, has_not: Any) -> None:
    assert (code, where) in found(has)
    assert code not in {name for name, _ in found(has_not)}


def test_every_remark_has_a_message_and_a_remedy() -> None:
    for _, has, _, has_not in HAS_AND_HAS_NOT:
        for remark in (*audit(has, Role.DECODED), *audit(has_not, Role.DECODED)):
            assert remark.message
            assert remark.remedy
            assert remark.severity in CODES[remark.code].severities


def test_every_code_of_a_schema_has_a_case() -> None:
    elsewhere = {"bad_schema", "remote_reference", "dangling_reference", "endless_reference"}  # the compiler's
    assert set(SCHEMAS) - elsewhere == {code for code, *_ in HAS_AND_HAS_NOT}


def test_a_typical_good_schema_has_no_findings() -> None:
    schema = {
        "$defs": {"line": an_object(required=["item", "qty"], item=TEXT, qty=WHOLE)},
        **an_object(
            required=["action", "reason", "lines", "note"],
            reason=TEXT,
            action={"enum": ["pay", "refuse"]},
            lines={"type": "array", "items": {"$ref": "#/$defs/line"}, "minItems": 1, "maxItems": 9},
            note={"anyOf": [TEXT, {"type": "null"}], "default": None, "title": "Note"},
            day={"type": "string", "format": "date"},
            code={"type": "string", "pattern": "^[A-Z]{2}[0-9]{1,4}$"},
        ),
    }
    assert [remark for remark in audit(schema, Role.DECODED) if remark.severity is not Severity.HINT] == []


def test_a_misspelt_keyword_has_a_suggestion() -> None:
    remedies = {word: audit({"type": "array", word: 1}, Role.HANDED_IN)[0].remedy for word in ("maxitems", "zzz")}
    assert remedies == {
        "maxitems": "did you mean `maxItems`?",
        "zzz": "remove it, or call it `x-zzz` if it is a note for other programs",
    }


def test_properties_may_have_the_names_of_keywords() -> None:
    names = ("properties", "allOf", "not", "items", "propertyNames", "$ref", "required", "enum")
    schema = an_object() | {"properties": dict.fromkeys(names, TEXT)}
    assert found(schema) == {("mostly_free", "")}


def test_the_depth_in_the_warning_is_that_of_prompts() -> None:
    told = describe.describe(deep(design.DEEPEST_TOLD), strict=True)
    assert told.count("- x:") == design.DEEPEST_TOLD
    assert describe.describe(deep(design.DEEPEST_TOLD + 1), strict=True).count("- x:") == design.DEEPEST_TOLD
