"""Routes: submit jobs, list them, and see one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated
from uuid import UUID

from fastapi import APIRouter, Header, Query, Request

from stepladder.api.answers import JsonAnswer
from stepladder.api.body import MAX_BATCH_BYTES, read_json, shaped
from stepladder.api.cursors import decode, encode
from stepladder.api.dependencies import Lister, Reader, Services, ServicesDep, Writer
from stepladder.api.problems import Mistake, invalid, key_taken
from stepladder.api.specification import answered, problems, takes
from stepladder.queries.search import LONGEST
from stepladder.queries.where import WhereError, filter_of
from stepladder.schemas.job import Failure, JobStatus
from stepladder.schemas.outcomes import Outcome
from stepladder.schemas.responses import Job, JobPage, Jobs
from stepladder.schemas.submission import JobBatch, JobRequest
from stepladder.services.submission import Accepted, Rejected

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepladder.api.access import Principal
    from stepladder.services import submission

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])

LONGEST_WAIT_S = 60.0
MOST_LISTED = 500

Key = Annotated[
    str | None, Header(alias="Idempotency-Key", description="the same key and body again give the same jobs, for a day")
]
When = Annotated[str | None, Query(description="RFC 3339, such as 2026-01-31T12:30:00Z")]


@router.post(
    "",
    status_code=202,
    openapi_extra=takes(JobRequest),
    responses={
        202: answered(Job, "The job is written and due"),
        200: answered(Job, "The same job, for the same key and body as before"),
        **problems(body=True),
    },
)
async def submit_job(
    request: Request, services: ServicesDep, principal: Writer, idempotency_key: Key = None
) -> JsonAnswer:
    """Submit a job."""
    wanted = shaped(JobRequest, await read_json(request))
    done = await _submitted(services, principal, [wanted], [""], idempotency_key)
    [job] = done.jobs
    return JsonAnswer(job, 200 if done.again else 202, {"Location": f"/v1/jobs/{job.id}"})


@router.post(
    "/batch",
    status_code=202,
    openapi_extra=takes(JobBatch),
    responses={
        202: answered(Jobs, "All jobs are written and due"),
        200: answered(Jobs, "The same jobs, for the same key and body as before"),
        **problems(body=True),
    },
)
async def submit_batch(
    request: Request, services: ServicesDep, principal: Writer, idempotency_key: Key = None
) -> JsonAnswer:
    """Submit up to 1,000 jobs, all or nothing."""
    batch = shaped(JobBatch, await read_json(request, MAX_BATCH_BYTES))
    pointers = [f"/jobs/{nth}" for nth in range(len(batch.jobs))]
    done = await _submitted(services, principal, batch.jobs, pointers, idempotency_key)
    return JsonAnswer(Jobs(jobs=done.jobs), 200 if done.again else 202)


async def _submitted(
    services: Services, principal: Principal, wanted: Sequence[JobRequest], pointers: Sequence[str], key: str | None
) -> Accepted:
    """``pointers`` say where in the body each request is."""
    match await services.submissions.submit(wanted, principal, key):
        case Accepted() as done:
            return done
        case Rejected() as found:
            mistakes = [Mistake(_reason(one), pointers[one.nth] + one.pointer) for one in found.mistakes]
            raise invalid(found.summary, mistakes, found.remedy)
        case _:
            raise key_taken()


def _reason(mistake: submission.Mistake) -> str:
    return f"{mistake.reason}: {mistake.remedy}" if mistake.remedy else mistake.reason


@router.get("", responses={200: answered(JobPage, "A page of jobs, newest first"), **problems()})
async def list_jobs(
    request: Request,
    services: ServicesDep,
    _: Lister,
    status: Annotated[list[JobStatus] | None, Query()] = None,
    workflow: Annotated[list[str] | None, Query()] = None,
    outcome: Annotated[list[Outcome] | None, Query(description="of any of its attempts")] = None,
    failure: Annotated[list[Failure] | None, Query()] = None,
    created_after: When = None,
    created_before: When = None,
    parent: Annotated[UUID | None, Query(description="called by this job")] = None,
    replay_of: Annotated[list[UUID] | None, Query(description="made from this job")] = None,
    principal: Annotated[list[str] | None, Query(description="who submitted it")] = None,
    state: Annotated[list[str] | None, Query(description="the state that it is in, or ended in")] = None,
    cause: Annotated[list[str] | None, Query(description="of any of its attempts")] = None,
    rule: Annotated[
        list[str] | None, Query(description="broken by an answer: the id of a rule, or a keyword of the schema")
    ] = None,
    search: Annotated[
        str | None, Query(min_length=1, max_length=LONGEST, description="a text in an answer or in an error's reason")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_LISTED)] = 50,
    cursor: Annotated[str | None, Query(description="`next_cursor` of the previous page")] = None,
) -> JsonAnswer:
    """List jobs, newest first. A filter that is repeated matches any of its values.

    `outcome`, `cause`, `rule` and `search` apply to one and the same attempt.
    `metadata.KEY=VALUE` finds jobs by their metadata. Jobs that arrive meanwhile come before the first page.
    """
    filters = [(name, text) for name, text in request.query_params.multi_items() if name not in ("limit", "cursor")]
    where: dict[str, list[str]] = {}
    for name, text in filters:
        where.setdefault(name, []).append(text)
    try:
        wanted = filter_of(where)
    except WhereError as error:
        mistakes = [Mistake(str(error), parameter=error.field)]
        raise invalid(f"the request has a wrong parameter: {error.field}", mistakes) from None
    page = await services.reads.page(wanted, limit, None if cursor is None else decode(cursor, filters))
    following = None if page.following is None else encode(page.following, filters)
    searched = {} if search is None else {"looked_back_to": page.looked_back_to}
    return JsonAnswer(JobPage(jobs=page.jobs, next_cursor=following, **searched))


@router.get("/{job_id}", responses={200: answered(Job, "The job"), **problems(404)})
async def get_job(
    job_id: UUID,
    services: ServicesDep,
    _: Reader,
    wait: Annotated[
        float,
        Query(ge=0, le=86400, description=f"hold the answer until the job ends, {LONGEST_WAIT_S:g} seconds at most"),
    ] = 0.0,
) -> JsonAnswer:
    """One job with its open wait, or the call to be settled."""
    job = await services.job(job_id)
    if wait > 0 and not job.status.final:
        await services.watch.until(job_id, lambda progress: progress.final, min(wait, LONGEST_WAIT_S))
        job = await services.job(job_id)
    return JsonAnswer(job)
