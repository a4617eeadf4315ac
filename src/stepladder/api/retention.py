"""Routes: exempt a job from retention, or not."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from fastapi import APIRouter

from stepladder.api.answers import JsonAnswer
from stepladder.api.dependencies import ServicesDep, Writer
from stepladder.api.specification import answered, problems
from stepladder.models import retention
from stepladder.models.records import Receipt
from stepladder.schemas.responses import Job

if TYPE_CHECKING:
    from stepladder.api.dependencies import Services

router = APIRouter(prefix="/v1/jobs/{job_id}", tags=["retention"])

CHANGED = {
    202: answered(Job, "Done; the job as it is now"),
    200: answered(Job, "Nothing changed"),
    **problems(404),
}


@router.post("/hold", status_code=202, responses=CHANGED)
async def hold_job(job_id: UUID, services: ServicesDep, principal: Writer) -> JsonAnswer:
    """Keep the job's raw answers and its history, regardless of their age."""
    return await _changed(services, job_id, await retention.hold(services.store.database, job_id, principal.name))


@router.post("/release", status_code=202, responses=CHANGED)
async def release_job(job_id: UUID, services: ServicesDep, _: Writer) -> JsonAnswer:
    """Let retention remove them again."""
    return await _changed(services, job_id, await retention.release(services.store.database, job_id))


async def _changed(services: Services, job_id: UUID, receipt: Receipt) -> JsonAnswer:
    job = await services.job(job_id)
    return JsonAnswer(job, 202 if receipt is Receipt.ACCEPTED else 200)
