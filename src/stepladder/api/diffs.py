"""Routes: two jobs beside each other."""

from __future__ import annotations

from uuid import UUID

from fastapi import APIRouter

from stepladder.api.answers import JsonAnswer
from stepladder.api.comparisons import JobDiff
from stepladder.api.parts import Reader, Wired
from stepladder.api.specification import answered, problems
from stepladder.models.compare import compare

router = APIRouter(prefix="/v1", tags=["jobs"])


@router.get(
    "/jobs/{job_id}/diff/{other}",
    responses={200: answered(JobDiff, "In what the other job came out otherwise"), **problems(404)},
)
async def diff_jobs(job_id: UUID, other: UUID, parts: Wired, _: Reader) -> JsonAnswer:
    """Lay two jobs beside each other: outcome, action, output, tokens and time, turns, tools and waits."""
    was, now = await parts.job(job_id), await parts.job(other)
    return JsonAnswer((await compare(parts.reads, was, now)).as_json())
