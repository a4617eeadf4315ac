from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from stepladder.api.cursors import decode, encode
from stepladder.api.problems import ProblemError
from stepladder.schemas.job_filter import Place

places = st.builds(Place, st.datetimes(timezones=st.just(UTC)), st.uuids())
filters = st.lists(st.tuples(st.text(), st.text()), max_size=4)
SOME = Place(datetime(2026, 1, 31, 12, 30, 0, 1, tzinfo=UTC), UUID(int=1))


@given(places, filters)
def test_a_cursor_keeps_its_place_in_any_order_of_filters(place: Place, wanted: list[tuple[str, str]]) -> None:
    assert decode(encode(place, wanted), wanted[::-1]) == place


@given(places, filters, filters)
def test_a_cursor_is_good_for_no_other_filters(
    place: Place, one: list[tuple[str, str]], other: list[tuple[str, str]]
) -> None:
    assume(sorted(one) != sorted(other))
    with pytest.raises(ProblemError, match="cannot be used"):
        decode(encode(place, one), other)


@given(st.text() | st.binary().map(lambda raw: raw.decode("latin-1")))
def test_any_other_text_is_refused_and_never_crashes(text: str) -> None:
    with pytest.raises(ProblemError, match="cannot be used"):
        decode(text, [])


@given(st.data())
def test_one_changed_letter_is_seen(data: st.DataObject) -> None:
    cursor = encode(SOME, [])
    at = data.draw(st.integers(0, len(cursor) - 2))  # the last letter may have bits that say nothing
    letter = data.draw(st.sampled_from("ABCDabcd0123-_").filter(lambda one: one != cursor[at]))
    with pytest.raises(ProblemError):
        decode(cursor[:at] + letter + cursor[at + 1 :], [])
