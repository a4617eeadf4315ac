"""The page that compares two jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from starlette.responses import RedirectResponse

from stepladder.dashboard.context import context_of, job_of
from stepladder.dashboard.rendering import page

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

SHOWN_CHANGES = 50  # of one value


async def show_diff(request: Request) -> Response:
    """What changed in the other job, visit by visit."""
    job, other = await job_of(request), await job_of(request, "other")
    found = await context_of(request).services.reads.diff(job, other)
    return page(request, "diff.html", diff=found, shown=SHOWN_CHANGES)


async def choose_other(request: Request) -> Response:
    """Redirects the form with the other job's id to the comparison."""
    job, other = await job_of(request), request.query_params.get("with", "").strip()
    return RedirectResponse(f"/jobs/{job.id}/diff/{quote(other[:100], safe='')}" if other else f"/jobs/{job.id}", 303)
