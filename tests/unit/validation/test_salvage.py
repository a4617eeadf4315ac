"""What is kept of an answer that was not accepted, and that all that is lost of it is said."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepladder.schemas.outcomes import Outcome
from stepladder.schemas.pointer import pointer
from stepladder.validation.salvage import MAX_BYTES, MAX_LOSSES, SALVAGED, Salvaged, salvage
from support.schemas import compiled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hypothesis.strategies import SearchStrategy

    from stepladder.validation.schema import Schema


ITEM = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "name": {"type": "string"}},
    "required": ["n", "name"],
    "additionalProperties": False,
}
BILL = compiled(
    {
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "total": {"type": "integer"},
            "items": {"type": "array", "items": ITEM},
        },
        "required": ["id", "total"],
        "additionalProperties": False,
    }
)
ANYTHING = compiled(True)
CUT = "the answer was cut off; everything after the last complete value is lost"
NOT_JSON = "the answer stops being JSON; everything after the last complete value is left out"


def kept(
    text: str, outcome: Outcome = Outcome.TRUNCATION, schema: Schema = ANYTHING
) -> tuple[Any, list[tuple[str, str]]]:
    found = salvage(text.encode(), schema, outcome)
    assert found is not None
    return found.value, [(loss.pointer, loss.reason) for loss in found.lost]


# Cut off -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value", "where"),
    [
        ('{"a": 1, "b": "half a te', {"a": 1}, ""),
        ('{"a": 1, "b": 12', {"a": 1}, ""),  # it may have been 120
        ('{"a": 1, "b": -', {"a": 1}, ""),
        ('{"a": 1, "b": tru', {"a": 1}, ""),
        ('{"a": 1, "b": true', {"a": 1, "b": True}, ""),
        ('{"a": 1, "b": "whole"', {"a": 1, "b": "whole"}, ""),
        ('{"a": 1, "b":', {"a": 1}, ""),
        ('{"a": 1, "b', {"a": 1}, ""),
        ('{"a": 1, "b\\', {"a": 1}, ""),
        ('{"a": 1,', {"a": 1}, ""),
        ('{"a": 1', None, ""),
        ('{"a": [1, 2, {"c": {"d": [', {"a": [1, 2]}, "/a"),
        ('{"a": [1, {"b": 2}, {"c": "', {"a": [1, {"b": 2}]}, "/a"),
        ("[[1, 2], [3, ", [[1, 2], [3]], "/1"),
        ('{"a/b": {"~": 1, "x": n', {"a/b": {"~": 1}}, "/a~1b"),
        ("{", None, ""),
        ('{"a', None, ""),
        ("[[[", None, ""),
        ("12", None, ""),
        ('"half a te', None, ""),
        ("", None, ""),
    ],
)
def test_a_cut_document_is_closed_behind_its_last_whole_value(text: str, value: Any, where: str) -> None:
    if value is None:
        assert salvage(text.encode(), ANYTHING, Outcome.TRUNCATION) is None
    else:
        assert kept(text) == (value, [(where, CUT)])


def test_a_cut_document_that_happens_to_be_whole_is_still_said_to_be_cut() -> None:
    value, lost = kept('{"a": 1}')
    assert value == {"a": 1}
    assert lost == [("", "the answer was cut off; what was to follow is lost")]
    value, lost = kept('Here: {"a": 1} and so')
    assert value == {"a": 1}
    assert ("", "the answer was cut off after this document; what was to follow is lost") in lost


def test_what_the_cut_took_from_the_schema_is_said_as_well() -> None:
    value, lost = kept('{"id": "a", "items": [{"n": 1, "name": "x"}, {"n": 2, "na', schema=BILL)
    assert value == {"id": "a", "items": [{"n": 1, "name": "x"}, {"n": 2}]}
    assert lost == [
        ("/items/1", CUT),
        ("", 'still breaks the schema: must have the field "total"'),
        ("/items/1", 'still breaks the schema: must have the field "name"'),
    ]


# No JSON -----------------------------------------------------------------------------------------------------------


def test_a_fence_and_text_around_one_document_are_left_out() -> None:
    assert kept('```json\n{"a": 1}\n```', Outcome.PARSE_FAILURE) == (
        {"a": 1},
        [
            ("", "the Markdown fence before the document is left out"),
            ("", "the Markdown fence after the document is left out"),
        ],
    )
    assert kept('Sure:\n{"a": 1}', Outcome.PARSE_FAILURE) == (
        {"a": 1},
        [("", "the text before the document is left out")],
    )


def test_of_brackets_in_the_text_before_it_the_document_is_told_by_the_schema() -> None:
    value, _ = kept('As [1] and {} say: {"id": "a", "total": 3}. See [2].', Outcome.PARSE_FAILURE, BILL)
    assert value == {"id": "a", "total": 3}


@pytest.mark.parametrize(
    ("text", "value", "where"),
    [
        ('{"a": 1,}', {"a": 1}, ""),
        ('{"a": [1, 2,], "b": 3}', {"a": [1, 2]}, "/a"),
        ('{"a": 1, "b": None, "c": 3}', {"a": 1}, ""),
        ('{"a": 1, "b": 01}', {"a": 1}, ""),
        ('{"a": 1 "b": 2}', {"a": 1}, ""),
        ('{"a": "x", "b": "line\nbreak"}', {"a": "x"}, ""),
        ('{"a": "x", "b": "\\q"}', {"a": "x"}, ""),
        ('{"a": [1, 2}', {"a": [1, 2]}, "/a"),
        ("[1,,2]", [1], ""),
        ('{"a": {"b": [', None, ""),
    ],
)
def test_reading_ends_where_the_json_does(text: str, value: Any, where: str) -> None:
    if value is None:
        assert salvage(text.encode(), ANYTHING, Outcome.PARSE_FAILURE) is None
    else:
        assert kept(text, Outcome.PARSE_FAILURE) == (value, [(where, NOT_JSON)])


def test_what_json_cannot_spell_is_replaced_by_null() -> None:
    text = '{"a": [NaN, 5, 1e999, "x"], "b": "\\ud800", "c": 1}'
    value, lost = kept(text, Outcome.PARSE_FAILURE)
    assert value == {"a": [None, 5, None, "x"], "b": None, "c": 1}
    assert sorted(where for where, _ in lost) == ["/a/0", "/a/2", "/b"]
    integers = compiled({"properties": {"a": {"items": {"type": "integer"}}}})
    value, lost = kept('{"a": [NaN, 5, "no", 6, "no"]}', Outcome.PARSE_FAILURE, integers)
    assert value == {"a": [5, 6]}
    assert [where for where, _ in lost] == ["/a/0", "/a/0", "/a/2", "/a/4"]


def test_of_two_values_with_one_name_the_later_is_kept() -> None:
    assert kept('{"a": 1, "b": 2, "a": 3}', Outcome.PARSE_FAILURE) == (
        {"a": 3, "b": 2},
        [("", 'an object has the name "a" more than once; only the last value is kept')],
    )


def test_a_document_inside_one_that_breaks_off_is_not_taken_for_the_answer() -> None:
    inner = '{"id": "a", "total": 3}'
    assert salvage(f'{{"was": None, "now": {inner}}}'.encode(), BILL, Outcome.PARSE_FAILURE) is None
    assert salvage(f'{{"was": nothing, "now": {inner}'.encode(), BILL, Outcome.TRUNCATION) is None
    value, _ = kept(f'In the form {{"id": ...}} it is {inner}', Outcome.PARSE_FAILURE, BILL)
    assert value == {"id": "a", "total": 3}


def test_bytes_that_are_not_utf_8_are_replaced() -> None:
    found = salvage(b'{"a": "\xff\xed\xa0\xbd", "b": 1}', ANYTHING, Outcome.PARSE_FAILURE)
    assert found is not None
    assert [loss.reason for loss in found.lost] == ["bytes that are not UTF-8 are replaced by U+FFFD"]
    found = salvage('Here: {"a": "\ufffd"}'.encode(), ANYTHING, Outcome.PARSE_FAILURE)
    assert found is not None
    assert [loss.reason for loss in found.lost] == ["the text before the document is left out"]


def test_nothing_is_kept_of_too_deep_a_document_or_too_large_a_number() -> None:
    for deep in ("[" * 150 + "1" + "]" * 150, "[" * 5000, "9" * 400, "9" * 5000):
        assert salvage(f'{{"a": 1, "b": {deep}}}'.encode(), ANYTHING, Outcome.PARSE_FAILURE) is None


# Against the schema ------------------------------------------------------------------------------------------------


def test_members_that_break_the_schema_are_left_out_each_with_its_reason() -> None:
    text = '{"id": "a", "total": "3", "extra": 1, "items": [{"n": "x", "name": "y"}, 5, {"n": 2, "name": "z", "q": 1}]}'
    value, lost = kept(text, Outcome.SCHEMA_VIOLATION, BILL)
    assert value == {"id": "a", "items": [{"name": "y"}, {"n": 2, "name": "z"}]}
    assert lost == [
        ("/extra", 'left out, since it breaks the schema: must not have the field "extra"'),
        ("/items/0/n", "left out, since it breaks the schema: must be an integer, not a string"),
        ("/items/1", "left out, since it breaks the schema: must be an object, not an integer"),
        ("/items/2/q", 'left out, since it breaks the schema: must not have the field "q"'),
        ("/total", "left out, since it breaks the schema: must be an integer, not a string"),
        ("", 'still breaks the schema: must have the field "total"'),
        ("/items/0", 'still breaks the schema: must have the field "n"'),
    ]


def test_a_list_that_is_too_long_stays_and_is_said_to_be() -> None:
    short = compiled({"properties": {"a": {"type": "array", "maxItems": 1}}})
    assert kept('{"a": [1, 2]}', Outcome.SCHEMA_VIOLATION, short) == (
        {"a": [1, 2]},
        [("/a", "still breaks the schema: must have at most 1 item, and has 2")],
    )


def test_what_an_older_draft_calls_otherwise_is_kept_as_well() -> None:
    draft = {"$schema": "http://json-schema.org/draft-07/schema#", "dependencies": {"a": ["b"]}}
    old = compiled({**draft, "properties": {"a": {"items": [True], "additionalItems": False}}})
    value, lost = kept('{"a": [1, 2]}', Outcome.SCHEMA_VIOLATION, old)
    assert value == {"a": [1, 2]}
    assert lost == [
        ("", 'still breaks the schema: must have the field "b" too, given its other fields'),
        ("/a", "still breaks the schema: must not have more items"),
    ]


def test_nothing_is_kept_where_nothing_is_left() -> None:
    for text in ('{"x": 1}', "[1, 2]", '"text"', "null", "5"):
        assert salvage(text.encode(), BILL, Outcome.SCHEMA_VIOLATION) is None, text


# Nothing at all ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("outcome", [outcome for outcome in Outcome if outcome not in SALVAGED])
def test_other_outcomes_leave_nothing(outcome: Outcome) -> None:
    assert salvage(b'{"a": 1}', ANYTHING, outcome) is None


def test_of_an_answer_that_is_too_large_nothing_is_kept() -> None:
    text = '{"a": "' + "x" * MAX_BYTES
    assert salvage(f'{{"b": 1, {text[1:]}'.encode(), ANYTHING, Outcome.TRUNCATION) is None


def test_the_list_of_losses_has_an_end_and_says_so() -> None:
    _, lost = kept("[1, " + "NaN, " * 150 + "2]", Outcome.PARSE_FAILURE)
    assert len(lost) == MAX_LOSSES + 1
    assert lost[-1] == ("", "and 50 more losses")


# Whatever the bytes ------------------------------------------------------------------------------------------------

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9)
)
DOCUMENTS: SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=20,
)
ROOTS: SearchStrategy[Any] = st.dictionaries(st.text(min_size=1, max_size=5), DOCUMENTS, min_size=1, max_size=5)
SCHEMAS = st.sampled_from([ANYTHING, BILL, compiled({"items": {"type": "integer"}}), compiled({"not": {}})])
TANGLE = st.text(alphabet='{}[]",:\\0123456789.eE+-tfnrualsNI` \n\ud7ff', max_size=60)


@given(st.binary(max_size=200) | TANGLE.map(lambda text: text.encode()), SCHEMAS, st.sampled_from(Outcome))
def test_no_bytes_make_it_raise_and_what_it_keeps_is_json(content: bytes, schema: Schema, outcome: Outcome) -> None:
    found = salvage(content, schema, outcome)
    if found is not None:
        json.dumps(found.value, allow_nan=False).encode()
        json.dumps([loss.pointer + loss.reason for loss in found.lost]).encode()


@given(DOCUMENTS, st.sampled_from([one for one in SALVAGED if one is not Outcome.TRUNCATION]))
def test_a_valid_document_is_kept_as_it_is_with_nothing_lost(value: Any, outcome: Outcome) -> None:
    assert salvage(json.dumps(value).encode(), ANYTHING, outcome) == Salvaged(value, ())


@given(ROOTS, st.data())
def test_a_cut_takes_the_end_of_the_document_and_says_where_it_begins(
    value: dict[str, Any], data: st.DataObject
) -> None:
    text = json.dumps(value)
    found = salvage(text[: data.draw(st.integers(1, len(text) - 1))].encode(), ANYTHING, Outcome.TRUNCATION)
    if found is None:
        return
    [loss] = found.lost
    whole, rest = dict(leaves(value)), dict(leaves(found.value))
    assert rest.items() <= whole.items()
    assert loss.reason == CUT
    assert any(f"{where}/".startswith(f"{loss.pointer}/") for where in rest)


@given(ROOTS)
def test_whatever_the_schema_takes_is_named(value: dict[str, Any]) -> None:
    texts = compiled({"type": "object", "additionalProperties": {"type": "object", "additionalProperties": False}})
    found = salvage(json.dumps(value).encode(), texts, Outcome.SCHEMA_VIOLATION)
    if found is None:
        return
    named = {loss.pointer for loss in found.lost}
    before, after = set(members(value)), set(members(found.value))
    assert after <= before
    for where in before - after:
        assert any(where == one or where.startswith(one + "/") for one in named), where
    assert texts.violations(found.value) == ()


def members(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[str]:
    for name, item in value.items() if isinstance(value, dict) else ():
        yield pointer((*path, name))
        yield from members(item, (*path, name))


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str, str]]:
    """Everything in a document that holds nothing itself, by its pointer and in its order."""
    match value:
        case dict() if value:
            for name, item in value.items():
                yield from leaves(item, (*path, name))
        case list() if value:
            for n, item in enumerate(value):
                yield from leaves(item, (*path, n))
        case _:
            yield pointer(path), json.dumps(value)
