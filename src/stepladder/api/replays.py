"""Routes: judge a job's answers again, or replay a job as a new one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field, model_validator

from stepladder.api.answers import JsonAnswer
from stepladder.api.body import read_json, shaped
from stepladder.api.dependencies import ServicesDep, Writer
from stepladder.api.jobs import Key
from stepladder.api.problems import Mistake, ProblemError, finding_more, invalid, key_taken, not_found
from stepladder.api.specification import answered, problems, takes
from stepladder.judge.revalidate import report_of
from stepladder.models.records import KeyTaken
from stepladder.schemas.pointer import pointer
from stepladder.schemas.replay import Mode, Revalidated
from stepladder.schemas.responses import Job
from stepladder.services.replays import Wanted
from stepladder.workflows.replay import Refused

if TYPE_CHECKING:
    from stepladder.api.dependencies import Services

router = APIRouter(prefix="/v1", tags=["replays"])

MOST_CHANGES = 100
Path = Annotated[str, Field(min_length=1, max_length=500)]


class ReplayOrder(BaseModel):
    """A replay.

    `revalidate` judges the stored answers, by the same document or a changed one, and writes nothing. `resume`
    continues where a failed or cancelled job stopped. `fork` continues from any turn, or starts anew, by a changed
    document.
    """

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={
            "example": {"mode": "fork", "from_turn": 2, "set": {"states.bill.sampling.temperature": 0.2}}
        },
    )

    mode: Literal["revalidate", "resume", "fork"]
    from_turn: int | None = Field(
        None,
        ge=1,
        le=2**31 - 1,
        description="asked again, earlier turns are carried over; default: where it failed",
    )
    changes: dict[Path, Any] = Field(
        default_factory=dict,
        alias="set",
        max_length=MOST_CHANGES,
        description="values by dotted paths into the document, null removes one; `version` names another version",
    )
    input: Any = Field(None, description="of the new job, in place of the old one's; only from the beginning")

    @model_validator(mode="after")
    def _whole(self) -> ReplayOrder:
        if self.mode == "revalidate" and (self.from_turn is not None or "input" in self.model_fields_set):
            raise ValueError("revalidate judges every answer, and takes neither from_turn nor input")
        return self

    def wanted(self) -> Wanted:
        given = (self.input,) if "input" in self.model_fields_set else ()
        return Wanted(Mode(self.mode), self.from_turn, self.changes, given)


@router.post(
    "/jobs/{job_id}/replays",
    status_code=202,
    openapi_extra=takes(ReplayOrder),
    responses={
        202: answered(Job, "The new job is written and due"),
        200: answered(Revalidated | Job, "Judged again; or the same job, for the same key and body as before"),
        **problems(404, 409, body=True),
    },
)
async def replay_job(
    request: Request, job_id: UUID, services: ServicesDep, principal: Writer, idempotency_key: Key = None
) -> JsonAnswer:
    """Judge a job's answers again, or continue from one of its turns as a new job."""
    wanted = shaped(ReplayOrder, await read_json(request)).wanted()
    if wanted.mode is Mode.REVALIDATE:
        return await _revalidated(services, job_id, wanted)
    found = await services.replays.start(job_id, wanted, principal, idempotency_key)
    if found is None:
        raise _no_job(job_id)
    if isinstance(found, Refused):
        raise refusal(found)
    if isinstance(found, KeyTaken):
        raise key_taken()
    [job] = await services.reads.overviews([found.job_id])
    again = found.prepared is None
    answer = job.model_copy(update={"misfits": found.misfits})
    return JsonAnswer(answer, 200 if again else 202, {"Location": f"/v1/jobs/{job.id}"})


async def _revalidated(services: Services, job_id: UUID, wanted: Wanted) -> JsonAnswer:
    found = await services.replays.revalidated(job_id, wanted.changes)
    if found is None:
        raise _no_job(job_id)
    if isinstance(found, Refused):
        raise refusal(found)
    return JsonAnswer(Revalidated(attempts=tuple(map(report_of, found)), changed=sum(one.changed for one in found)))


def _no_job(job_id: UUID) -> ProblemError:
    return not_found(f"job {job_id}", "list the jobs with GET /v1/jobs")


def refusal(refused: Refused, at: str | None = None) -> ProblemError:
    """Why a replay or an experiment cannot be: a conflict with the job, or a mistake in the body, ``at`` a pointer."""
    if refused.field is None:
        return ProblemError(409, "cannot-replay", refused.reason, remedy=refused.remedy)
    at = at or pointer([refused.field])
    mistakes = [
        Mistake(found.message, at, more=finding_more(found) | {"document_pointer": found.pointer})
        for found in refused.findings
    ]
    return invalid(refused.reason, mistakes or [Mistake(refused.reason, at)], refused.remedy)
