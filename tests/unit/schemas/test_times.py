"""Moments as people write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepladder.schemas.times import since_of

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("24h", datetime(2026, 2, 28, 12, tzinfo=UTC)),
        ("90m", datetime(2026, 3, 1, 10, 30, tzinfo=UTC)),
        ("7d", datetime(2026, 2, 22, 12, tzinfo=UTC)),
        ("2w", datetime(2026, 2, 15, 12, tzinfo=UTC)),
        ("0s", NOW),
        ("2026-01-31", datetime(2026, 1, 31, tzinfo=UTC)),
        ("2026-01-31T12:30:00+02:00", datetime(2026, 1, 31, 10, 30, tzinfo=UTC)),
    ],
)
def test_a_span_and_a_time_both_name_a_moment(text: str, at: datetime) -> None:
    assert since_of(text, NOW) == at


@pytest.mark.parametrize(
    "text", ["", "24", "h", "-1h", "1.5h", "24 h", "yesterday", "999999w", "٢h", "0001-01-01T00:00+14:00"]
)
def test_anything_else_names_none(text: str) -> None:
    assert since_of(text, NOW) is None


@given(st.text(max_size=30), st.datetimes(timezones=st.just(UTC)))
def test_no_text_breaks_it(text: str, now: datetime) -> None:
    at = since_of(text, now)
    assert at is None or at.utcoffset() == timedelta(0)
