"""Routes: many replays at once, of the jobs that match a filter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from stepladder.api.answers import JsonAnswer
from stepladder.api.body import read_json, shaped
from stepladder.api.dependencies import Reader, ServicesDep, Writer
from stepladder.api.jobs import Key
from stepladder.api.problems import Mistake, invalid, key_taken, not_found
from stepladder.api.replays import MOST_CHANGES, Path
from stepladder.api.specification import answered, problems, takes
from stepladder.models import bulks
from stepladder.queries.where import WhereError, filter_of
from stepladder.schemas.pointer import pointer
from stepladder.schemas.replay import BulkEstimate, BulkReplay, DriftReport, Mode
from stepladder.services.bulks import CONCURRENCY, PRIORITY, estimate, order, total
from stepladder.services.replays import Wanted
from stepladder.services.revalidation import By, Revalidation
from stepladder.services.submission import check_key

if TYPE_CHECKING:
    from stepladder.api.dependencies import Services
    from stepladder.schemas.job_filter import JobFilter

router = APIRouter(prefix="/v1/replays", tags=["replays"])

MAX_JUDGED = 1000


class BulkOrder(BaseModel):
    """Every job that matches a filter, replayed as `POST /v1/jobs/{id}/replays` would replay it.

    `where` has the parameters of `GET /v1/jobs`, each with one value or a list of alternatives. `dry_run` only counts.
    `revalidate` judges up to 1,000 jobs in the request, and answers with the report.
    """

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={
            "example": {"where": {"workflow": "usage-bill", "status": "failed"}, "mode": "resume", "dry_run": True}
        },
    )

    where: dict[Path, Any] = Field(max_length=20)
    mode: Literal["revalidate", "resume", "fork"]
    changes: dict[Path, Any] = Field(default_factory=dict, alias="set", max_length=MOST_CHANGES)
    dry_run: bool = False
    concurrency: int = Field(CONCURRENCY, ge=1, le=1000, description="replays that run at once")
    priority: int = Field(PRIORITY, ge=-1000, le=1000)


@router.post(
    "",
    status_code=202,
    openapi_extra=takes(BulkOrder),
    responses={
        202: answered(BulkReplay, "Ordered; workers start the replays"),
        200: answered(BulkReplay | BulkEstimate | DriftReport, "The order with this key, the estimate, or the report"),
        **problems(body=True),
    },
)
async def order_replays(
    request: Request, services: ServicesDep, principal: Writer, idempotency_key: Key = None
) -> JsonAnswer:
    """Replay every job that matches a filter, a few at once."""
    body = shaped(BulkOrder, await read_json(request))
    jobs, database = _filter(body), services.store.database
    wanted = Wanted(Mode(body.mode), changes=body.changes)
    if wanted.mode is Mode.REVALIDATE:
        return await _judge(services, wanted, jobs, dry_run=body.dry_run)
    if wanted.mode is Mode.RESUME and wanted.changes:
        mistakes = [Mistake("a resume runs by the same version, and changes nothing", "/set")]
        raise invalid("a resume changes nothing", mistakes, "use mode fork; nothing was done")
    if body.dry_run:
        return JsonAnswer(await estimate(database, services.replays, jobs, wanted, principal))
    if idempotency_key is not None:
        check_key(idempotency_key)
    more = {"concurrency": body.concurrency, "priority": body.priority}
    found = await order(database, body.where, wanted, principal, idempotency_key, **more)
    if found is None:
        raise key_taken()
    bulk, again = found
    return JsonAnswer(bulk, 200 if again else 202, {"Location": f"/v1/replays/{bulk.id}"})


async def _judge(services: Services, wanted: Wanted, jobs: JobFilter, *, dry_run: bool) -> JsonAnswer:
    count = await total(services.store.database, jobs)
    if dry_run:
        return JsonAnswer(BulkEstimate(mode=wanted.mode, dry_run=True, jobs=count))
    if count > MAX_JUDGED:
        mistakes = [Mistake(f"it matches {count:,} jobs; one request judges at most {MAX_JUDGED:,}", "/where")]
        remedy = "narrow it, for example by created_after; or use `stepladder replay --where`, which has no limit"
        raise invalid("too many jobs for one request", mistakes, remedy)
    drift = await Revalidation(services.store, services.replays, By(changes=wanted.changes)).of(jobs)
    return JsonAnswer(DriftReport(mode=wanted.mode, **drift.as_json()))


def _filter(body: BulkOrder) -> JobFilter:
    try:
        return filter_of(body.where)
    except WhereError as error:
        mistakes = [Mistake(str(error), pointer(["where", error.field]))]
        raise invalid("the filter cannot be used", mistakes, "fix it; nothing was done") from None


@router.get("/{replay_id}", responses={200: answered(BulkReplay, "The order as of now"), **problems(404)})
async def get_replays(replay_id: UUID, services: ServicesDep, _: Reader) -> JsonAnswer:
    """How far an order of many replays has come."""
    return JsonAnswer(await _bulk(services, replay_id))


@router.post(
    "/{replay_id}/stop",
    status_code=202,
    responses={
        202: answered(BulkReplay, "No more replays are started; existing ones continue"),
        200: answered(BulkReplay, "It was stopped already"),
        **problems(404),
    },
)
async def stop_replays(replay_id: UUID, services: ServicesDep, _: Writer) -> JsonAnswer:
    """Start no more replays of an order."""
    stopped = await bulks.stop_bulk(services.store.database, replay_id)
    return JsonAnswer(await _bulk(services, replay_id), 202 if stopped else 200)


async def _bulk(services: Services, order_id: UUID) -> BulkReplay:
    found = await bulks.find_bulk(services.store.database, order_id)
    if found is None:
        raise not_found(f"order of replays {order_id}", "order one with POST /v1/replays")
    return found
