"""Bounds that exclude every value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stepladder.lint.contradictions import EXCLUSIVE, PAIRS, contradictions

if TYPE_CHECKING:
    from stepladder.schemas.jsontypes import Json


@pytest.mark.parametrize(("low", "high"), PAIRS + EXCLUSIVE)
def test_every_pair_of_bounds_is_checked_anywhere(low: str, high: str) -> None:
    schema: Json = {"type": "object", "properties": {"a": {"items": {low: 5, high: 2}}}}
    ((path, _),) = contradictions(schema)
    assert path == ("properties", "a", "items", low)


@pytest.mark.parametrize(("low", "high"), PAIRS)
def test_equal_bounds_leave_one_value(low: str, high: str) -> None:
    assert list(contradictions({low: 2, high: 2})) == []


@pytest.mark.parametrize(("low", "high"), EXCLUSIVE)
def test_equal_bounds_leave_none_if_one_is_exclusive(low: str, high: str) -> None:
    assert len(list(contradictions({low: 2, high: 2}))) == 1


def test_data_inside_a_schema_is_not_a_schema() -> None:
    assert list(contradictions({"const": {"minItems": 5, "maxItems": 2}})) == []
