"""The page at ``/``: how it goes, and what needs a look."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from starlette.responses import RedirectResponse

from stepladder.dashboard.chart import SPARK_HEIGHT, SPARK_WIDTH, bar_chart, spark
from stepladder.dashboard.desk import desk_of
from stepladder.dashboard.filters import NAMES
from stepladder.dashboard.render import page
from stepladder.models.listing import JobFilter
from stepladder.models.stats import read_slowest, read_trend
from stepladder.schemas.errors import StepladderError
from stepladder.schemas.job import JobStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from stepladder.dashboard.chart import Spark
    from stepladder.dashboard.desk import Desk
    from stepladder.engine.identity import Identity
    from stepladder.models.stats import Bucket, SlowTurn
    from stepladder.schemas.stats import WorkflowStats

SLOWEST, FAILED = 5, 6
ENGINE_WITHIN_S = 2.0


@dataclass(frozen=True, slots=True)
class Period:
    """How far back the page looks, and in what steps."""

    word: str
    told: str
    step: timedelta
    steps: int


PERIODS = (
    Period("1h", "the last hour", timedelta(minutes=2), 30),
    Period("24h", "the last 24 hours", timedelta(hours=1), 24),
    Period("7d", "the last 7 days", timedelta(hours=6), 28),
    Period("30d", "the last 30 days", timedelta(days=1), 30),
)
USUAL = PERIODS[1]


@dataclass(frozen=True, slots=True)
class AlertRate:
    """One of the four rates that alerts go by. ``bound`` is where the alerts of the deployment page begin."""

    name: str
    told: str
    rate: float | None
    bound: float
    falling: bool
    line: Spark

    @property
    def beyond(self) -> bool:
        if self.rate is None:
            return False
        return self.rate < self.bound if self.falling else self.rate > self.bound


@dataclass(frozen=True, slots=True)
class Figures:
    """What is read of the database for the page, once for all who look at it."""

    buckets: tuple[Bucket, ...]
    whole: Bucket
    workflows: tuple[WorkflowStats, ...]
    slowest: tuple[SlowTurn, ...]


async def show_overview(request: Request) -> Response:
    """The period and the workflow stand in the URL. Addresses of the list, which was once here, lead there."""
    query = request.query_params
    if any(name in NAMES or name.startswith("metadata") for name in query if name != "workflow"):
        return RedirectResponse(f"/jobs?{urlencode(query.multi_items())}", 303)
    desk = desk_of(request)
    period = next((one for one in PERIODS if one.word == query.get("since")), USUAL)
    workflow = query.get("workflow", "").replace("\0", "")[:200] or None
    since = _since(datetime.now(UTC), period)
    figures = await desk.figures.read((period.word, since, workflow), lambda: _read(desk, since, period, workflow))
    counts, tally = await desk.counts.read(), await desk.counts.tally()
    wanted = JobFilter(status=(JobStatus.FAILED,), workflow=(workflow,) if workflow else ())
    names = dict.fromkeys(version.name for version in await desk.parts.reads.workflows())
    return page(
        request,
        "overview.html",
        periods=PERIODS,
        period=period,
        chosen=workflow,
        workflows=list(names),
        total=sum(counts.values()),
        counts=counts,
        statuses=list(JobStatus),
        chart=bar_chart(figures.buckets, period.step),
        buckets=figures.buckets,
        whole=figures.whole,
        rates=alert_rates(figures.whole, figures.buckets),
        stats=figures.workflows,
        slowest=figures.slowest,
        tally=tally,
        engine=await desk.engine.read("engine", lambda: _engine(desk)),
        failed=await desk.parts.reads.jobs(wanted, FAILED),
        base=str(request.base_url).rstrip("/"),
        spark=(SPARK_WIDTH, SPARK_HEIGHT),
        mistakes=[],
    )


def alert_rates(whole: Bucket, buckets: Sequence[Bucket]) -> tuple[AlertRate, ...]:
    def one(name: str, told: str, bound: float, *, falling: bool = False) -> AlertRate:
        field = name.replace(" ", "_").replace("-", "_")
        line = spark([getattr(bucket.rates, field) for bucket in buckets])
        return AlertRate(name, told, getattr(whole.rates, field), bound, falling, line)

    return (
        one("validity", "of the answers that arrived, those that were accepted", 0.9, falling=True),
        one("truncation", "of the answers that arrived, those that were cut off", 0.02),
        one("zero-token", "of the answers that arrived, those with nothing in them", 0.005),
        one("transport", "of all attempts, those of which no complete answer arrived", 0.01),
    )


def _since(now: datetime, period: Period) -> datetime:
    """The beginning of the first step. Steps begin on the clock, so that the last one is not over yet."""
    first = datetime(1970, 1, 1, tzinfo=UTC)
    return first + (now - first) // period.step * period.step - period.step * (period.steps - 1)


async def _read(desk: Desk, since: datetime, period: Period, workflow: str | None) -> Figures:
    database = desk.parts.store.database
    return Figures(
        *await read_trend(database, since, period.step, period.steps, workflow),
        await desk.parts.reads.stats(since, workflow),
        await read_slowest(database, since, SLOWEST, workflow),
    )


async def _engine(desk: Desk) -> dict[str, Any]:
    """Who the engine says it is; ``known`` is false where this process has been told of none."""
    if desk.parts.identify is None:
        return {"known": False, "identity": None}
    identity: Identity | None = None
    try:
        async with asyncio.timeout(ENGINE_WITHIN_S):
            identity = await desk.parts.identify()
    except (StepladderError, TimeoutError):
        identity = None
    return {"known": True, "identity": identity}
