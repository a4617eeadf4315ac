"""The schema rung against `jsonschema`, the reference implementation: on random schemas, and where the two differ.

Both are asked about schemas over all keywords of the draft. What is left out of the random part is in the table of
differences below it, each with its reason.
"""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepladder.schemas.pointer import pointer
from support.schemas import compiled

Strategy = st.SearchStrategy[Any]

words = st.sampled_from(["a", "b", "ab", "é", "𝒳", "/~"])
texts = st.text("abé𝒳1 ", max_size=4)
integers = st.integers(-4, 4) | st.sampled_from([2**53, 2**53 + 1, 2**64, 2**70, -(2**63) - 1, 10**300])
numbers = integers | st.sampled_from([1.0, -0.0, 0.5, 1.5, 0.1, 0.3, 1e16, 1e300])
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4),
    max_leaves=6,
)
types = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])
counts = st.integers(0, 3)
# Patterns that mean the same in ECMA's dialect and in Python's.
patterns = st.sampled_from(["^a", "b", "^[ab]+", "^(a|b)*1?", "é", "^..", "[^a]", "a{2}"])


def keywords(inner: Strategy) -> dict[str, Strategy]:
    some = st.lists(inner, min_size=1, max_size=3)
    named = st.dictionaries(words, inner, max_size=3)
    names = st.lists(words, max_size=2, unique=True)
    return {
        "type": types | st.lists(types, min_size=1, max_size=3, unique=True),
        "enum": st.lists(values, min_size=1, max_size=3),
        "const": values,
        # Divisors that a double holds exactly, as do their multiples.
        "multipleOf": st.sampled_from([1, 2, 3, 0.5, 2**64]),
        "minimum": numbers,
        "maximum": numbers,
        "exclusiveMinimum": numbers,
        "exclusiveMaximum": numbers,
        "minLength": counts,
        "maxLength": counts,
        "pattern": patterns,
        "prefixItems": some,
        "items": inner,
        "contains": inner,
        "minContains": counts,
        "maxContains": counts,
        "minItems": counts,
        "maxItems": counts,
        "uniqueItems": st.booleans(),
        "unevaluatedItems": inner,
        "properties": named,
        "patternProperties": st.dictionaries(patterns, inner, max_size=2),
        "additionalProperties": inner,
        "propertyNames": inner,
        "required": names,
        "minProperties": counts,
        "maxProperties": counts,
        "dependentRequired": st.dictionaries(words, names, max_size=2),
        "dependentSchemas": named,
        "unevaluatedProperties": inner,
        "allOf": some,
        "anyOf": some,
        "oneOf": some,
        "not": inner,
        "if": inner,
        "then": inner,
        "else": inner,
        "$ref": st.sampled_from(["#/$defs/text", "#/$defs/list"]),
    }


def schemas(leaves: Strategy, without: frozenset[str] = frozenset()) -> Strategy:
    @st.composite
    def schema(draw: st.DrawFn, inner: Strategy) -> Any:
        known = keywords(inner)
        chosen = draw(st.lists(st.sampled_from(sorted(known.keys() - without)), max_size=4, unique=True))
        return {name: draw(known[name]) for name in chosen}

    held = st.recursive(leaves | schema(leaves), schema, max_leaves=6)
    defs = {"text": {"type": "string", "maxLength": 2}, "list": {"type": ["array", "object"], "maxItems": 2}}
    return held.map(lambda root: {"properties": {"root": root}, "$defs": defs})


@given(schemas(st.booleans()), st.lists(values, min_size=1, max_size=5))
def test_every_verdict_is_that_of_the_reference_implementation(schema: Any, roots: list[Any]) -> None:
    ours, reference = compiled(schema), jsonschema.Draft202012Validator(schema)
    for root in roots:
        violations = ours.violations({"root": root})
        assert (violations == ()) == reference.is_valid({"root": root}), root
        assert all(found.reason and found.source for found in violations)
        assert list(violations) == sorted(violations, key=lambda found: (found.pointer, found.source, found.reason))


# Of a union the rung tells the branch that was meant, where the reference tells the union. A schema that is `false` the
# reference tells at the value around it, so that `{"not": {}}` is used here.
@given(
    schemas(st.sampled_from([True, {"not": {}}]), frozenset({"anyOf", "oneOf"})),
    st.lists(values, min_size=1, max_size=5),
)
def test_all_errors_are_told_and_where_the_reference_implementation_finds_them(schema: Any, roots: list[Any]) -> None:
    ours, reference = compiled(schema), jsonschema.Draft202012Validator(schema)
    for root in roots:
        found = {violation.pointer for violation in ours.violations({"root": root})}
        assert found == {pointer(error.absolute_path) for error in reference.iter_errors({"root": root})}, root


FORMATS = {
    "date": ["2026-02-28", "2024-02-29", "1999-12-31"],
    "ipv4": ["192.0.2.1", "255.255.255.255", "0.0.0.0"],  # noqa: S104 -- an address to look at
    "ipv6": ["2001:db8::1", "::", "::ffff:192.0.2.1", "fe80:1:2:3:4:5:6:7"],
}
PIECES = ["", "0", "1", "9", "29", "30", "31", "-", ":", "::", ".", "a", "F", "g", " ", "\n", "%", "/", "٣", "25"]


@st.composite
def nearly_formatted(draw: st.DrawFn) -> tuple[str, str]:
    name = draw(st.sampled_from(sorted(FORMATS)))
    text = draw(st.sampled_from(FORMATS[name]))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(text)))
        text = text[:at] + draw(st.sampled_from(PIECES)) + text[at + draw(st.integers(0, 2)) :]
    return name, text


@given(nearly_formatted())
def test_formats_that_both_know_are_read_alike(case: tuple[str, str]) -> None:
    name, text = case
    schema = {"format": name}
    known = jsonschema.Draft202012Validator.FORMAT_CHECKER
    expected = jsonschema.Draft202012Validator(schema, format_checker=known).is_valid(text)
    if not text.startswith("0000-"):  # see the table below
        assert (compiled(schema).violations(text) == ()) == expected


@pytest.mark.parametrize(
    ("schema", "value", "fits"),
    [
        # The reference divides doubles; the draft means decimal numbers.
        ({"multipleOf": 0.1}, 0.3, True),
        ({"multipleOf": 0.01}, 19.99, True),
        ({"multipleOf": 1.5}, 2**53, False),
        # The draft's patterns are ECMA's. Python's `$` looks past a line feed, and its classes know all of Unicode.
        ({"pattern": "^a$"}, "a\n", False),
        ({"pattern": r"^\d$"}, "٣", False),
        ({"pattern": r"^\w$"}, "é", False),
        ({"pattern": r"^\s$"}, "\ufeff", True),
        ({"pattern": "^.$"}, "\r", False),
        # The year 0 is in RFC 3339, and not in Python.
        ({"format": "date"}, "0000-01-01", True),
        # Python reads a UUID wherever the dashes are, and digits of any script.
        ({"format": "uuid"}, "123e4567-e89b-42d3-a456-4-26614174000", False),
        ({"format": "uuid"}, "123e4567-e89b-42d3-a456-42661417400٣", False),
        # To the reference any text with an @ is an address, and it leaves many formats to packages of others.
        ({"format": "email"}, "a@b@c", False),
        ({"format": "time"}, "noon", False),
        ({"format": "date-time"}, "2026-01-31", False),
        ({"format": "hostname"}, "-", False),
        ({"format": "uri"}, "no scheme", False),
        ({"format": "duration"}, "3 days", False),
        ({"format": "json-pointer"}, "a", False),
        ({"format": "regex"}, r"\p{Lu}", True),
        ({"format": "regex"}, "a{,2}", False),
    ],
)
def test_where_the_two_differ_the_standard_decides(schema: Any, value: Any, fits: bool) -> None:
    known = jsonschema.Draft202012Validator.FORMAT_CHECKER
    assert (compiled(schema).violations(value) == ()) is fits
    assert jsonschema.Draft202012Validator(schema, format_checker=known).is_valid(value) is not fits


@pytest.mark.parametrize("text", ["😀", "e\u0301", "👩‍👧", "\U0010ffff"])
def test_lengths_are_counted_in_code_points(text: str) -> None:
    exact = {"minLength": len(text), "maxLength": len(text)}
    assert compiled(exact).violations(text) == ()
    assert compiled({"maxLength": len(text) - 1}).violations(text) != ()
    assert jsonschema.Draft202012Validator(exact).is_valid(text)
