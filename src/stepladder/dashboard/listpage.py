"""The page at ``/jobs``: the jobs, newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

from starlette.responses import RedirectResponse

from stepladder.api.cursors import decode, encode
from stepladder.api.problems import ProblemError
from stepladder.dashboard.desk import desk_of
from stepladder.dashboard.filters import canonical, read
from stepladder.dashboard.render import page
from stepladder.schemas.job import Failure, JobStatus
from stepladder.schemas.outcomes import Outcome

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

LISTED = 50
BAD_CURSOR = "The place in the list that the address names belongs to other filters. This is the beginning."


async def list_jobs(request: Request) -> Response:
    """Filters and the place stand in the URL, so that a page can be kept, sent and gone back to."""
    items = request.query_params.multi_items()
    clean = canonical(items)
    if clean is not None:
        return RedirectResponse(f"/jobs?{urlencode(clean)}" if clean else "/jobs", 303)
    desk, filters = desk_of(request), read(items)
    mistakes = list(filters.mistakes)
    after = None
    if cursor := request.query_params.get("cursor"):
        try:
            after = decode(cursor, filters.pairs)
        except ProblemError:
            mistakes.append(BAD_CURSOR)
    found = await desk.parts.reads.page(filters.wanted, LISTED, after)
    following = None if found.following is None else encode(found.following, filters.pairs)
    workflows = list(dict.fromkeys(version.name for version in await desk.parts.reads.workflows()))
    counts = await desk.counts.read()
    return page(
        request,
        "jobs.html",
        422 if mistakes else 200,
        jobs=found.jobs,
        looked_back_to=found.looked_back_to,
        filters=filters,
        mistakes=mistakes,
        older=None if following is None else filters.url(("cursor", following)),
        newest=filters.url() if after is not None else None,
        counts=counts,
        total=sum(counts.values()),
        workflows=workflows,
        base=str(request.base_url).rstrip("/"),
        statuses=list(JobStatus),
        outcomes=list(Outcome),
        failures=list(Failure),
    )
