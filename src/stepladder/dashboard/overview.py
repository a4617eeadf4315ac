"""The page at ``/``: rates over time, slow turns, recent failures, the queue and the engine."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from stepladder.dashboard import chart
from stepladder.dashboard.context import context_of
from stepladder.dashboard.rendering import page
from stepladder.queries.stats import read_slowest, read_trend
from stepladder.schemas.errors import StepladderError
from stepladder.schemas.job import JobStatus
from stepladder.schemas.job_filter import JobFilter
from stepladder.schemas.stats import Rates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from stepladder.dashboard.context import Context
    from stepladder.queries.stats import Bucket

SLOWEST, FAILED = 5, 6
ENGINE_WITHIN_S = 2.0


@dataclass(frozen=True, slots=True)
class Period:
    """How far back the page looks, and in what steps."""

    word: str
    description: str
    step: timedelta
    steps: int


PERIODS = (
    Period("1h", "the last hour", timedelta(minutes=2), 30),
    Period("24h", "the last 24 hours", timedelta(hours=1), 24),
    Period("7d", "the last 7 days", timedelta(hours=6), 28),
    Period("30d", "the last 30 days", timedelta(days=1), 30),
)
DEFAULT_PERIOD = PERIODS[1]


@dataclass(frozen=True, slots=True)
class AlertRate:
    """One of the four rates that the alerts of the deployment page watch, with the ``bound`` where they start."""

    name: str
    description: str
    bound: float
    falling: bool
    rate: float | None
    path: str
    top: float

    @property
    def alerting(self) -> bool:
        return self.rate is not None and (self.rate < self.bound if self.falling else self.rate > self.bound)


BOUNDS = (
    ("validity", 0.9, True),
    ("truncation", 0.02, False),
    ("zero_token", 0.005, False),
    ("transport", 0.01, False),
)


async def show_overview(request: Request) -> Response:
    """The period and the workflow are in the URL."""
    query, context = request.query_params, context_of(request)
    reads, database = context.services.reads, context.services.store.database
    period = next((one for one in PERIODS if one.word == query.get("since")), DEFAULT_PERIOD)
    workflow = query.get("workflow", "").replace("\0", "")[:200] or None
    since = _since(await database.now(), period)

    async def read() -> tuple[Any, ...]:
        return (
            *await read_trend(database, since, period.step, period.steps, workflow),
            await read_slowest(database, since, SLOWEST, workflow),
            await reads.stats(since, workflow),
        )

    buckets, whole, slowest, stats = await context.rates.get((period.word, since, workflow), read)
    tally, counts = await context.tally()
    failed = JobFilter(status=(JobStatus.FAILED,), workflow=(workflow,) if workflow else ())
    return page(
        request,
        "overview.html",
        periods=PERIODS,
        period=period,
        chosen=workflow,
        workflows=list(dict.fromkeys(version.name for version in await reads.workflows())),
        total=sum(counts.values()),
        counts=counts,
        chart=chart.bar_chart(buckets, period.step),
        size=chart,
        buckets=buckets,
        rates=alert_rates(whole, buckets),
        stats=stats,
        slowest=slowest,
        tally=tally,
        engine=await context.engine.get("engine", lambda: _engine(context)),
        failed=await reads.jobs(failed, FAILED),
        base=str(request.base_url).rstrip("/"),
    )


def alert_rates(whole: Bucket, buckets: Sequence[Bucket]) -> list[AlertRate]:
    rates = []
    for field, bound, falling in BOUNDS:
        line = chart.sparkline([getattr(bucket.rates, field) for bucket in buckets])
        name, description = field.replace("_", "-"), Rates.model_fields[field].description or ""
        rates.append(AlertRate(name, description, bound, falling, getattr(whole.rates, field), *line))
    return rates


def _since(now: datetime, period: Period) -> datetime:
    """The beginning of the first step. Steps are aligned to the clock, so the last one is still open."""
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return epoch + (now - epoch) // period.step * period.step - period.step * (period.steps - 1)


async def _engine(context: Context) -> dict[str, Any]:
    """The engine's identity, None if it does not answer; ``known`` is false if this process has no engine."""
    if context.services.identify is None:
        return {"known": False, "identity": None}
    try:
        async with asyncio.timeout(ENGINE_WITHIN_S):
            return {"known": True, "identity": await context.services.identify()}
    except (StepladderError, TimeoutError):
        return {"known": True, "identity": None}
