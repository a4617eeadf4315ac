"""Routes: variants on the same inputs, a variant shadowing live jobs, and their results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from stepladder.api.answers import JsonAnswer
from stepladder.api.body import MAX_BATCH_BYTES, read_json, shaped
from stepladder.api.dependencies import Publisher, Reader, ServicesDep, Writer
from stepladder.api.jobs import Key
from stepladder.api.problems import ProblemError, key_taken, not_found
from stepladder.api.replays import MOST_CHANGES, Path, refusal
from stepladder.api.specification import answered, problems, takes
from stepladder.api.workflows import Name, Version
from stepladder.models import experiments
from stepladder.models.records import KeyTaken
from stepladder.schemas.experiment import Experiment, ExperimentKind, Experiments
from stepladder.services.experiments import FIRST, MAX_JOBS, SECOND, draft, order_experiment, start_shadow
from stepladder.services.replays import Base
from stepladder.services.submission import submission_key
from stepladder.workflows.replay import Refused

if TYPE_CHECKING:
    from stepladder.api.dependencies import Services
    from stepladder.models.records import WorkflowRow
    from stepladder.schemas.experiment import ExperimentHead

router = APIRouter(prefix="/v1", tags=["experiments"])

MAX_LISTED = 100


class ArmOrder(BaseModel):
    """One variant: values by dotted paths into the document, null removes one; `version` names another version."""

    model_config = ConfigDict(extra="forbid", strict=True)

    changes: dict[Path, Any] = Field(default_factory=dict, alias="set", max_length=MOST_CHANGES)


class ExperimentOrder(BaseModel):
    """The same inputs by two variants of a workflow, `a` (as it is published, unless `set` changes it) and `b`.

    The jobs have a low priority, and are not counted in the rates of live ones. Tools that are not read-only, and calls
    of other workflows, take effect again in each of them: that is refused unless `effects` is true.
    """

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={
            "example": {
                "workflow": "usage-bill",
                "inputs": [{"team": "search"}, {"team": "ads"}],
                "b": {"set": {"decoding": "prompt"}},
            }
        },
    )

    workflow: str = Field(pattern=r"^[a-z][a-z0-9-]*$", max_length=100)
    version: int | None = Field(None, ge=1, le=2**31 - 1)
    inputs: list[Any] = Field(min_length=1, max_length=MAX_JOBS // 2)
    a: ArmOrder = Field(default_factory=ArmOrder)
    b: ArmOrder
    name: str = Field("", max_length=200, pattern=r"^[^\x00]*$")
    effects: bool = False


class ShadowOrder(BaseModel):
    """The variant, as a fork's `set` names it (`version` is another published one), and the share of live jobs.

    A shadow job starts when its live job has ended, with the same input, after all other jobs. It may only read: a
    variant with tools that are not read-only, calls of other workflows or waits is refused.
    """

    model_config = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"example": {"set": {"decoding": "prompt"}, "share": 0.1}}
    )

    changes: dict[Path, Any] = Field(alias="set", min_length=1, max_length=MOST_CHANGES)
    share: float = Field(gt=0, le=1, description="of the jobs of this version that end")


@router.post(
    "/experiments",
    status_code=202,
    openapi_extra=takes(ExperimentOrder),
    responses={
        202: answered(Experiment, "Its jobs are written and due"),
        200: answered(Experiment, "The same experiment, for the same key and body as before"),
        **problems(404, body=True),
    },
)
async def run_experiment(
    request: Request, services: ServicesDep, principal: Writer, idempotency_key: Key = None
) -> JsonAnswer:
    """Run two variants of a workflow on the same inputs."""
    body = await read_json(request, MAX_BATCH_BYTES)
    key = submission_key(principal, idempotency_key, "experiments", body)
    done = None if key is None else await services.store.submitted(key)
    if isinstance(done, KeyTaken):
        raise key_taken()
    if done is not None:
        return await _of_job(services, done.job_ids[0], 200)
    order = shaped(ExperimentOrder, body)
    row = await _workflow(services, order.workflow, order.version)
    base, changes = Base(row.name, row.version), {FIRST: order.a.changes, SECOND: order.b.changes}
    more = {"name": order.name, "samples": len(order.inputs)}
    head = draft(ExperimentKind.COMPARISON, base, changes, principal, await services.store.database.now(), **more)
    found = await order_experiment(
        services.store, services.replays, head, order.inputs, principal, key, effects=order.effects
    )
    if isinstance(found, Refused):
        raise refusal(found, f"/{found.field}/set" if found.field in changes else f"/{found.field}")
    if isinstance(found, KeyTaken):
        raise key_taken()
    if not found.again:
        services.notify(found.job_ids)
    return await _of_job(services, found.job_ids[0], 200 if found.again else 202)


@router.get("/experiments", responses={200: answered(Experiments, "The newest, without their reports"), **problems()})
async def list_experiments(
    services: ServicesDep, _: Reader, limit: Annotated[int, Query(ge=1, le=MAX_LISTED)] = 20
) -> JsonAnswer:
    """List experiments, newest first."""
    found = await experiments.list_experiments(services.store.database, limit)
    return JsonAnswer(Experiments(experiments=found))


@router.get("/experiments/{experiment_id}", responses={200: answered(Experiment, "With its report"), **problems(404)})
async def get_experiment(experiment_id: UUID, services: ServicesDep, _: Reader) -> JsonAnswer:
    """One experiment: rates, tokens, cost and time by variant, the differences, and their confidence intervals."""
    found = await experiments.find_experiment(services.store.database, experiment_id)
    if found is None:
        raise not_found(f"experiment {experiment_id}", "list them with GET /v1/experiments")
    return await _shown(services, found, 200)


@router.post(
    "/workflows/{name}/{version}/shadow",
    status_code=202,
    openapi_extra=takes(ShadowOrder),
    responses={202: answered(Experiment, "From now on workers run it"), **problems(404, 409, body=True)},
)
async def shadow_version(
    request: Request, name: Name, version: Version, services: ServicesDep, principal: Publisher
) -> JsonAnswer:
    """Run a variant on the inputs of a share of a version's live jobs, and only record its results."""
    order = shaped(ShadowOrder, await read_json(request))
    await _workflow(services, name, version)
    more = {"share": order.share, "scopes": principal.scopes}
    base, changes = Base(name, version), {SECOND: order.changes}
    head = draft(ExperimentKind.SHADOW, base, changes, principal, await services.store.database.now(), **more)
    found = await start_shadow(services.store, services.replays, head)
    if isinstance(found, Refused):
        raise refusal(found)
    if not found:
        detail = f"workflow {name} {version} already has a shadow"
        remedy = f"stop it: POST /v1/workflows/{name}/{version}/shadow/stop"
        raise ProblemError(409, "shadow-runs", detail, remedy=remedy)
    return await _shown(services, head, 202)


@router.post(
    "/workflows/{name}/{version}/shadow/stop",
    status_code=202,
    responses={202: answered(Experiment, "No more shadow jobs are started"), **problems(404)},
)
async def stop_shadow(name: Name, version: Version, services: ServicesDep, _: Publisher) -> JsonAnswer:
    """Start no more shadow jobs for a version. Existing ones continue."""
    found = await experiments.open_shadow(services.store.database, name, version)
    if found is None:
        raise not_found(f"shadow of workflow {name} {version}", "list earlier ones with GET /v1/experiments")
    await experiments.stop_shadow(services.store.database, found.id)
    return await _shown(services, await experiments.find_experiment(services.store.database, found.id) or found, 202)


async def _workflow(services: Services, name: str, version: int | None) -> WorkflowRow:
    row = await services.store.workflow(name, version)
    if row is None:
        said = name if version is None else f"{name} {version}"
        raise not_found(f"workflow {said}", "list what is published with GET /v1/workflows")
    return row


async def _of_job(services: Services, job_id: UUID, status: int) -> JsonAnswer:
    found = await experiments.experiment_of(services.store.database, job_id)
    if found is None:
        raise LookupError(f"the experiment of job {job_id} is not in the store")
    return await _shown(services, found, status)


async def _shown(services: Services, head: ExperimentHead, status: int) -> JsonAnswer:
    found = await experiments.read_experiment(services.store.database, head)
    return JsonAnswer(found, status, {"Location": f"/v1/experiments/{head.id}"})
