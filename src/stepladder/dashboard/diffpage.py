"""The page that compares two jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from stepladder.api.problems import not_found
from stepladder.dashboard.desk import desk_of, job_of
from stepladder.dashboard.render import page

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from stepladder.schemas.responses import Job

SHOWN_CHANGES = 50  # of one value


async def show_diff(request: Request) -> Response:
    """What changed in the other job, visit by visit."""
    parts = desk_of(request).parts
    job, other = await job_of(request), await _other(request)
    found = await parts.reads.diff(job, other)
    return page(request, "diff.html", diff=found, shown=SHOWN_CHANGES)


async def _other(request: Request) -> Job:
    text = request.path_params["other"]
    try:
        found = await desk_of(request).parts.reads.overview(UUID(text))
    except ValueError:
        found = None
    if found is None:
        raise not_found(f"job {text[:100]}", "look for it in the list of jobs; its id may be cut off")
    return found
