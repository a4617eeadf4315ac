"""Routes: a variant that runs beside a share of live jobs, and is only recorded."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from stepladder.api.answers import JsonAnswer
from stepladder.api.body import read_json, shaped
from stepladder.api.comparisons import Experiment as Shown
from stepladder.api.experiments import experiment_json
from stepladder.api.parts import Publisher, Wired, lacking
from stepladder.api.problems import ProblemError, not_found
from stepladder.api.replays import MOST_CHANGES, Path, refusal
from stepladder.api.specification import answered, problems, takes
from stepladder.api.workflows import Name, Version
from stepladder.models import shadows
from stepladder.models.experiments import find_experiment
from stepladder.schemas.finding import BadDocumentError
from stepladder.services.replays import Base
from stepladder.services.shadows import start_shadow
from stepladder.workflows.replay import Refused

if TYPE_CHECKING:
    from stepladder.api.parts import Parts
    from stepladder.models.experiments import Experiment

router = APIRouter(prefix="/v1/workflows", tags=["experiments"])


class ShadowOrder(BaseModel):
    """The variant, as a fork's `set` names it (`version` is another published one), and the share of live jobs.

    A shadow begins when its live job has ended, with the same input, and comes after all others. It may read, and never
    act: a variant with other tools than read-only ones, with calls of other workflows or with waits is refused.
    """

    model_config = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"example": {"set": {"decoding": "prompt"}, "share": 0.1}}
    )

    changes: dict[Path, Any] = Field(alias="set", min_length=1, max_length=MOST_CHANGES)
    share: float = Field(gt=0, le=1, description="of the jobs of this version that end")


@router.post(
    "/{name}/{version}/shadow",
    status_code=202,
    openapi_extra=takes(ShadowOrder),
    responses={202: answered(Shown, "From now on workers run it"), **problems(404, 409, body=True)},
)
async def shadow_version(
    request: Request, name: Name, version: Version, parts: Wired, principal: Publisher
) -> JsonAnswer:
    """Run a variant beside a share of the live jobs of a version; only record what comes of it."""
    order = shaped(ShadowOrder, await read_json(request))
    if await parts.store.workflow(name, version) is None:
        raise not_found(f"workflow {name} {version}", "list what is published with GET /v1/workflows")
    base, now = Base(name, version), datetime.now(UTC)
    try:
        found = await start_shadow(parts.store, parts.replays, base, order.changes, order.share, principal, now)
    except BadDocumentError as error:
        raise lacking(f"workflow {name} {version}", error) from None
    if isinstance(found, Refused):
        raise refusal(found)
    if found is None:
        detail = f"a shadow runs beside the jobs of workflow {name} {version} already"
        raise ProblemError(
            409, "shadow-runs", detail, remedy=f"stop it: POST /v1/workflows/{name}/{version}/shadow/stop"
        )
    return await _shown(parts, found, 202)


@router.post(
    "/{name}/{version}/shadow/stop",
    status_code=202,
    responses={202: answered(Shown, "No more shadows are begun"), **problems(404)},
)
async def stop_shadow(name: Name, version: Version, parts: Wired, _: Publisher) -> JsonAnswer:
    """Begin no more shadows beside the jobs of a version. Those that there are go on."""
    found = await shadows.open_shadow(parts.store.database, name, version)
    if found is None:
        raise not_found(f"shadow of workflow {name} {version}", "list those that there were with GET /v1/experiments")
    await shadows.stop_shadow(parts.store.database, found.id)
    stopped = await find_experiment(parts.store.database, found.id)
    return await _shown(parts, stopped or found, 202)


async def _shown(parts: Parts, found: Experiment, status: int) -> JsonAnswer:
    headers = {"Location": f"/v1/experiments/{found.id}"}
    return JsonAnswer(await experiment_json(parts.store.database, parts.reads, found), status, headers)
