from __future__ import annotations

from typing import Any

import pytest

from stepladder.validation.costs import MAX_PATHS, MAX_VALUES, alternatives, is_heavy
from stepladder.validation.subschemas import Subschemas
from support.schemas import compiled

LISTS: dict[str, Any] = {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}}


def test_of_a_value_that_is_not_heavy_every_fault_is_listed() -> None:
    assert len(compiled(LISTS).violations({"a": [1] * (MAX_VALUES - 10)})) == MAX_VALUES - 10


@pytest.mark.parametrize("value", [{"a": [1] * 300_000}, {"n" * 60_000: [1] * 30_000}, {"a": ["x"] * 200_000 + [1]}])
def test_of_a_heavy_value_the_first_fault_is_told(value: dict[str, Any]) -> None:
    [only] = compiled(LISTS).violations(value)
    assert (only.source, only.reason) == ("type", "must be a string, not an integer")


def test_of_forms_only_that_none_fits() -> None:
    forms = compiled({"properties": {"x": {"oneOf": [LISTS, {"type": "boolean"}]}}})
    [only] = forms.violations({"x": {"a": [1] * 300_000}})
    assert (only.pointer, only.source) == ("", "oneOf")
    assert "must be shorter" in only.reason
    assert forms.violations({"x": {"a": ["1"] * 300_000}}) == ()


@pytest.mark.parametrize(
    ("value", "heavy"),
    [
        (7, False),
        ("x" * 2_000_000, False),
        ([0] * (MAX_VALUES - 1), False),
        ([0] * MAX_VALUES, True),
        ({"n" * (MAX_PATHS // 10): [0] * 5}, False),
        ({"n" * (MAX_PATHS // 10): [0] * 20}, True),
    ],
)
def test_values_and_the_paths_to_them_weigh(value: object, heavy: bool) -> None:
    assert is_heavy(value) is heavy


def test_a_schema_offers_forms_wherever_they_stand() -> None:
    assert alternatives(Subschemas(LISTS)) is None
    assert alternatives(Subschemas({"$defs": {"a": {"anyOf": [True]}}, "$ref": "#/$defs/a"})) == "anyOf"
    assert alternatives(Subschemas({"properties": {"anyOf": {"type": "string"}}})) is None
