"""Route: settle whether an irreversible tool took effect."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field, model_validator

from stepladder.api.answers import JsonAnswer
from stepladder.api.body import read_json, shaped
from stepladder.api.dependencies import ServicesDep, Settler
from stepladder.api.problems import ProblemError, invalid, mistakes_of
from stepladder.api.specification import answered, problems, takes
from stepladder.models.records import Settling
from stepladder.schemas.responses import Job
from stepladder.services.settlement import Misfit, NotKept, settle
from stepladder.workflows.events import Settled

router = APIRouter(prefix="/v1/jobs/{job_id}", tags=["control"])


class Settlement(BaseModel):
    """Whether a tool took effect. `done` needs the `result` that it would have returned; null is one.

    `key` is the idempotency key of the call; the default is the call that the job waits for.
    """

    model_config = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"example": {"done": True, "result": {"receipt": "R-4711"}}}
    )

    done: bool
    result: Any = None
    key: str | None = Field(None, min_length=1, max_length=200)

    @model_validator(mode="after")
    def _whole(self) -> Settlement:
        if self.done and "result" not in self.model_fields_set:
            raise ValueError("`done` needs the `result` that the tool would have returned; null is one")
        if not self.done and "result" in self.model_fields_set:
            raise ValueError("a call that did not take effect has no `result`")
        return self


@router.post(
    "/settle",
    status_code=202,
    openapi_extra=takes(Settlement),
    responses={
        202: answered(Job, "It is stored, and the job continues; the job as it is now"),
        200: answered(Job, "It was settled like that before"),
        **problems(404, 409, body=True),
    },
)
async def settle_job(request: Request, job_id: UUID, services: ServicesDep, principal: Settler) -> JsonAnswer:
    """Settle whether an irreversible tool took effect, where its worker died or did not get its result in time."""
    asked = shaped(Settlement, await read_json(request))
    job = await services.job(job_id)
    said = Settled(asked.done, asked.result, principal.name)
    found = await settle(services.store, services.reads, services.machines, job, said, asked.key)
    match found:
        case Misfit(tool, violations):
            mistakes = mistakes_of(violations, "/result")
            remedy = "send the result as the tool would have returned it; nothing was stored"
            raise invalid(f"{tool} cannot return this result", mistakes, remedy)
        case NotKept(settling, reason):
            kind = "settled-otherwise" if settling is Settling.CONTRADICTED else "not-asked"
            raise ProblemError(409, kind, f"job {job_id}: {reason}", remedy=_see(job_id))
        case Settling.ACCEPTED:
            services.notify([job.id])
    return JsonAnswer(await services.job(job_id), 202 if found is Settling.ACCEPTED else 200)


def _see(job_id: UUID) -> str:
    return f"nothing was stored; see what the job waits for with GET /v1/jobs/{job_id}"
