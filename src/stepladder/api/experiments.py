"""Routes: two variants on the same inputs, and what came of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from stepladder.api.answers import JsonAnswer
from stepladder.api.body import MAX_BATCH_BYTES, read_json, shaped
from stepladder.api.comparisons import Experiment as Shown
from stepladder.api.comparisons import Experiments
from stepladder.api.jobs import Key
from stepladder.api.orders import known, submission_key, unless_taken
from stepladder.api.parts import Reader, Wired, Writer, lacking
from stepladder.api.problems import Mistake, ProblemError, finding_more, invalid, not_found
from stepladder.api.replays import MOST_CHANGES, Path
from stepladder.api.specification import answered, problems, takes
from stepladder.experiments.agreement import fields
from stepladder.experiments.arms import report
from stepladder.models import experiments
from stepladder.models.records import KeyTaken
from stepladder.schemas.experiment import ExperimentKind
from stepladder.schemas.finding import BadDocumentError
from stepladder.services.experiments import FIRST, MOST_JOBS, SECOND, Ordered, Plan, order_experiment
from stepladder.services.replays import Base
from stepladder.workflows.replay import Refused

if TYPE_CHECKING:
    from stepladder.api.parts import Parts
    from stepladder.models.database import Database
    from stepladder.models.experiments import Experiment
    from stepladder.models.reads import Reads

router = APIRouter(prefix="/v1/experiments", tags=["experiments"])

MOST_LISTED = 100


class ArmOrder(BaseModel):
    """One variant: values by dotted paths into the document, null takes one out; `version` names another version."""

    model_config = ConfigDict(extra="forbid", strict=True)

    changes: dict[Path, Any] = Field(default_factory=dict, alias="set", max_length=MOST_CHANGES)


class ExperimentOrder(BaseModel):
    """The same inputs by two variants of a workflow, `a` (as it is published, unless `set` changes it) and `b`.

    The jobs are of low priority, and no part of the rates of live ones. Tools that are not read-only, and calls of
    other workflows, act again in each of them: that is refused unless `effects` is true.
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
    inputs: list[Any] = Field(min_length=1, max_length=MOST_JOBS // 2)
    a: ArmOrder = Field(default_factory=ArmOrder)
    b: ArmOrder
    name: str = Field("", max_length=200, pattern=r"^[^\x00]*$")
    effects: bool = False


@router.post(
    "",
    status_code=202,
    openapi_extra=takes(ExperimentOrder),
    responses={
        202: answered(Shown, "Its jobs are written and due"),
        200: answered(Shown, "The key and the body came before: the same experiment"),
        **problems(404, body=True),
    },
)
async def run_experiment(request: Request, parts: Wired, principal: Writer, idempotency_key: Key = None) -> JsonAnswer:
    """Run two variants of a workflow on the same inputs, beside each other."""
    body = await read_json(request, MAX_BATCH_BYTES)
    key = submission_key(principal, idempotency_key, "experiments", body)
    done = await known(parts, key)
    if done is not None:
        return await _written(parts, Ordered(done.job_ids, again=True))
    wanted = shaped(ExperimentOrder, body)
    row = await parts.store.workflow(wanted.workflow, wanted.version)
    if row is None:
        version = "" if wanted.version is None else f" {wanted.version}"
        raise not_found(f"workflow {wanted.workflow}{version}", "list what is published with GET /v1/workflows")
    plan = Plan(
        kind=ExperimentKind.COMPARISON,
        base=Base(row.name, row.version),
        arms={FIRST: wanted.a.changes, SECOND: wanted.b.changes},
        inputs=wanted.inputs,
        name=wanted.name,
        effects=wanted.effects,
    )
    try:
        found = await order_experiment(parts.store, parts.replays, plan, principal, datetime.now(UTC), key)
    except BadDocumentError as error:
        raise lacking(f"workflow {row.name} {row.version}", error) from None
    if isinstance(found, KeyTaken):
        unless_taken(found)
    if not isinstance(found, Ordered):
        raise _refusal(found) if isinstance(found, Refused) else LookupError("the experiment was not written")
    if not found.again:
        await parts.notify(found.job_ids)
    return await _written(parts, found)


async def _written(parts: Parts, done: Ordered) -> JsonAnswer:
    experiment = await experiments.experiment_of(parts.store.database, done.job_ids[0])
    if experiment is None:
        raise LookupError(f"the experiment of job {done.job_ids[0]} has vanished from the store")
    headers = {"Location": f"/v1/experiments/{experiment.id}"}
    shown = await experiment_json(parts.store.database, parts.reads, experiment)
    return JsonAnswer(shown, 200 if done.again else 202, headers)


def _refusal(refused: Refused) -> ProblemError:
    at = f"/{refused.field}/set" if refused.field in (FIRST, SECOND) else f"/{refused.field}"
    mistakes = [
        Mistake(found.message, at, more=finding_more(found) | {"document_pointer": found.pointer})
        for found in refused.findings
    ]
    return invalid(refused.reason, mistakes or [Mistake(refused.reason, at)], refused.remedy)


@router.get("", responses={200: answered(Experiments, "The newest, without their reports"), **problems()})
async def list_experiments(
    parts: Wired, _: Reader, limit: Annotated[int, Query(ge=1, le=MOST_LISTED)] = 20
) -> JsonAnswer:
    """List experiments, newest first."""
    found = await experiments.list_experiments(parts.store.database, limit)
    return JsonAnswer({"experiments": [head_json(one) for one in found]})


@router.get("/{experiment_id}", responses={200: answered(Shown, "It, and what came of it"), **problems(404)})
async def get_experiment(experiment_id: UUID, parts: Wired, _: Reader) -> JsonAnswer:
    """One experiment as it stands: rates, tokens, cost and time by arm, the differences, and how sure they are."""
    found = await experiments.find_experiment(parts.store.database, experiment_id)
    if found is None:
        raise not_found(f"experiment {experiment_id}", "list them with GET /v1/experiments")
    return JsonAnswer(await experiment_json(parts.store.database, parts.reads, found))


def head_json(experiment: Experiment) -> dict[str, Any]:
    names = ("kind", "name", "workflow", "version", "variant", "samples", "principal", "share")
    times = {"created_at": experiment.created_at, "stopped_at": experiment.stopped_at}
    more = {"changes": experiment.arms} | times
    return {"id": str(experiment.id)} | {name: getattr(experiment, name) for name in names} | more


async def experiment_json(database: Database, reads: Reads, experiment: Experiment) -> dict[str, Any]:
    """An experiment, its jobs, and what came of them. Of the same job many times also how its fields agree."""
    runs = await experiments.runs(database, reads, experiment.id)
    names = ("sample", "arm", "job", "status", "failure", "attempts", "tokens")
    found = head_json(experiment) | report(runs)
    found["runs"] = [{name: getattr(run, name) for name in names} for run in runs]
    if experiment.kind is ExperimentKind.STABILITY:
        outputs = await experiments.outputs(database, reads, experiment.id)
        found["fields"] = [one.as_json() for one in fields(outputs)]
    return found
