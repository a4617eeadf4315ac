"""How sure a share, a mean or a difference is: intervals that hold the true value 95 times in 100.

Wilson's interval for a share and Newcombe's for the difference of two ("Two-sided confidence intervals for the single
proportion" and "Interval estimation for the difference between independent proportions", both 1998) hold for few
observations and at the ends as well; for a mean it is Student's t.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist, fmean, stdev
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

CONFIDENCE = 0.95
Z = NormalDist().inv_cdf(0.5 + CONFIDENCE / 2)


@dataclass(frozen=True, slots=True)
class Interval:
    """``value`` is what was seen of ``count`` observations. Without ends nothing is known of how sure it is."""

    value: float
    low: float | None
    high: float | None
    count: int

    @property
    def beyond_zero(self) -> bool:
        """Whether all of it lies on one side of zero: a difference that chance hardly makes."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


def share(part: int, whole: int) -> Interval | None:
    """``part`` of ``whole``, from 0 to 1, by Wilson. None of nothing."""
    if whole == 0:
        return None
    low, high = _wilson(part, whole)
    return Interval(part / whole, low, high, whole)


def share_difference(was: tuple[int, int], now: tuple[int, int]) -> Interval | None:
    """The second share less the first, each ``(part, whole)``, by Newcombe. The two are taken to be independent."""
    if was[1] == 0 or now[1] == 0:
        return None
    here, there = was[0] / was[1], now[0] / now[1]
    (here_low, here_high), (there_low, there_high) = _wilson(*was), _wilson(*now)
    down = math.hypot(there - there_low, here_high - here)
    up = math.hypot(there_high - there, here - here_low)
    return Interval(there - here, there - here - down, there - here + up, was[1] + now[1])


def mean(values: Sequence[float]) -> Interval | None:
    """The mean, by Student's t. One value says nothing of how sure it is; None of nothing."""
    if not values:
        return None
    middle = fmean(values)
    if len(values) == 1:
        return Interval(middle, None, None, 1)
    reach = t_quantile(len(values) - 1) * stdev(values) / math.sqrt(len(values))
    return Interval(middle, middle - reach, middle + reach, len(values))


def sign_test(better: int, worse: int) -> float | None:
    """Of pairs that came out differently: how likely chance alone makes a split as uneven (exact, two-sided).

    Of paired successes and failures this is McNemar's exact test. None where no pair differs.
    """
    both = better + worse
    if both == 0:
        return None
    tail = sum(math.comb(both, k) for k in range(min(better, worse) + 1))
    return min(1.0, float(2 * tail / (1 << both)))


def _wilson(part: int, whole: int) -> tuple[float, float]:
    seen, square = part / whole, Z * Z
    middle = (seen + square / (2 * whole)) / (1 + square / whole)
    reach = Z * math.sqrt(seen * (1 - seen) / whole + square / (4 * whole * whole)) / (1 + square / whole)
    return (0.0 if part == 0 else middle - reach), (1.0 if part == whole else middle + reach)


@cache
def t_quantile(freedom: int) -> float:
    """The value that Student's t with so many degrees of freedom keeps within, up and down, ``CONFIDENCE`` of the
    time.
    """
    low, high = 0.0, 20.0
    while _within(high, freedom) < CONFIDENCE:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < CONFIDENCE else (low, middle)
    return (low + high) / 2


def _within(t: float, freedom: int) -> float:
    """How often |t| is no more: for whole degrees of freedom a finite sum (Abramowitz and Stegun, 26.7.3 and 4)."""
    angle = math.atan(t / math.sqrt(freedom))
    cosine = math.cos(angle)
    odd = freedom % 2 == 1
    term, total = (cosine, cosine if freedom > 1 else 0.0) if odd else (1.0, 1.0)
    for step in range(3 if odd else 2, freedom, 2):
        term *= cosine * cosine * (step - 1) / step
        total += term
    return 2 / math.pi * (angle + math.sin(angle) * total) if odd else math.sin(angle) * total
