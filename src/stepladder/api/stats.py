"""Routes: statistics by workflow."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from stepladder.api.answers import JsonAnswer
from stepladder.api.dependencies import Reader, ServicesDep
from stepladder.api.problems import Mistake, invalid
from stepladder.api.specification import answered, problems
from stepladder.schemas.stats import Stats
from stepladder.schemas.times import since_of

router = APIRouter(tags=["stats"])

SINCE = "24h"


@router.get("/v1/stats", responses={200: answered(Stats, "Rates, tokens and costs by workflow"), **problems()})
async def get_stats(
    services: ServicesDep,
    _: Reader,
    workflow: Annotated[str | None, Query(description="only this one")] = None,
    since: Annotated[str, Query(description="how long ago (`90m`, `24h`, `7d`), or a time by RFC 3339")] = SINCE,
) -> JsonAnswer:
    """The attempts judged, turns closed and jobs ended since then, by workflow. Idle workflows are left out."""
    at = since_of(since, await services.store.database.now())
    if at is None:
        mistakes = [Mistake(f"{since[:40]!r} is not a time such as 24h, 7d or 2026-01-31T12:30:00Z", parameter="since")]
        raise invalid("the request has a wrong parameter: since", mistakes)
    if workflow is not None and "\0" in workflow:
        mistakes = [Mistake("a workflow name cannot contain \\u0000", parameter="workflow")]
        raise invalid("the request has a wrong parameter: workflow", mistakes)
    found = await services.reads.stats(at, workflow)
    return JsonAnswer(Stats(since=at, workflows=list(found)))
