"""Routes: signal, cancel, pause and unpause a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal
from uuid import UUID, uuid5

from fastapi import APIRouter, Header, Path, Request

from stepladder.api.answers import JsonAnswer
from stepladder.api.body import read_json
from stepladder.api.dependencies import Services, ServicesDep, Signaller, Writer
from stepladder.api.problems import Mistake, ProblemError, invalid, mistakes_of
from stepladder.api.specification import answered, problems
from stepladder.models.ids import uuid7
from stepladder.models.records import Receipt
from stepladder.schemas.canonical import canonical
from stepladder.schemas.job import JobStatus
from stepladder.schemas.responses import Job, Signalled
from stepladder.services.signals import Forbidden, TooEarly, Unfit, refusal
from stepladder.services.submission import check_key

if TYPE_CHECKING:
    from stepladder.schemas.jsontypes import Json

router = APIRouter(prefix="/v1/jobs/{job_id}", tags=["control"])

PAYLOAD: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "The payload. An additional `wait_id` names the wait.",
        "content": {"application/json": {"schema": {}, "example": {"action": "approve"}}},
    }
}
NO_SECOND_PRINCIPAL = "without STEPLADDER_API_KEYS everyone is `local`: set it, with a key for each person who confirms"
SignalName = Annotated[str, Path(pattern=r"^[A-Za-z][A-Za-z0-9_.-]*$", max_length=100)]
SignalKey = Annotated[
    str | None,
    Header(alias="Idempotency-Key", description="the signal's id: it is taken once, even if sent again"),
]


@router.post(
    "/signals/{name}",
    status_code=202,
    openapi_extra=PAYLOAD,
    responses={
        202: answered(Signalled, "The signal is stored"),
        200: answered(Signalled, "This signal was sent before"),
        **problems(404, 409, body=True),
    },
)
async def send_signal(
    request: Request,
    job_id: UUID,
    name: SignalName,
    services: ServicesDep,
    sender: Signaller,
    idempotency_key: SignalKey = None,
) -> JsonAnswer:
    """Send a signal. One that the open wait would reject is rejected here, with 403 for a sender who may not answer it;
    an early one is stored."""
    payload = await read_json(request)
    signal_id = _signal_id(job_id, idempotency_key)
    sent = (name, payload, sender.name)
    if idempotency_key is not None and await _came_before(services, job_id, signal_id, sent):
        return _signalled("duplicate", signal_id)
    job = await services.job(job_id)
    if job.status.final:
        raise _ended(job)
    machine = await services.machines.get(job.workflow, job.version, job.variant)
    wait = await services.reads.open_wait(job_id) if job.waiting_for == name else None
    match refusal(machine, wait, name, payload, sender, job.principal):
        case Unfit(reason, violations):
            raise invalid(reason, mistakes_of(violations) or [Mistake(reason)], "fix it; the job is still waiting")
        case Forbidden(reason):
            raise ProblemError(403, "forbidden", reason, remedy=_who_else(services))
        case TooEarly(reason):
            raise ProblemError(409, "too-early", reason, remedy="send it once the job waits for it")
    match await services.store.signal(job_id, signal_id, name, payload, sender):
        case Receipt.FINAL | Receipt.UNKNOWN:
            raise _ended(await services.job(job_id))
        case Receipt.DUPLICATE:  # another one under this key arrived at the same time
            await _came_before(services, job_id, signal_id, sent)
            return _signalled("duplicate", signal_id)
    services.notify([job.id])
    return _signalled("accepted", signal_id)


def _signal_id(job_id: UUID, key: str | None) -> UUID:
    """A key that is a UUID is the id itself; any other is hashed to one."""
    if key is None:
        return uuid7()
    check_key(key)
    try:
        return UUID(key)
    except ValueError:
        return uuid5(job_id, key)


def _who_else(services: Services) -> str:
    return "send it with a key that may" if services.access.wants_key else NO_SECOND_PRINCIPAL


async def _came_before(services: Services, job_id: UUID, signal_id: UUID, sent: tuple[str, Json, str]) -> bool:
    before = await services.store.sent_signal(job_id, signal_id)
    if before is None:
        return False
    if canonical(list(before)) != canonical(list(sent)):
        mistakes = [Mistake("another signal was sent under this key", parameter="Idempotency-Key")]
        detail = "the idempotency key was used for another signal to this job"
        remedy = "send the same payload again, or use a new key; nothing was stored"
        raise ProblemError(422, "idempotency-key-reused", detail, mistakes=mistakes, remedy=remedy)
    return True


def _signalled(status: Literal["accepted", "duplicate"], signal_id: UUID) -> JsonAnswer:
    return JsonAnswer(Signalled(status=status, signal_id=signal_id), 202 if status == "accepted" else 200)


CHANGED = {
    202: answered(Job, "Done; the job as it is now"),
    200: answered(Job, "Nothing changed"),
    **problems(404, 409),
}


@router.post("/cancel", status_code=202, responses=CHANGED)
async def cancel_job(job_id: UUID, services: ServicesDep, _: Writer) -> JsonAnswer:
    """Cancel the job. A request in flight is aborted."""
    return await _change(services, job_id, await services.store.request_cancel(job_id), JobStatus.CANCELLED)


@router.post("/pause", status_code=202, responses=CHANGED)
async def pause_job(job_id: UUID, services: ServicesDep, principal: Writer) -> JsonAnswer:
    """Pause the job. An attempt in flight is finished; the deadline is suspended."""
    return await _change(services, job_id, await services.store.pause(job_id, principal.name), None)


@router.post("/unpause", status_code=202, responses=CHANGED)
async def unpause_job(job_id: UUID, services: ServicesDep, principal: Writer) -> JsonAnswer:
    """Continue the job where it was."""
    return await _change(services, job_id, await services.store.unpause(job_id, principal.name), None)


async def _change(services: Services, job_id: UUID, receipt: Receipt, already: JobStatus | None) -> JsonAnswer:
    job = await services.job(job_id)
    match receipt:
        case Receipt.ACCEPTED:
            services.notify([job.id])
            return JsonAnswer(job, 202)
        case Receipt.FINAL | Receipt.UNKNOWN if job.status is not already:
            raise _ended(job)
        case _:
            return JsonAnswer(job, 200)


def _ended(job: Job) -> ProblemError:
    said = f"is {job.status}" if job.status.final else "is being cancelled"
    return ProblemError(409, "job-ended", f"job {job.id} {said}", remedy=f"see it with GET /v1/jobs/{job.id}")
