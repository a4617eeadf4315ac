"""Charts show what the numbers say."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepladder.dashboard.chart import BASE, SPARK_HEIGHT, TOP, bar_chart, round_up, sparkline
from stepladder.dashboard.messages import REMEDIES
from stepladder.dashboard.overview import alert_rates
from stepladder.dashboard.rendering import percent
from stepladder.queries.stats import Bucket
from stepladder.schemas.job import Failure
from stepladder.schemas.outcomes import Outcome
from stepladder.schemas.stats import RATES, Rates

HOUR = timedelta(hours=1)
AT = datetime(2026, 1, 31, 12, tzinfo=UTC)
COUNTS = st.dictionaries(st.sampled_from(Outcome), st.integers(0, 5000))


@given(st.lists(COUNTS, max_size=30))
def test_the_height_of_a_block_is_its_share_of_the_scale(counts: list[dict[Outcome, int]]) -> None:
    buckets = [Bucket(AT + HOUR * nth, one, Rates.of([])) for nth, one in enumerate(counts)]
    chart = bar_chart(buckets, HOUR)
    assert chart.total == sum(sum(one.values()) for one in counts)
    scale = max(int(text.replace(",", "")) for _, text in chart.counts)
    for bar, bucket in zip(chart.bars, buckets, strict=True):
        assert bucket.attempts <= scale
        heights = {outcome: height for outcome, _, height in bar.blocks}
        assert set(heights) == {outcome for outcome, count in bucket.outcomes.items() if count}
        for outcome, height in heights.items():
            assert height == pytest.approx((BASE - TOP) * bucket.outcomes[outcome] / scale)


@given(st.integers(0, 10**9))
def test_a_scale_ends_at_a_round_even_number(number: int) -> None:
    top = round_up(number)
    assert number <= top <= max(2, number * 2)
    assert top % 2 == 0
    assert len(str(top).rstrip("0")) == 1


def test_a_gap_in_a_rate_is_a_gap_in_its_line() -> None:
    low = SPARK_HEIGHT - 3
    assert sparkline([0.5, 1.0, None, 0.0, None]) == (f"M0.0 20.0L45.0 3.0M133.0 {low:.1f}h4", 1.0)
    assert sparkline([None, None]) == ("", 0.05)


def test_a_rate_beyond_its_bound_alerts() -> None:
    counts = {"attempts": 20, "answers": 10, "usable": 6, "lost": 10, "truncated": 1, "zero_token": 2}
    columns = dict.fromkeys([column for parts in RATES.values() for column in parts], 0)
    bucket = Bucket(AT, {}, Rates.of([columns | counts]))
    assert {one.name: (one.rate, one.alerting) for one in alert_rates(bucket, [bucket])} == {
        "validity": (0.6, True),
        "truncation": (0.1, True),
        "zero-token": (0.2, True),
        "transport": (0.5, True),
    }
    nothing = Bucket(AT, {}, Rates.of([]))
    assert [(one.rate, one.alerting) for one in alert_rates(nothing, [nothing])] == [(None, False)] * 4


@pytest.mark.parametrize(
    ("share", "text"),
    [(None, "–"), (0.0, "0 %"), (1.0, "100 %"), (0.0001, "<0.1 %"), (0.99999, ">99.9 %"), (0.898, "89.8 %")],
)
def test_a_share_is_never_rounded_to_all_or_nothing(share: float | None, text: str) -> None:
    assert percent(share) == text


def test_every_failure_has_a_remedy() -> None:
    assert set(REMEDIES) == set(Failure)
