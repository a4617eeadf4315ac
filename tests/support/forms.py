"""A schema of each form that the tables of grammar backends know, with documents that fit it and some that do not."""

from __future__ import annotations

from typing import Any, NamedTuple


class Case(NamedTuple):
    """``breaks`` are documents that only a decoder which does not enforce the form would write."""

    schema: Any
    fits: list[Any]
    breaks: list[Any]


def _text(**keywords: Any) -> dict[str, Any]:
    return {"type": "string", **keywords}


def _whole(**keywords: Any) -> dict[str, Any]:
    return {"type": "integer", **keywords}


def _list(**keywords: Any) -> dict[str, Any]:
    return {"type": "array", **keywords}


def _object(**keywords: Any) -> dict[str, Any]:
    return {"type": "object", **keywords}


A, AB = {"a": {"type": "integer"}}, {"a": {"type": "integer"}, "b": {"type": "integer"}}
NAMED = {"^s_[a-z]+$": {"type": "string"}}
FORMATS = {
    "date": ("2026-01-31", "2026-1-31"),
    "time": ("12:00:00Z", "noon"),
    "date-time": ("2026-01-31T12:00:00Z", "2026-01-31 noon"),
    "duration": ("P1D", "1 day"),
    "email": ("a@b.co", "nope"),
    "hostname": ("example.org", "-bad-"),
    "ipv4": ("10.0.0.1", "10.0.0"),
    "ipv6": ("::1", "xyz"),
    "uri": ("https://a.org/x", "no uri here"),
    "uuid": ("0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5a6b", "x-y"),
    "uri-reference": ("/x", "a b c"),
    "uri-template": ("/{a}", "/{a"),
    "json-pointer": ("/a", "a"),
    "relative-json-pointer": ("0", "x"),
}
BOUNDS = {
    "minimum": ([11], [9]),
    "maximum": ([9], [11]),
    "exclusiveMinimum": ([11], [10]),
    "exclusiveMaximum": ([9], [10]),
    "multipleOf": ([20], [11]),
}

CASES: dict[str, Case] = {
    "type": Case({"type": "integer"}, [1], ["a", 1.5, {}]),
    "enum": Case({"enum": ["a", "b"]}, ["a"], ["c", 1]),
    "const": Case({"const": "a"}, ["a"], ["b"]),
    "enum beside other constraints": Case(_text(enum=["a", "bbbb"], maxLength=2), ["a"], ["bbbb"]),
    "minLength": Case(_text(minLength=3), ["abc"], ["ab"]),
    "maxLength": Case(_text(maxLength=3), ["abc"], ["abcd"]),
    "minLength without a type": Case({"minLength": 3}, ["abc"], ["ab"]),
    "maxLength without a type": Case({"maxLength": 3}, ["abc"], ["abcd"]),
    "minLength above 2000": Case(_text(minLength=2500), ["a" * 2500], ["a"]),
    "minLength beside pattern": Case(_text(pattern="^[A-Z]+$", minLength=3), ["ABC"], ["AB"]),
    "maxLength beside pattern": Case(_text(pattern="^[A-Z]+$", maxLength=3), ["ABC"], ["ABCD"]),
    "minLength beside format": Case(_text(format="email", minLength=8), ["aaaaa@b.co"], ["a@b.co"]),
    "maxLength beside format": Case(_text(format="email", maxLength=8), ["a@b.co"], ["aaaaaaaaaa@b.co"]),
    "pattern": Case(_text(pattern="^[A-Z]{2,4}$"), ["AB"], ["ab", "A", "ABCDE"]),
    "pattern without a type": Case({"pattern": "^[A-Z]+$"}, ["AB"], ["ab"]),
    "pattern, not anchored": Case(_text(pattern="[A-Z]+"), ["AB", "xAx"], ["ab"]),
    "pattern with \\d, \\w or \\s": Case(_text(pattern=r"^\d{3}$"), ["123"], ["12", "abc"]),
    "pattern with a look-around": Case(_text(pattern="^(?=a)[a-z]+$"), ["ab"], ["bb"]),
    "pattern with a back-reference": Case(_text(pattern=r"^(a|b)\1$"), ["aa"], ["ab"]),
    "pattern with a word boundary": Case(_text(pattern=r"^a\b.*$"), ["a b"], ["ab"]),
    "pattern with a Unicode property": Case(_text(pattern=r"^\p{Lu}+$"), ["AB"], ["ab"]),
    **{f"format {name}": Case(_text(format=name), [fits], [breaks]) for name, (fits, breaks) in FORMATS.items()},
    "format": Case(_text(format="idn-email"), ["a@b.co"], ["nope"]),
    "format without a type": Case({"format": "date"}, ["2026-01-31"], ["2026-1-31"]),
    **{f"{word} of an integer": Case(_whole(**{word: 10}), fits, breaks) for word, (fits, breaks) in BOUNDS.items()},
    **{
        f"{word} of a number": Case({"type": "number", word: 10}, fits, breaks)
        for word, (fits, breaks) in BOUNDS.items()
    },
    **{f"{word} without a type": Case({word: 10}, fits, breaks) for word, (fits, breaks) in BOUNDS.items()},
    "minimum of an integer, with a fraction": Case(_whole(minimum=9.5), [10], [9]),
    "maximum of an integer, with a fraction": Case(_whole(maximum=9.5), [9], [10]),
    "exclusiveMinimum of an integer, with a fraction": Case(_whole(exclusiveMinimum=9.5), [10], [9]),
    "exclusiveMaximum of an integer, with a fraction": Case(_whole(exclusiveMaximum=9.5), [9], [10]),
    "minimum of an integer, beyond 64 bits": Case(_whole(minimum=-(10**20), maximum=5), [5], [6]),
    "maximum of an integer, beyond 64 bits": Case(_whole(minimum=5, maximum=10**20), [5], [4]),
    "exclusiveMinimum of an integer, beyond 64 bits": Case(_whole(exclusiveMinimum=-(10**20), maximum=5), [5], [6]),
    "exclusiveMaximum of an integer, beyond 64 bits": Case(_whole(minimum=5, exclusiveMaximum=10**20), [5], [4]),
    "items": Case(_list(items={"type": "integer"}), [[1, 2]], [["a"]]),
    "items: false": Case(_list(items=False), [[]], [[1]]),
    "items beside prefixItems": Case(
        _list(prefixItems=[{"type": "integer"}], items=_text()), [[1, "a"]], [["a"], [1, 1]]
    ),
    "prefixItems": Case(_list(prefixItems=[{"type": "integer"}, _text()]), [[1, "a"]], [["a", 1]]),
    "minItems": Case(_list(items={"type": "integer"}, minItems=2), [[1, 2]], [[1]]),
    "maxItems": Case(_list(items={"type": "integer"}, maxItems=2), [[1, 2]], [[1, 2, 3]]),
    "minItems without a type": Case({"minItems": 2}, [[1, 2]], [[1]]),
    "maxItems without a type": Case({"maxItems": 2}, [[1, 2]], [[1, 2, 3]]),
    "minItems above 2000": Case(_list(items={"type": "integer"}, minItems=2500), [[1] * 2500], [[1]]),
    "type array without items": Case(_list(maxItems=3), [[], [1]], [[1, 2, 3, 4]]),
    "uniqueItems": Case(_list(items={"enum": ["a", "b"]}, uniqueItems=True), [["a", "b"]], [["a", "a"]]),
    "uniqueItems without a type": Case({"uniqueItems": True}, [[1, 2]], [[1, 1]]),
    "contains": Case(_list(items={"type": ["integer", "string"]}, contains=_whole()), [["a", 1]], [["a"]]),
    "contains without a type": Case({"contains": _whole()}, [["a", 1]], [["a"]]),
    "unevaluatedItems": Case(_list(prefixItems=[_whole()], unevaluatedItems=False), [[1]], [[1, 2]]),
    "properties": Case(_object(properties=A), [{"a": 1}], [{"a": "x"}]),
    "properties with one that is false": Case(_object(properties={"a": False}), [{}], [{"a": 1}]),
    "required": Case(_object(properties=A, required=["a"]), [{"a": 1}], [{}]),
    "required of a name that is not in properties": Case(
        _object(properties=A, required=["a", "z"]), [{"a": 1, "z": 2}], [{"a": 1}]
    ),
    "additionalProperties": Case(_object(properties=A, additionalProperties=False), [{"a": 1}], [{"a": 1, "b": 2}]),
    "patternProperties": Case(
        _object(patternProperties=NAMED, additionalProperties=False), [{"s_a": "x"}], [{"s_a": 1}, {"b": "x"}]
    ),
    "patternProperties beside further properties": Case(
        _object(properties=A, patternProperties=NAMED, additionalProperties=False),
        [{"a": 1, "s_a": "x"}],
        [{"s_a": 1}, {"b": "x"}],
    ),
    "patternProperties without a type": Case({"patternProperties": {"^s_": _text()}}, [{"s_a": "x"}], [{"s_a": 1}]),
    "propertyNames": Case(_object(propertyNames={"pattern": "^[a-z]+$"}), [{"a": 1}], [{"A": 1}]),
    "propertyNames beside additionalProperties": Case(
        _object(additionalProperties=_whole(), propertyNames={"pattern": "^[a-z]+$"}), [{"a": 1}], [{"A": 1}]
    ),
    "propertyNames beside properties": Case(
        _object(properties=A, additionalProperties=_whole(), propertyNames={"pattern": "^[a-z]+$"}),
        [{"a": 1}],
        [{"A": 1}],
    ),
    "propertyNames without a type": Case({"propertyNames": {"pattern": "^[a-z]+$"}}, [{"a": 1}], [{"A": 1}]),
    "minProperties": Case(_object(additionalProperties=_whole(), minProperties=1), [{"a": 1}], [{}]),
    "maxProperties": Case(_object(additionalProperties=_whole(), maxProperties=1), [{"a": 1}], [{"a": 1, "b": 1}]),
    "minProperties without a type": Case({"minProperties": 1}, [{"a": 1}], [{}]),
    "maxProperties without a type": Case({"maxProperties": 1}, [{"a": 1}], [{"a": 1, "b": 1}]),
    "dependentRequired": Case(_object(properties=AB, dependentRequired={"a": ["b"]}), [{"a": 1, "b": 1}], [{"a": 1}]),
    "dependentSchemas": Case(
        _object(properties=AB, dependentSchemas={"a": {"required": ["b"]}}), [{"a": 1, "b": 1}], [{"a": 1}]
    ),
    "unevaluatedProperties": Case(_object(properties=A, unevaluatedProperties=False), [{"a": 1}], [{"a": 1, "b": 1}]),
    "anyOf": Case({"anyOf": [_whole(), _text(maxLength=2)]}, [1, "ab"], ["abc", None]),
    "anyOf beside other constraints": Case(
        _object(properties=A, required=["a"], anyOf=[_object(properties=AB, required=["b"])]),
        [{"a": 1, "b": 1}],
        [{"a": 1}, {"b": 1}],
    ),
    "oneOf": Case({"oneOf": [_whole(), _text()]}, [1, "a"], [None]),
    "oneOf told apart by bounds": Case(
        {"oneOf": [_whole(minimum=0, maximum=5), _whole(minimum=6, maximum=9)]}, [1, 7], [11]
    ),
    "oneOf with branches that overlap": Case({"oneOf": [_whole(maximum=10), _whole(minimum=5)]}, [1, 11], [7]),
    "oneOf beside other constraints": Case(
        _object(properties=A, required=["a"], oneOf=[_object(properties=AB, required=["b"])]),
        [{"a": 1, "b": 1}],
        [{"a": 1}, {"b": 1}],
    ),
    "allOf with one branch": Case({"allOf": [_object(properties=A, required=["a"])]}, [{"a": 1}], [{}, {"a": "x"}]),
    "allOf with several branches": Case(
        {
            "allOf": [
                _object(properties={"a": _whole()}, required=["a"]),
                _object(properties={"b": _whole()}, required=["b"]),
            ]
        },
        [{"a": 1, "b": 1}],
        [{"a": 1}, {"b": 1}],
    ),
    "allOf of what is no object": Case({"allOf": [_whole(minimum=3, maximum=9)]}, [3], [1, "a", {}]),
    "allOf beside other constraints": Case(
        _object(properties=A, required=["a"], allOf=[_object(properties={"b": _whole()}, required=["b"])]),
        [{"a": 1, "b": 1}],
        [{"a": 1}, {"b": 1}],
    ),
    "not": Case(_text(**{"not": {"const": "a"}}), ["b"], ["a"]),
    "if": Case(_whole(**{"if": {"minimum": 5}, "then": {"maximum": 9}}), [1, 7], [11]),
    "$ref": Case({"$defs": {"x": _whole(maximum=5)}, "$ref": "#/$defs/x"}, [3], [7, "a"]),
    "$ref beside other constraints": Case({"$defs": {"x": _whole()}, "$ref": "#/$defs/x", "maximum": 5}, [3], [7]),
    "$ref to the root": Case(
        _object(properties={"v": _whole(), "n": {"$ref": "#"}}, required=["v"], additionalProperties=False),
        [{"v": 1, "n": {"v": 2}}],
        [{"v": 1, "n": {}}],
    ),
    "$ref to an anchor": Case({"$defs": {"x": {"$anchor": "X", **_whole()}}, "$ref": "#X"}, [3], ["a"]),
    "$dynamicRef": Case({"$defs": {"x": {"$dynamicAnchor": "X", **_whole()}}, "$dynamicRef": "#X"}, [3], ["a"]),
}
