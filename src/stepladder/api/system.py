"""Routes: liveness, readiness, metrics, engines, and the specification."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Literal

import structlog
from fastapi import APIRouter, Request
from starlette.responses import Response

from stepladder.api.answers import JsonAnswer
from stepladder.api.bulks import BulkOrder
from stepladder.api.dependencies import Reader, ServicesDep
from stepladder.api.experiments import ExperimentOrder, ShadowOrder
from stepladder.api.metrics import CONTENT_TYPE
from stepladder.api.replays import ReplayOrder
from stepladder.api.settlement import Settlement
from stepladder.api.specification import answered, describe, problems
from stepladder.schemas.errors import StepladderError
from stepladder.schemas.history import Event
from stepladder.schemas.shape import ResponseModel
from stepladder.schemas.submission import JobBatch, JobRequest

if TYPE_CHECKING:
    from collections.abc import Awaitable

log = structlog.get_logger("stepladder.api")

router = APIRouter(tags=["system"])

HEALTH = ("/healthz", "/readyz")
"""Routes that need no key."""

CHECK_WITHIN_S = 5.0
OPEN: dict[str, Any] = {"security": []}


class EngineIdentity(ResponseModel):
    """What an engine reports about itself; null where it reports nothing."""

    model: str
    version: str | None
    backend: str | None
    kind: str
    max_model_len: int | None
    models: tuple[str, ...]


class EngineSlots(ResponseModel):
    """Request slots at an engine for all `workers` together: the bound, those in use, and those wanted."""

    engine: str
    bound: int
    in_use: int
    wanted: int
    workers: int


class Engines(ResponseModel):
    engines: tuple[EngineIdentity, ...]
    slots: tuple[EngineSlots, ...]


class Check(ResponseModel):
    name: str
    ok: bool
    detail: str


class Health(ResponseModel):
    status: Literal["ok"]


class Readiness(ResponseModel):
    status: Literal["ready", "not_ready"]
    checks: tuple[Check, ...]


@router.get("/healthz", openapi_extra=OPEN, responses={200: answered(Health, "The process is alive")})
async def is_alive() -> JsonAnswer:
    """Whether the process is alive."""
    return JsonAnswer(Health(status="ok"))


@router.get(
    "/readyz",
    openapi_extra=OPEN,
    responses={200: answered(Readiness, "Ready"), 503: answered(Readiness, "A server that is needed does not answer")},
)
async def is_ready(services: ServicesDep) -> JsonAnswer:
    """Whether the database answers, and the engine where one is set."""
    names = ["database"] + ([] if services.identify is None else ["engine"])
    asked = [_check(services.reads.progress([]))] + ([] if services.identify is None else [_check(services.identify())])
    found = await asyncio.gather(*asked)
    # The reason may name hosts and users, and this route is public: it is only logged.
    checks = tuple(
        Check(name=name, ok=ok, detail="" if ok else "it does not answer; see the API's log")
        for name, ok in zip(names, found, strict=True)
    )
    ready = all(found)
    return JsonAnswer(Readiness(status="ready" if ready else "not_ready", checks=checks), 200 if ready else 503)


async def _check(question: Awaitable[object]) -> bool:
    try:
        async with asyncio.timeout(CHECK_WITHIN_S):
            await question
    except (StepladderError, TimeoutError) as error:
        log.warning("not ready", reason=str(error) or "no answer in time")
        return False
    return True


@router.get("/v1/engines", responses={200: answered(Engines, "The engine, as far as it is known"), **problems()})
async def list_engines(services: ServicesDep, _: Reader) -> JsonAnswer:
    """The engine's identity, and how many request slots are in use where they are bounded.

    `engines` is empty where this process has no engine configured; a 503 while the engine does not answer.
    """
    engines = [] if services.identify is None else [await services.identify()]
    return JsonAnswer(Engines.model_validate({"engines": engines, "slots": await services.reads.engines()}))


@router.get(
    "/metrics",
    response_class=Response,
    responses={
        200: {"description": "Prometheus' text format", "content": {"text/plain": {"schema": {"type": "string"}}}},
        **problems(),
    },
)
async def get_metrics(services: ServicesDep, _: Reader) -> Response:
    """Counts by outcome and cause, jobs by status, the queue's length and age."""
    return Response(await services.metrics.page(), headers={"Content-Type": CONTENT_TYPE})


@router.get("/openapi.json", include_in_schema=False)
async def get_specification(request: Request, _: Reader) -> JsonAnswer:
    bodies = (JobRequest, JobBatch, Settlement, ReplayOrder, BulkOrder, ExperimentOrder, ShadowOrder, Event)
    return JsonAnswer(describe(request.app, bodies))
