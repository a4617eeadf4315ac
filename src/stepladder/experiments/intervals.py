"""Shares, means and differences with 95 % confidence intervals.

Wilson's interval for a share and Newcombe's for the difference of two ("Two-sided confidence intervals for the single
proportion" and "Interval estimation for the difference between independent proportions", both 1998) are sound for few
observations and near 0 and 1; a mean has Student's t. scipy and statsmodels have all of it, and weigh 150 MB.
"""

from __future__ import annotations

import math
from functools import cache
from statistics import NormalDist, fmean, stdev
from typing import TYPE_CHECKING

from stepladder.schemas.experiment import Interval

if TYPE_CHECKING:
    from collections.abc import Sequence

CONFIDENCE = 0.95
Z = NormalDist().inv_cdf(0.5 + CONFIDENCE / 2)


def share(part: int, whole: int) -> Interval | None:
    """``part`` of ``whole``, from 0 to 1, by Wilson. None if ``whole`` is 0."""
    return _interval(part / whole, *_wilson(part, whole), whole) if whole else None


def share_difference(was: tuple[int, int], now: tuple[int, int]) -> Interval | None:
    """The second share minus the first, each ``(part, whole)``, by Newcombe. Takes the two as independent."""
    if was[1] == 0 or now[1] == 0:
        return None
    here, there = was[0] / was[1], now[0] / now[1]
    (here_low, here_high), (there_low, there_high) = _wilson(*was), _wilson(*now)
    below = math.hypot(there - there_low, here_high - here)
    above = math.hypot(there_high - there, here - here_low)
    return _interval(there - here, there - here - below, there - here + above, was[1] + now[1])


def mean(values: Sequence[float]) -> Interval | None:
    """The mean, by Student's t. One value has no bounds; None without values."""
    if len(values) < 2:
        return _interval(values[0], None, None, 1) if values else None
    middle, count = fmean(values), len(values)
    reach = t_quantile(count - 1) * stdev(values) / math.sqrt(count)
    return _interval(middle, middle - reach, middle + reach, count)


def sign_test(better: int, worse: int) -> float | None:
    """How likely chance alone splits unequal pairs as unevenly: exact and two-sided. None if no pair is unequal.

    For paired successes and failures this is McNemar's exact test.
    """
    both = better + worse
    if both == 0:
        return None
    tail = sum(math.comb(both, k) for k in range(min(better, worse) + 1))
    return min(1.0, float(2 * tail / (1 << both)))


def _interval(value: float, low: float | None, high: float | None, count: int) -> Interval:
    clear = low is not None and high is not None and (low > 0 or high < 0)
    return Interval(value=value, low=low, high=high, count=count, clear=clear)


def _wilson(part: int, whole: int) -> tuple[float, float]:
    seen, square = part / whole, Z * Z
    middle = (seen + square / (2 * whole)) / (1 + square / whole)
    reach = Z * math.sqrt(seen * (1 - seen) / whole + square / (4 * whole * whole)) / (1 + square / whole)
    return (0.0 if part == 0 else middle - reach), (1.0 if part == whole else middle + reach)


@cache
def t_quantile(freedom: int) -> float:
    """The bound that |t| with ``freedom`` degrees of freedom does not exceed in a share ``CONFIDENCE`` of cases."""
    low, high = 0.0, 20.0
    while _within(high, freedom) < CONFIDENCE:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < CONFIDENCE else (low, middle)
    return (low + high) / 2


def _within(t: float, freedom: int) -> float:
    """P(|T| <= t): for integer degrees of freedom a finite sum (Abramowitz and Stegun, 26.7.3 and 4)."""
    angle = math.atan(t / math.sqrt(freedom))
    cosine = math.cos(angle)
    odd = freedom % 2 == 1
    term, sum_ = (cosine, cosine if freedom > 1 else 0.0) if odd else (1.0, 1.0)
    for step in range(3 if odd else 2, freedom, 2):
        term *= cosine * cosine * (step - 1) / step
        sum_ += term
    return 2 / math.pi * (angle + math.sin(angle) * sum_) if odd else math.sin(angle) * sum_
