"""Charts of what was judged over time: stacked bars by outcome, and one rate as a line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepladder.schemas.outcomes import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta

    from stepladder.models.stats import Bucket

WIDTH, HEIGHT, LEFT, BELOW, ABOVE = 720.0, 240.0, 44.0, 36.0, 18.0
SPARK_WIDTH, SPARK_HEIGHT = 180.0, 40.0
TICKS_BELOW = 6


@dataclass(frozen=True, slots=True)
class Block:
    """Attempts of one outcome in one bar."""

    outcome: Outcome
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Bar:
    """Everything of one span of time, with the words that a pointer over it shows."""

    x: float
    width: float
    told: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Tick:
    """A number or a time beside an axis."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class BarChart:
    """``outcomes`` are those that occur, most wanted first, which is the order of the blocks from the ground up."""

    bars: tuple[Bar, ...]
    numbers: tuple[Tick, ...]
    times: tuple[Tick, ...]
    outcomes: tuple[tuple[Outcome, int], ...]
    total: int


@dataclass(frozen=True, slots=True)
class Spark:
    """A rate over time as paths: a new one behind each gap. ``dots`` are moments with gaps on both sides."""

    paths: tuple[str, ...]
    dots: tuple[tuple[float, float], ...]
    highest: float


def bar_chart(buckets: Sequence[Bucket], step: timedelta) -> BarChart:
    total = {outcome: sum(bucket.outcomes.get(outcome, 0) for bucket in buckets) for outcome in Outcome}
    present = tuple((outcome, count) for outcome, count in total.items() if count)
    top = nice(max((bucket.attempts for bucket in buckets), default=0))
    pitch = (WIDTH - LEFT) / max(1, len(buckets))
    room = HEIGHT - BELOW - ABOVE
    bars = []
    for nth, bucket in enumerate(buckets):
        x, ground, blocks = LEFT + nth * pitch, HEIGHT - BELOW, []
        for outcome, _ in present:
            count = bucket.outcomes.get(outcome, 0)
            if count:
                tall = room * count / top
                ground -= tall
                blocks.append(Block(outcome, x + pitch * 0.1, ground, pitch * 0.8, tall))
        bars.append(Bar(x, pitch, _told(bucket, step), tuple(blocks)))
    every = max(1, -(-len(buckets) // TICKS_BELOW))
    times = tuple(
        Tick(LEFT + (nth + 0.5) * pitch, clock(bucket.at, step))
        for nth, bucket in enumerate(buckets)
        if nth % every == 0
    )
    numbers = tuple(Tick(HEIGHT - BELOW - room * part / top, f"{part:,}") for part in sorted({0, top // 2, top}))
    return BarChart(tuple(bars), numbers, times, present, sum(total.values()))


def spark(rates: Sequence[float | None]) -> Spark:
    """Of a rate from 0 to 1. Low ones are drawn as far up as they reach, but no scale ends below 5 %."""
    highest = max([rate for rate in rates if rate is not None] + [0.05])
    pitch = SPARK_WIDTH / max(1, len(rates) - 1)
    runs: list[list[tuple[float, float]]] = [[]]
    for nth, rate in enumerate(rates):
        if rate is not None:
            runs[-1].append((nth * pitch, SPARK_HEIGHT - 3 - (SPARK_HEIGHT - 6) * rate / highest))
        elif runs[-1]:
            runs.append([])
    paths = tuple("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in run) for run in runs if len(run) > 1)
    return Spark(paths, tuple(run[0] for run in runs if len(run) == 1), highest)


def nice(number: int) -> int:
    """The next number at which a scale may end: even, and of one digit and zeros."""
    unit = 1
    while True:
        for factor in (2, 4, 6, 8, 10):
            if factor * unit >= number:
                return factor * unit
        unit *= 10


def clock(at: datetime, step: timedelta) -> str:
    """A time as an axis shows it."""
    return f"{at:%d %b}" if step.total_seconds() >= 6 * 3600 else f"{at:%H:%M}"


def _told(bucket: Bucket, step: timedelta) -> str:
    shape = "%d %b" if step.days else "%d %b %H:%M" if step.total_seconds() > 3600 else "%H:%M"
    counts = ", ".join(f"{count:,} {outcome.replace('_', ' ')}" for outcome, count in bucket.outcomes.items() if count)
    return f"{bucket.at.strftime(shape)} to {(bucket.at + step).strftime(shape)}: {counts or 'nothing was judged'}"
