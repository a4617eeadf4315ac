"""Routes: two jobs compared."""

from __future__ import annotations

from uuid import UUID

from fastapi import APIRouter

from stepladder.api.answers import JsonAnswer
from stepladder.api.dependencies import Reader, ServicesDep
from stepladder.api.specification import answered, problems
from stepladder.schemas.diff import JobDiff

router = APIRouter(prefix="/v1", tags=["jobs"])


@router.get(
    "/jobs/{job_id}/diff/{other}",
    responses={200: answered(JobDiff, "What differs in the other job"), **problems(404)},
)
async def diff_jobs(job_id: UUID, other: UUID, services: ServicesDep, _: Reader) -> JsonAnswer:
    """Compare two jobs: outcomes, actions, outputs, attempts, tokens and time of every turn, tool and wait."""
    was, now = await services.job(job_id), await services.job(other)
    return JsonAnswer(await services.reads.diff(was, now))
