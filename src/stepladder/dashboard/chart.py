"""Charts of judged attempts over time: stacked bars by outcome, and a rate as a line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepladder.schemas.outcomes import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta

    from stepladder.queries.stats import Bucket

WIDTH, HEIGHT, LEFT, TOP, BASE = 720.0, 240.0, 44.0, 18.0, 204.0
SPARK_WIDTH, SPARK_HEIGHT = 180.0, 40.0
MOST_TICKS = 6


@dataclass(frozen=True, slots=True)
class Bar:
    """One period. ``blocks`` are the outcomes with the top and the height of each."""

    x: float
    title: str
    blocks: tuple[tuple[Outcome, float, float], ...]


@dataclass(frozen=True, slots=True)
class BarChart:
    """``outcomes`` are those that occur, in the order of the blocks from the base up. Ticks are places with texts."""

    bars: tuple[Bar, ...]
    pitch: float
    counts: tuple[tuple[float, str], ...]
    times: tuple[tuple[float, str], ...]
    outcomes: tuple[tuple[Outcome, int], ...]
    total: int


def bar_chart(buckets: Sequence[Bucket], step: timedelta) -> BarChart:
    totals = {outcome: sum(bucket.outcomes.get(outcome, 0) for bucket in buckets) for outcome in Outcome}
    outcomes = tuple((outcome, count) for outcome, count in totals.items() if count)
    scale = round_up(max((bucket.attempts for bucket in buckets), default=0))
    pitch = (WIDTH - LEFT) / max(1, len(buckets))
    bars = []
    for nth, bucket in enumerate(buckets):
        y, blocks = BASE, []
        for outcome, _ in outcomes:
            if count := bucket.outcomes.get(outcome, 0):
                height = (BASE - TOP) * count / scale
                y -= height
                blocks.append((outcome, y, height))
        bars.append(Bar(LEFT + nth * pitch, _title(bucket, step), tuple(blocks)))
    counts = tuple((BASE - (BASE - TOP) * count / scale, f"{count:,}") for count in sorted({0, scale // 2, scale}))
    labelled = range(0, len(buckets), max(1, -(-len(buckets) // MOST_TICKS)))
    times = tuple((LEFT + (nth + 0.5) * pitch, _clock(buckets[nth].at, step)) for nth in labelled)
    return BarChart(tuple(bars), pitch, counts, times, outcomes, sum(totals.values()))


def sparkline(rates: Sequence[float | None]) -> tuple[str, float]:
    """Rates from 0 to 1 as an SVG path with its gaps, and the top of its scale, which is at least 5 %."""
    top = max([rate for rate in rates if rate is not None] + [0.05])
    pitch = SPARK_WIDTH / max(1, len(rates) - 1)
    path = ""
    for nth, rate in enumerate(rates):
        if rate is not None:
            joined = nth > 0 and rates[nth - 1] is not None
            alone = not joined and (nth + 1 == len(rates) or rates[nth + 1] is None)
            x, y = nth * pitch - 2 * alone, SPARK_HEIGHT - 3 - (SPARK_HEIGHT - 6) * rate / top
            path += f"{'L' if joined else 'M'}{x:.1f} {y:.1f}{'h4' if alone else ''}"
    return path, top


def round_up(number: int) -> int:
    """The next number that suits the end of a scale: even, with one digit before its zeros."""
    unit = 1
    while 10 * unit < number:
        unit *= 10
    return next(factor * unit for factor in (2, 4, 6, 8, 10) if factor * unit >= number)


def _clock(at: datetime, step: timedelta) -> str:
    return f"{at:%d %b}" if step.total_seconds() >= 6 * 3600 else f"{at:%H:%M}"


def _title(bucket: Bucket, step: timedelta) -> str:
    shape = "%d %b" if step.days else "%d %b %H:%M" if step.total_seconds() > 3600 else "%H:%M"
    counts = ", ".join(f"{count:,} {outcome.replace('_', ' ')}" for outcome, count in bucket.outcomes.items() if count)
    return f"{bucket.at.strftime(shape)} to {(bucket.at + step).strftime(shape)}: {counts or 'no attempts'}"
