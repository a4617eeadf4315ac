"""The place that an error names is marked in the text, and nothing of the text is lost or changed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepladder.dashboard.marks import AROUND, Piece, excerpt, marked_json, marked_text, offset_of, pretty
from stepladder.schemas.outcomes import Outcome
from stepladder.schemas.pointer import pointer

if TYPE_CHECKING:
    from stepladder.schemas.jsontypes import Json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=20,
)


def marks(pieces: list[Piece]) -> list[str]:
    return [piece.text for piece in pieces if piece.mark is not None]


def pointers(value: Any, path: tuple[str | int, ...] = ()) -> list[str]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [pointer(path), *(found for name, one in items for found in pointers(one, (*path, name)))]


@given(VALUES, st.data())
def test_the_text_is_that_of_any_other_json_on_the_page(value: Any, data: st.DataObject) -> None:
    wrong = data.draw(st.lists(st.sampled_from(pointers(value)), max_size=4))
    pieces = marked_json(value, [(at, "wrong") for at in wrong])
    assert "".join(piece.text for piece in pieces) == pretty(value)
    assert bool(marks(pieces)) == any(wrong), "the whole value is never marked, and every part is"


def test_a_scalar_is_marked_with_its_name_and_an_object_to_its_bracket() -> None:
    value: Json = {"lines": [{"sku": "a", "n": 1}, {"sku": "b", "n": -2}], "total": 35, "a/b": {"~": None}}
    wrong = ["/total", "/lines/1", "/lines/0/n", "/a~1b/~0"]
    assert marks(marked_json(value, [(at, "no") for at in wrong])) == ['"n": 1', "{", '"total": 35', '"~": null']


def test_what_is_missing_is_marked_where_it_would_stand() -> None:
    assert marks(marked_json({"line": {"n": 1}}, [("/line/sku", "must be there")])) == ['"line": {']
    assert marks(marked_json({"n": 1}, [("/sku", "must be there")])) == []


def test_two_errors_at_one_place_are_one_mark_with_both_reasons() -> None:
    pieces = marked_json({"n": 1}, [("/n", "too small"), ("/n", "not even")])
    assert [piece.mark for piece in pieces if piece.mark] == ["too small; not even"]


@pytest.mark.parametrize(
    ("content", "outcome", "marked"),
    [
        (b'{"a": 1,}', Outcome.PARSE_FAILURE, ","),
        (b'Sure: {"a": 1}', Outcome.PARSE_FAILURE, "S"),
        ('{"ä": 1} ok'.encode(), Outcome.PARSE_FAILURE, "o"),
        ("ää".encode() + b"\xff", Outcome.PARSE_FAILURE, "�"),
        (b'{"a": 1', Outcome.TRUNCATION, ""),
    ],
)
def test_where_an_answer_stopped_being_json_is_marked(content: bytes, outcome: Outcome, marked: str) -> None:
    stopped = offset_of(content, outcome)
    assert stopped is not None
    text = content.decode("utf-8", "replace")
    pieces = marked_text(text, *stopped)
    assert "".join(piece.text for piece in pieces) == text
    assert marks(pieces) == [marked]


def test_an_answer_that_failed_elsewhere_stopped_nowhere() -> None:
    assert offset_of(b'{"a": 1}', Outcome.SEMANTIC) is None
    assert offset_of(b"{", Outcome.REFUSED) is None


def test_an_excerpt_shows_the_mark_with_what_stands_around_it() -> None:
    text = json.dumps({"text": "x" * 2000})
    before, mark, behind = excerpt(marked_text(text, 1000, "here"))
    assert before == Piece("… " + text[1000 - AROUND : 1000])
    assert mark == Piece(text[1000], "here")
    assert behind == Piece(text[1001 : 1001 + AROUND] + " …")
    assert excerpt([Piece(text)]) == []
