"""How often each field came out the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from stepladder.experiments.agreement import Seen, fields, required_paths

if TYPE_CHECKING:
    from stepladder.schemas.experiment import FieldAgreement

SCHEMA: Any = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "at": {"$ref": "#/$defs/place"}, "tags": {"type": "array"}},
    "required": ["name", "at", "tags"],
    "$defs": {"place": {"properties": {"city": {}, "next": {"$ref": "#/$defs/place"}}, "required": ["city"]}},
}


def told(*values: Any, schema: Any = None) -> dict[str, FieldAgreement]:
    return {one.pointer: one for one in fields(Seen("ask", value, schema) for value in values)}


def test_agreement_is_the_share_of_the_most_frequent_value() -> None:
    found = told({"n": 1, "s": "x"}, {"n": 1.0, "s": "y"}, {"n": 2, "s": "x"}, {"n": 1, "s": "x"})
    assert (found["/n"].agreement, found["/n"].distinct, found["/n"].common) == (0.75, 2, 1)
    assert (found["/s"].agreement, found[""].agreement, found[""].distinct) == (0.75, 0.5, 3)


def test_a_missing_field_counts_as_a_value() -> None:
    found = told({}, {"n": None}, {})
    assert (found["/n"].agreement, found["/n"].missing, found["/n"].common) == (2 / 3, 2, None)
    assert found["/n"].distinct == 2


def test_a_required_field_without_content_is_empty() -> None:
    values = [
        {"name": "a", "at": {"city": "x"}, "tags": ["t"]},
        {"name": "  ", "at": {"city": ""}, "tags": []},
        {"name": "0", "at": {"city": "x"}, "tags": [0]},
        {"name": "", "at": {"city": None}, "tags": [""]},
    ]
    found = told(*values, schema=SCHEMA)
    empty = {pointer: one.empty for pointer, one in found.items() if one.required}
    assert empty == {"/name": 0.5, "/at": 0.0, "/at/city": 0.5, "/tags": 0.25}
    assert found["/tags/0"].empty is None


def test_false_and_zero_are_content() -> None:
    schema = {"required": ["n", "b"]}
    found = told({"n": 0, "b": False}, {"n": 0, "b": False}, schema=schema)
    assert [found[pointer].empty for pointer in ("/n", "/b")] == [0.0, 0.0]


def test_a_place_is_described_by_the_jobs_that_reached_it() -> None:
    found = fields([Seen("ask", 1), Seen("more", 5), Seen("ask", 1)])
    assert [(one.where, one.jobs, one.agreement) for one in found] == [("ask", 2, 1.0), ("more", 1, 1.0)]


def test_required_fields_are_found_through_references_and_cycles_end() -> None:
    assert required_paths(SCHEMA) == (("name",), ("at",), ("at", "city"), ("tags",))
    assert required_paths({"$ref": "#"}) == ()
    circle: Any = {"required": ["a"], "properties": {"a": {"$ref": "#"}}}
    assert len(required_paths(circle)) == 20
    assert required_paths(None) == required_paths(True) == ()


VALUES = st.recursive(
    st.none() | st.integers(0, 2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner),
)


@given(st.lists(VALUES, min_size=1, max_size=6))
def test_a_field_never_agrees_less_than_the_whole(values: list[Any]) -> None:
    found = told(*values)
    assert all(one.agreement >= found[""].agreement and one.distinct <= found[""].distinct for one in found.values())
    assert all(1 / len(values) <= one.agreement <= 1 for one in found.values())
