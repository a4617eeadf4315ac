"""The request's bytes, ``Retry-After`` and the first token, without a wire."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepladder.engine.wire import MAX_LINE_BYTES, FirstToken, encode, retry_after
from stepladder.schemas.errors import BadInputError

if TYPE_CHECKING:
    from stepladder.schemas.jsontypes import Json

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
TEXT = st.text(st.characters(codec=None, exclude_categories=()))  # lone surrogates among them
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_every_json_body_survives_the_encoding(value: Json) -> None:
    assert json.loads(encode({"messages": value}).decode("utf-8")) == {"messages": _pairs_joined(value)}


def test_the_encoding_is_compact_utf8_in_the_callers_order() -> None:
    assert encode({"b": [1, 2.5], "a": "é"}) == '{"b":[1,2.5],"a":"é"}'.encode()


def test_frozen_mappings_and_tuples_are_encoded_like_dicts_and_lists() -> None:
    assert encode({"schema": MappingProxyType({"enum": ("a", "b")})}) == b'{"schema":{"enum":["a","b"]}}'


@pytest.mark.parametrize("field", ["guided_json", "guided_regex", "guided_choice", "guided_grammar"])
def test_a_field_that_engines_ignore_is_never_sent(field: str) -> None:
    with pytest.raises(BadInputError, match=field):
        encode({"model": "m", field: {"type": "object"}})


def test_a_number_that_json_cannot_say_is_refused() -> None:
    with pytest.raises(BadInputError, match="not JSON"):
        encode({"temperature": float("nan")})


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0.0),
        ("7", 7.0),
        (" 7 ", 7.0),
        ("1.5", 1.5),
        ("9999", 60.0),
        ("-1", None),
        ("nan", None),
        ("inf", None),
        ("soon", None),
        ("", None),
        ("Wed, 99 Foo 2026 00:00:00 GMT", None),
    ],
)
def test_seconds_are_read_and_capped_and_nonsense_is_nothing(value: str, seconds: float | None) -> None:
    assert retry_after(value, now=NOW, cap_s=60.0) == seconds


@given(st.integers(-100_000, 100_000))
def test_a_date_is_the_time_until_then_never_negative_and_capped(offset: int) -> None:
    header = format_datetime(NOW + timedelta(seconds=offset), usegmt=True)
    assert retry_after(header, now=NOW, cap_s=60.0) == min(max(offset, 0), 60)


@given(st.text(max_size=40))
def test_no_header_whatsoever_breaks_the_reading(value: str) -> None:
    seconds = retry_after(value, now=NOW, cap_s=60.0)
    assert seconds is None or 0 <= seconds <= 60


def _event(delta: object) -> bytes:
    return b"data: " + json.dumps({"choices": [{"index": 0, "delta": delta}]}).encode() + b"\n\n"


ROLE = _event({"role": "assistant", "content": ""})


@pytest.mark.parametrize(
    "delta",
    [
        {"content": "x"},
        {"reasoning": "x"},
        {"reasoning_content": "x"},
        {"refusal": "x"},
        {"tool_calls": [{"index": 0}]},
    ],
)
def test_text_reasoning_and_tool_calls_are_tokens(delta: object) -> None:
    watch = FirstToken()
    assert not watch.seen_in(ROLE)
    assert watch.seen_in(_event(delta))


@pytest.mark.parametrize(
    "line",
    [
        ROLE,
        _event({"role": "assistant", "content": None}),
        _event({"tool_calls": []}),
        _event(None),
        b": ping\n\n",
        b"event: message\n",
        b"data: [DONE]\n\n",
        b'data: {"choices": []}\n\n',
        b'data: {"choices": [3]}\n\n',
        b'data: {"choices": {"delta": 1}}\n\n',
        b'data: {"error": {"message": "x"}}\n\n',
        b"data: \xff\n\n",
        b"data: " + b"[" * 100_000 + b"\n\n",
    ],
)
def test_nothing_else_is_a_token(line: bytes) -> None:
    assert not FirstToken().seen_in(line)


@given(st.lists(st.integers(0, 400), max_size=6))
def test_the_first_token_is_found_wherever_the_stream_is_cut(cuts: list[int]) -> None:
    stream = b": hello\r\n\r\n" + ROLE.replace(b"\n", b"\r\n") + _event({"content": "é"})
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    watch = FirstToken()
    assert sum(watch.seen_in(stream[start:end]) for start, end in pairwise(edges)) == 1


def test_a_line_without_end_does_not_pile_up() -> None:
    watch = FirstToken()
    assert not watch.seen_in(b"x" * (MAX_LINE_BYTES + 1))
    assert not watch.seen_in(b"\n")
    assert watch.seen_in(_event({"content": "x"}))


def _pairs_joined(value: object) -> object:
    """Two lone surrogates side by side are one character to every JSON reader."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    if isinstance(value, list):
        return [_pairs_joined(item) for item in value]
    if isinstance(value, dict):
        return {_pairs_joined(name): _pairs_joined(item) for name, item in value.items()}
    return value
