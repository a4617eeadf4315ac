"""Intervals, compared with published figures."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepladder.experiments.intervals import mean, share, share_difference, sign_test, t_quantile


@pytest.mark.parametrize(
    ("part", "whole", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_a_share_has_wilsons_interval(part: int, whole: int, low: float, high: float) -> None:
    found = share(part, whole)
    assert found is not None
    assert [found.low, found.high] == pytest.approx([low, high], abs=5e-5)


@pytest.mark.parametrize(
    ("was", "now", "low", "high"),
    [
        ((48, 80), (56, 70), 0.0524, 0.3339),
        ((3, 10), (9, 10), 0.1705, 0.8090),
        ((0, 10), (10, 10), 0.6075, 1.0),
        ((0, 20), (0, 10), -0.1611, 0.2775),
    ],
)
def test_a_difference_of_shares_has_newcombes_interval(
    was: tuple[int, int], now: tuple[int, int], low: float, high: float
) -> None:
    found = share_difference(was, now)
    assert found is not None
    assert [found.low, found.high] == pytest.approx([low, high], abs=5e-5)


@pytest.mark.parametrize(
    ("freedom", "value"),
    [(1, 12.7062), (2, 4.3027), (3, 3.1824), (4, 2.7764), (10, 2.2281), (11, 2.2010), (30, 2.0423), (120, 1.9799)],
)
def test_students_t_is_as_in_the_tables(freedom: int, value: float) -> None:
    assert t_quantile(freedom) == pytest.approx(value, abs=5e-5)


def test_a_mean_has_an_interval_from_two_values_on() -> None:
    found = mean([1.0, 2.0, 3.0, 4.0, 5.0])
    assert found is not None
    assert [found.value, found.low, found.high] == pytest.approx([3.0, 1.03676, 4.96324], abs=1e-5)
    [one, none] = mean([7.0]), mean([])
    assert one is not None
    assert (one.value, one.low, one.clear, none) == (7.0, None, False, None)


@pytest.mark.parametrize(
    ("better", "worse", "p"), [(0, 5, 0.0625), (5, 0, 0.0625), (1, 9, 0.021484375), (3, 3, 1.0), (0, 0, None)]
)
def test_the_sign_test_is_exact(better: int, worse: int, p: float | None) -> None:
    assert sign_test(better, worse) == p


@given(st.integers(0, 50), st.integers(0, 50))
def test_a_share_is_inside_its_interval(part: int, rest: int) -> None:
    found = share(part, part + rest)
    if found is None:
        assert part + rest == 0
        return
    assert 0 <= (found.low or 0.0) <= found.value <= (found.high or 0.0) <= 1


@given(st.tuples(st.integers(0, 9), st.integers(1, 9)), st.tuples(st.integers(0, 9), st.integers(1, 9)))
def test_a_reversed_difference_is_mirrored(was: tuple[int, int], now: tuple[int, int]) -> None:
    was, now = (was[0], was[0] + was[1]), (now[0], now[0] + now[1])
    there, back = share_difference(was, now), share_difference(now, was)
    assert there is not None
    assert back is not None
    assert back.low is not None
    assert back.high is not None
    assert [there.low, there.high] == pytest.approx([-back.high, -back.low])
