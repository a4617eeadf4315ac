"""Metrics for Prometheus: what the database counts, for all processes alike, and the requests of this one."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from stepladder.schemas.job import JobStatus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client import Metric

    from stepladder.models.tally import Tallies, Tally

FRESH_S = 2.0
"""However many ask, the database is read once in this time."""

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
        """Counts a request. ``route`` is the pattern, never a path, of which there is no end."""
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
        tally = self._tally
        attempts = CounterMetricFamily(
            "stepladder_attempts", "Judged attempts by outcome and cause.", labels=("workflow", "outcome", "cause")
        )
        for judged, count in sorted(tally.attempts.items(), key=lambda item: str(item[0])):
            attempts.add_metric((judged.workflow, judged.outcome, judged.cause), count)
        yield attempts

        tokens = CounterMetricFamily("stepladder_tokens", "Tokens of judged attempts.", labels=("workflow", "kind"))
        for kind, counts in (("prompt", tally.prompt_tokens), ("completion", tally.completion_tokens)):
            for workflow, count in sorted(counts.items()):
                tokens.add_metric((workflow, kind), count)
        yield tokens

        ended = CounterMetricFamily(
            "stepladder_jobs_ended", "Jobs that ended, and why they failed.", labels=("workflow", "status", "failure")
        )
        for end, count in sorted(tally.ended.items(), key=lambda item: str(item[0])):
            ended.add_metric((end.workflow, end.status, end.failure), count)
        yield ended

        done = dict.fromkeys(JobStatus, 0)
        for end, count in tally.ended.items():
            done[JobStatus(end.status)] += count
        jobs = GaugeMetricFamily("stepladder_jobs", "Jobs by status.", labels=("status",))
        for status in JobStatus:
            jobs.add_metric((status,), done[status] if status.final else tally.live.get(status, 0))
        yield jobs

        yield GaugeMetricFamily("stepladder_jobs_in_hand", "Jobs that a worker has.", value=tally.in_hand)
        yield GaugeMetricFamily("stepladder_queue_jobs", "Jobs that are due and in nobody's hands.", value=tally.due)
        yield GaugeMetricFamily(
            "stepladder_queue_age_seconds", "For how long the first of them has been due.", value=tally.age_s
        )
