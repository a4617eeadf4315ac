"""Two JSON values compared."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepladder.experiments import difference as module
from stepladder.experiments.difference import difference
from stepladder.schemas.canonical import identity

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from([0.5, 1.0]) | st.text("ab/~", max_size=2),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab/~", max_size=2), inner, max_size=4),
    max_leaves=12,
)


def places(was: Any, now: Any) -> list[tuple[str, str]]:
    return [(change.kind, change.pointer) for change in difference(was, now)]


@pytest.mark.parametrize(
    ("was", "now", "expected"),
    [
        ({"a": 1}, {"a": 1.0}, []),
        ({"a": 1}, {"a": True}, [("changed", "/a")]),
        ({"a": None}, {}, [("removed", "/a")]),
        ({}, {"a/b": None}, [("added", "/a~1b")]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, []),
        ({"a": {"b": [1]}}, {"a": {"b": [2]}}, [("changed", "/a/b/0")]),
        ([1, 2, 3], [0, 1, 2, 3], [("added", "/0")]),
        ([1, 2, 3], [1, 3], [("removed", "/1")]),
        ([{"n": 1}, {"n": 2}], [{"n": 0}, {"n": 1}, {"n": 2.0}], [("added", "/0")]),
        ([1, {"x": 1}], [0, 1, {"x": 1}], [("added", "/0")]),
        ({"a": []}, {"a": {}}, [("changed", "/a")]),
        (9007199254740993, 9007199254740992, [("changed", "")]),
        ("a", "a", []),
    ],
)
def test_each_change_names_its_place(was: Any, now: Any, expected: Any) -> None:
    assert places(was, now) == expected


def test_a_change_after_an_insertion_points_into_the_second_value() -> None:
    found = difference([1, {"x": 1, "y": 2}], [0, 1, {"x": 5, "y": 2}])
    assert all(change.now is None or _at([0, 1, {"x": 5, "y": 2}], change.pointer) == change.now for change in found)


def test_long_lists_are_compared_by_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PAIRS", 5)
    assert places([1, 2, 3], [0, 1, 2, 3]) == [("changed", "/0"), ("changed", "/1"), ("changed", "/2"), ("added", "/3")]


@given(VALUES)
def test_a_value_equals_its_copy(value: Any) -> None:
    assert difference(value, copy.deepcopy(value)) == []


@given(VALUES, VALUES)
def test_there_is_a_change_exactly_where_values_differ(was: Any, now: Any) -> None:
    assert bool(difference(was, now)) is (identity(was) != identity(now))


@given(VALUES, VALUES)
def test_every_pointer_leads_to_its_value(was: Any, now: Any) -> None:
    for change in difference(was, now):
        if change.kind == "removed":
            assert _at(was, change.pointer) == change.was
        else:
            assert _at(now, change.pointer) == change.now


def _at(value: Any, pointer: str) -> Any:
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        value = value[int(name)] if isinstance(value, list) else value[name]
    return value
