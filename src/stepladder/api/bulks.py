"""Routes: many replays at once, by a filter."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from stepladder.api.answers import JsonAnswer
from stepladder.api.body import read_json, shaped
from stepladder.api.dependencies import Reader, ServicesDep, Writer
from stepladder.api.jobs import Key
from stepladder.api.problems import Mistake, ProblemError, invalid, not_found
from stepladder.api.replays import MOST_CHANGES, Path
from stepladder.api.specification import answered, problems, takes
from stepladder.models import bulks
from stepladder.models.bulks import Bulk, bulk_id
from stepladder.models.where import WhereError, filter_of
from stepladder.schemas.pointer import pointer
from stepladder.schemas.replay import BulkReplay, Mode
from stepladder.services.bulks import CONCURRENCY, PRIORITY, estimate, total
from stepladder.services.replays import Wanted
from stepladder.services.revalidation import By, Revalidation
from stepladder.services.submission import LONGEST_KEY

if TYPE_CHECKING:
    from stepladder.api.access import Principal
    from stepladder.api.dependencies import Services
    from stepladder.models.listing import JobFilter

router = APIRouter(prefix="/v1/replays", tags=["replays"])

MOST_JUDGED = 1000


class BulkOrder(BaseModel):
    """Every job that a filter finds, replayed as `POST /v1/jobs/{id}/replays` would one.

    `where` has the words of `GET /v1/jobs`, each with one value or a list of which any will do. `dry_run` counts, and
    does nothing. `revalidate` judges up to 1,000 jobs at once, and answers with the report.
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
        202: answered(BulkReplay, "Ordered; the workers hand it out"),
        200: answered(BulkReplay, "What it would do, or the report, or the order that the key stands for"),
        **problems(body=True),
    },
)
async def order_replays(
    request: Request, services: ServicesDep, principal: Writer, idempotency_key: Key = None
) -> JsonAnswer:
    """Replay every job that a filter finds, a few at once."""
    order = shaped(BulkOrder, await read_json(request))
    jobs = _filter(order)
    wanted = Wanted(Mode(order.mode), changes=order.changes)
    if wanted.mode is Mode.REVALIDATE:
        return await _judge(services, order, jobs)
    if order.mode == "resume" and order.changes:
        mistakes = [Mistake("a resume goes on by the same version, and changes nothing", "/set")]
        raise invalid("a resume changes nothing", mistakes, "use mode fork; nothing was done")
    if order.dry_run:
        found = await estimate(services.store.database, services.replays, jobs, wanted, principal)
        names = ("jobs", "turns", "tokens", "cost", "currency", "refused")
        return JsonAnswer({"mode": order.mode, "dry_run": True} | {name: getattr(found, name) for name in names}, 200)
    return await _ordered(services, principal, order, jobs, idempotency_key)


async def _ordered(
    services: Services, principal: Principal, order: BulkOrder, jobs: JobFilter, key: str | None
) -> JsonAnswer:
    database, now = services.store.database, datetime.now(UTC)
    if key is not None and not 0 < len(key) <= LONGEST_KEY:
        mistakes = [Mistake(f"it has 1 to {LONGEST_KEY} characters", parameter="Idempotency-Key")]
        raise invalid("the idempotency key cannot be used", mistakes)
    bulk = Bulk(
        id=bulk_id(principal.name, key),
        where=order.where,
        mode=order.mode,
        changes=order.changes,
        concurrency=order.concurrency,
        priority=order.priority,
        principal=principal.name,
        scopes=principal.scopes,
        total=await total(database, jobs, now),
        created_at=now,
    )
    written = await bulks.order_bulk(database, bulk)
    found = await _bulk(services, bulk.id)
    if not written and found.asked != bulk.asked:
        mistakes = [Mistake("another body was sent under this key", parameter="Idempotency-Key")]
        detail = "the idempotency key is taken by an order of other replays"
        raise ProblemError(422, "idempotency-key-reused", detail, mistakes=mistakes, remedy="use a new key")
    headers = {"Location": f"/v1/replays/{bulk.id}"}
    return JsonAnswer(bulk_json(found), 202 if written else 200, headers)


async def _judge(services: Services, order: BulkOrder, jobs: JobFilter) -> JsonAnswer:
    count = await total(services.store.database, jobs, datetime.now(UTC))
    if order.dry_run:
        return JsonAnswer({"mode": order.mode, "dry_run": True, "jobs": count}, 200)
    if count > MOST_JUDGED:
        mistakes = [Mistake(f"it finds {count:,} jobs; {MOST_JUDGED:,} are judged in one request", "/where")]
        remedy = "narrow it, by created_after for one; or use `stepladder replay --where`, which has no such bound"
        raise invalid("too many jobs for one request", mistakes, remedy)
    drift = await Revalidation(services.store, services.replays, By(changes=order.changes)).of(jobs)
    return JsonAnswer({"mode": order.mode} | drift.as_json(), 200)


def _filter(order: BulkOrder) -> JobFilter:
    try:
        return filter_of(order.where)
    except WhereError as error:
        mistakes = [Mistake(str(error), pointer(["where", error.field]))]
        raise invalid("the filter cannot be used", mistakes, "mend it; nothing was done") from None


@router.get("/{replay_id}", responses={200: answered(BulkReplay, "The order as it stands"), **problems(404)})
async def get_replays(replay_id: UUID, services: ServicesDep, _: Reader) -> JsonAnswer:
    """How far an order of many replays has come."""
    return JsonAnswer(bulk_json(await _bulk(services, replay_id)))


@router.post(
    "/{replay_id}/stop",
    status_code=202,
    responses={
        202: answered(BulkReplay, "No more replays are begun; those that are there go on"),
        200: answered(BulkReplay, "It was stopped already"),
        **problems(404),
    },
)
async def stop_replays(replay_id: UUID, services: ServicesDep, _: Writer) -> JsonAnswer:
    """Begin no more replays of an order."""
    stopped = await bulks.stop_bulk(services.store.database, replay_id)
    return JsonAnswer(bulk_json(await _bulk(services, replay_id)), 202 if stopped else 200)


async def _bulk(services: Services, order: UUID) -> Bulk:
    found = await bulks.find_bulk(services.store.database, order)
    if found is None:
        raise not_found(f"order of replays {order}", "order one with POST /v1/replays")
    return found


def bulk_json(bulk: Bulk) -> dict[str, Any]:
    names = ("mode", "state", "where", "concurrency", "priority", "principal", "total")
    return (
        {"id": str(bulk.id)}
        | {name: getattr(bulk, name) for name in names}
        | {
            "set": bulk.changes,
            "jobs": dict(bulk.jobs),
            "refused": dict(bulk.refused),
            "handed_out": sum(bulk.jobs.values()),
            "created_at": bulk.created_at,
            "stopped_at": bulk.stopped_at,
        }
    )
