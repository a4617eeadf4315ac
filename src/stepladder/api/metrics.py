"""Metrics for Prometheus: counts from the database, the same in every process, and this process's HTTP requests."""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left
from collections import defaultdict
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from stepladder.queries.counts import SECONDS
from stepladder.schemas.job import JobStatus

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from prometheus_client import Metric

    from stepladder.models.attempt_counts import Row
    from stepladder.queries.counts import Tallies, Tally

FRESH_S = 2.0
"""The database is read at most once in this time."""

ATTEMPTS = (1, 2, 3, 4, 5, 8, 13)
"""Bounds of the buckets of attempts per turn. Three answers are the default; lost ones come on top."""

ANSWERS = {
    "first_answers": "First answers of turns: lost attempts are none.",
    "first_answers_in_format": "First answers that match the schema.",
    "answers_in_format": "Answers that match the schema.",
    "answers_semantic_valid": "Answers that match the schema and broke no rule.",
}
TIMES = {
    "ttft": ("stepladder_ttft_seconds", "Time to the first token of streamed answers."),
    "duration": ("stepladder_attempt_seconds", "Time from a request to the end of its answer, or to its loss."),
}

SLOTS = (
    ("slots", "bound", "Requests that all workers together may have at an engine at once, where that is bounded."),
    ("slots_in_use", "in_use", "Requests that they have there."),
    ("slots_wanted", "wanted", "Requests that they have there, and turns that wait for a slot."),
)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """The numbers of one application."""

    def __init__(self, tallies: Tallies) -> None:
        self._tallies = tallies
        self._lock = asyncio.Lock()
        self._tally: Tally | None = None
        self._read_at = 0.0
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "stepladder_http_requests",
            "Requests that this API process answered.",
            ("method", "route", "status"),
            registry=self._registry,
        )

    def answered(self, method: str, route: str, status: int) -> None:
        """Counts a request. ``route`` is the pattern, never a path: their number is unbounded."""
        self._requests.labels(method, route, str(status)).inc()

    async def page(self) -> bytes:
        """The text for Prometheus. Raises ``UnreachableError`` when the database breaks."""
        async with self._lock:
            if self._tally is None or time.monotonic() - self._read_at > FRESH_S:
                self._tally = await self._tallies.read()
                self._read_at = time.monotonic()
            counted = CollectorRegistry(auto_describe=False)
            counted.register(_Counted(self._tally))
        return generate_latest(counted) + generate_latest(self._registry)


class _Counted(Collector):
    def __init__(self, tally: Tally) -> None:
        self._tally = tally

    def collect(self) -> Iterator[Metric]:
        yield from self._attempts()
        yield from self._turns()
        yield from self._jobs()
        yield from self._engines()

    def _attempts(self) -> Iterator[Metric]:
        judged = self._tally.judged
        yield _counter(judged, "attempts", "Judged attempts by outcome and cause.", ("workflow", "outcome", "cause"))
        for name, text in ANSWERS.items():
            yield _counter(judged, name, text, ("workflow",))

        tokens = CounterMetricFamily(
            "stepladder_tokens", "Tokens of judged attempts.", labels=("workflow", "model", "outcome", "kind")
        )
        for kind in ("prompt", "completion"):
            for labels, count in _summed(judged, f"{kind}_tokens", ("workflow", "model", "outcome")):
                tokens.add_metric((*labels, kind), count)
        yield tokens
        priced = [row for row in judged if row["currency"] is not None]
        text = "What judged attempts cost, by the prices of STEPLADDER_PRICES."
        yield _counter(priced, "cost", text, ("workflow", "model", "outcome", "currency"))

        observed = "Attempts that broke a rule of severity observe."
        yield _counter(self._tally.observed, "attempts", observed, ("workflow", "rule"), name="observed_violations")
        for measure, (name, text) in TIMES.items():
            yield self._times(measure, name, text)

    def _times(self, measure: str, name: str, text: str) -> Metric:
        took: dict[str, list[int]] = {}
        seconds: defaultdict[str, float] = defaultdict(float)
        for row in self._tally.timed:
            if row["measure"] == measure:
                took.setdefault(row["workflow"], [0] * (len(SECONDS) + 1))[row["bucket"]] += row["attempts"]
                seconds[row["workflow"]] += row["seconds"]
        return _histogram(name, text, SECONDS, took, seconds)

    def _turns(self) -> Iterator[Metric]:
        closed = self._tally.closed
        yield _counter(closed, "turns", "Finished turns.", ("workflow", "outcome"))
        turns: dict[str, list[int]] = {}
        attempts: defaultdict[str, float] = defaultdict(float)
        for row in closed:
            bucket = bisect_left(ATTEMPTS, row["attempts"])
            turns.setdefault(row["workflow"], [0] * (len(ATTEMPTS) + 1))[bucket] += row["turns"]
            attempts[row["workflow"]] += row["attempts"] * row["turns"]
        text = "Finished turns, by the number of their attempts."
        yield _histogram("stepladder_attempts_per_turn", text, ATTEMPTS, turns, attempts)

    def _jobs(self) -> Iterator[Metric]:
        tally = self._tally
        ended = "Jobs that ended, and why they failed."
        yield _counter(tally.ended, "jobs", ended, ("workflow", "status", "failure"), name="jobs_ended")

        done = dict(_summed(tally.ended, "jobs", ("status",)))
        jobs = GaugeMetricFamily("stepladder_jobs", "Jobs by status.", labels=("status",))
        for status in JobStatus:
            jobs.add_metric((status,), done.get((status,), 0) if status.final else tally.live.get(status, 0))
        yield jobs

        yield GaugeMetricFamily("stepladder_jobs_in_hand", "Jobs leased by a worker.", value=tally.in_hand)
        for label in ("workflow", "principal"):
            text = f"Jobs leased by a worker, by {label}."
            leased = GaugeMetricFamily(f"stepladder_{label}_jobs_in_hand", text, labels=(label,))
            for labels, count in _summed(tally.leased, "jobs", (label,)):
                leased.add_metric(labels, count)
            yield leased
        yield GaugeMetricFamily("stepladder_queue_jobs", "Jobs that are due and not leased.", value=tally.due)
        yield GaugeMetricFamily(
            "stepladder_queue_age_seconds", "How long the first of them has been due.", value=tally.age_s
        )

    def _engines(self) -> Iterator[Metric]:
        for name, number, text in SLOTS:
            family = GaugeMetricFamily(f"stepladder_engine_{name}", text, labels=("engine",))
            for use in self._tally.engines:
                family.add_metric((use.engine,), getattr(use, number))
            yield family


def _summed(rows: Sequence[Row], number: str, labels: tuple[str, ...]) -> list[tuple[tuple[str, ...], float]]:
    """One number, summed for each combination of these labels."""
    sums: dict[tuple[str, ...], Any] = {}
    for row in rows:
        key = tuple(row[label] for label in labels)
        sums[key] = sums.get(key, 0) + row[number]
    return [(key, float(count)) for key, count in sorted(sums.items())]


def _counter(
    rows: Sequence[Row], number: str, text: str, labels: tuple[str, ...], *, name: str = ""
) -> CounterMetricFamily:
    family = CounterMetricFamily(f"stepladder_{name or number}", text, labels=labels)
    for values, count in _summed(rows, number, labels):
        family.add_metric(values, count)
    return family


def _histogram(
    name: str, text: str, bounds: Sequence[float], buckets: Mapping[str, Sequence[int]], sums: Mapping[str, float]
) -> HistogramMetricFamily:
    """By workflow. ``buckets`` has one more than there are ``bounds``, for what lies above the last of them."""
    family = HistogramMetricFamily(name, text, labels=("workflow",))
    names = [*(str(float(bound)) for bound in bounds), "+Inf"]
    for workflow, counts in sorted(buckets.items()):
        family.add_metric((workflow,), list(zip(names, accumulate(counts), strict=True)), sums[workflow])
    return family
