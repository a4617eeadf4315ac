"""Errors are highlighted where they are in the text, and the text stays the same."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepladder.dashboard.highlighting import AROUND, Piece, excerpt, highlight_json, highlight_text, pretty, stopped_at
from stepladder.schemas.outcomes import Outcome
from stepladder.schemas.pointer import pointer

if TYPE_CHECKING:
    from stepladder.schemas.jsontypes import Json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=20,
)


def highlighted(pieces: list[Piece]) -> list[str]:
    return [piece.text for piece in pieces if piece.error is not None]


def pointers(value: Any, path: tuple[str | int, ...] = ()) -> list[str]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [pointer(path), *(found for name, one in items for found in pointers(one, (*path, name)))]


@given(VALUES, st.data())
def test_highlighting_does_not_change_the_text(value: Any, data: st.DataObject) -> None:
    wrong = data.draw(st.lists(st.sampled_from(pointers(value)), max_size=4))
    pieces = highlight_json(value, [(at, "wrong") for at in wrong])
    assert "".join(piece.text for piece in pieces) == pretty(value)
    assert bool(highlighted(pieces)) == any(wrong), "all parts can be highlighted, but not the whole value"


def test_a_scalar_is_highlighted_with_its_name_an_object_to_its_bracket() -> None:
    value: Json = {"lines": [{"sku": "a", "n": 1}, {"sku": "b", "n": -2}], "total": 35, "a/b": {"~": None}}
    wrong = ["/total", "/lines/1", "/lines/0/n", "/a~1b/~0"]
    assert highlighted(highlight_json(value, [(at, "no") for at in wrong])) == [
        '"n": 1',
        "{",
        '"total": 35',
        '"~": null',
    ]


def test_a_missing_field_highlights_the_object_that_lacks_it() -> None:
    assert highlighted(highlight_json({"line": {"n": 1}}, [("/line/sku", "must be there")])) == ['"line": {']
    assert highlighted(highlight_json({"n": 1}, [("/sku", "must be there")])) == []


def test_two_errors_at_one_place_are_shown_together() -> None:
    pieces = highlight_json({"n": 1}, [("/n", "too small"), ("/n", "not even")])
    assert [piece.error for piece in pieces if piece.error] == ["too small; not even"]


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
def test_the_place_where_an_answer_stopped_being_json_is_highlighted(
    content: bytes, outcome: Outcome, marked: str
) -> None:
    stopped = stopped_at(content, outcome)
    assert stopped is not None
    text = content.decode("utf-8", "replace")
    pieces = highlight_text(text, *stopped)
    assert "".join(piece.text for piece in pieces) == text
    assert highlighted(pieces) == [marked]


def test_other_failures_have_no_place_in_the_text() -> None:
    assert stopped_at(b'{"a": 1}', Outcome.SEMANTIC) is None
    assert stopped_at(b"{", Outcome.REFUSED) is None


def test_an_excerpt_shows_the_text_around_the_error() -> None:
    text = json.dumps({"text": "x" * 2000})
    before, mark, behind = excerpt(highlight_text(text, 1000, "here"))
    assert before == Piece("… " + text[1000 - AROUND : 1000])
    assert mark == Piece(text[1000], "here")
    assert behind == Piece(text[1001 : 1001 + AROUND] + " …")
    assert excerpt([Piece(text)]) == []
