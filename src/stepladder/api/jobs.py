"""Routes: submit jobs, list them, and see one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

from fastapi import APIRouter, Header, Query, Request

from stepladder.api import orders
from stepladder.api.answers import JsonAnswer
from stepladder.api.body import MAX_BATCH_BYTES, read_json, shaped
from stepladder.api.cursors import decode, encode
from stepladder.api.orders import Batch, JobOrder
from stepladder.api.parts import Lister, Parts, Reader, Wired, Writer
from stepladder.api.problems import Mistake, invalid
from stepladder.api.specification import answered, problems, takes
from stepladder.models.listing import JobFilter
from stepladder.models.search import LONGEST
from stepladder.schemas.job import Failure, JobStatus
from stepladder.schemas.outcomes import Outcome
from stepladder.schemas.responses import Job, JobPage, Jobs
from stepladder.validation.parse import Parsed, parse

if TYPE_CHECKING:
    from stepladder.models.listing import Scalar
    from stepladder.models.records import Submitted

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])

LONGEST_WAIT_S = 60.0
MOST_LISTED = 500
METADATA = "metadata."

Key = Annotated[
    str | None, Header(alias="Idempotency-Key", description="the same key and body again give the same jobs, for a day")
]
When = Annotated[str | None, Query(description="RFC 3339, such as 2026-01-31T12:30:00Z")]


@router.post(
    "",
    status_code=202,
    openapi_extra=takes(JobOrder),
    responses={
        202: answered(Job, "The job is written and due"),
        200: answered(Job, "The key and the body came before: the same job"),
        **problems(body=True),
    },
)
async def submit_job(request: Request, parts: Wired, principal: Writer, idempotency_key: Key = None) -> JsonAnswer:
    """Submit a job."""
    body = await read_json(request)
    key = orders.submission_key(principal, idempotency_key, "jobs", body)
    done = await orders.known(parts, key)
    if done is None:
        order = shaped(JobOrder, body).order()
        done = await orders.submit(parts, principal, [("", order)], key)
    [job] = await _written(parts, done)
    return JsonAnswer(job, _status(done), {"Location": f"/v1/jobs/{job.id}"})


@router.post(
    "/batch",
    status_code=202,
    openapi_extra=takes(Batch),
    responses={
        202: answered(Jobs, "All jobs are written and due"),
        200: answered(Jobs, "The key and the body came before: the same jobs"),
        **problems(body=True),
    },
)
async def submit_batch(request: Request, parts: Wired, principal: Writer, idempotency_key: Key = None) -> JsonAnswer:
    """Submit up to 1,000 jobs, all or nothing."""
    body = await read_json(request, MAX_BATCH_BYTES)
    key = orders.submission_key(principal, idempotency_key, "batch", body)
    done = await orders.known(parts, key)
    if done is None:
        batch = shaped(Batch, body)
        wanted = [(f"/jobs/{nth}", order.order()) for nth, order in enumerate(batch.jobs)]
        done = await orders.submit(parts, principal, wanted, key)
    return JsonAnswer(Jobs(jobs=await _written(parts, done)), _status(done))


async def _written(parts: Parts, done: Submitted | None) -> tuple[Job, ...]:
    return () if done is None else await parts.reads.overviews(done.job_ids)


def _status(done: Submitted | None) -> int:
    return 200 if done is not None and done.again else 202


@router.get("", responses={200: answered(JobPage, "A page of jobs, newest first"), **problems()})
async def list_jobs(
    request: Request,
    parts: Wired,
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
    state: Annotated[list[str] | None, Query(description="where it stands, or ended")] = None,
    cause: Annotated[list[str] | None, Query(description="of any of its attempts")] = None,
    rule: Annotated[
        list[str] | None, Query(description="broken by an answer: the id of a rule, or a keyword of the schema")
    ] = None,
    search: Annotated[
        str | None, Query(min_length=1, max_length=LONGEST, description="a text in an answer or in an error's reason")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_LISTED)] = 50,
    cursor: Annotated[str | None, Query(description="`next_cursor` of the page before")] = None,
) -> JsonAnswer:
    """List jobs, newest first. A filter given several times takes any of its values.

    `outcome`, `cause`, `rule` and `search` speak of one and the same attempt.
    `metadata.KEY=VALUE` finds jobs by their metadata. Jobs that arrive meanwhile stand before the first page.
    """
    for name, words in (("workflow", workflow), ("principal", principal), ("state", state), ("cause", cause)):
        _texts(name, words or [])
    wanted = JobFilter(
        status=tuple(status or ()),
        workflow=tuple(workflow or ()),
        outcome=tuple(outcome or ()),
        failure=tuple(failure or ()),
        created_after=_time("created_after", created_after),
        created_before=_time("created_before", created_before),
        parent=parent,
        metadata=_metadata(request),
        cause=tuple(cause or ()),
        rule=tuple(_texts("rule", rule or [])),
        state=tuple(state or ()),
        principal=tuple(principal or ()),
        replay_of=tuple(replay_of or ()),
        search=search,
    )
    filters = [(name, text) for name, text in request.query_params.multi_items() if name not in ("limit", "cursor")]
    after = None if cursor is None else decode(cursor, filters)
    page = await parts.reads.page(wanted, limit, after)
    following = None if page.following is None else encode(page.following, filters)
    looked = {} if search is None else {"looked_back_to": page.looked_back_to}
    return JsonAnswer(JobPage(jobs=page.jobs, next_cursor=following, **looked))


@router.get("/{job_id}", responses={200: answered(Job, "The job"), **problems(404)})
async def get_job(
    job_id: UUID,
    parts: Wired,
    _: Reader,
    wait: Annotated[
        float,
        Query(
            ge=0, le=86400, description=f"hold until the job ends, or for so many seconds, {LONGEST_WAIT_S:g} at most"
        ),
    ] = 0.0,
) -> JsonAnswer:
    """One job with its open wait, or the call to be settled."""
    job = await parts.job(job_id)
    if wait > 0 and not job.status.final:
        await parts.watch.until(job_id, lambda progress: progress.final, min(wait, LONGEST_WAIT_S))
        job = await parts.job(job_id)
    return JsonAnswer(job)


def _time(name: str, text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        shown = text[:40]
        hint = "; a + in a query is written %2B" if " " in text else ""
        mistakes = [Mistake(f"{shown!r} is no time, such as 2026-01-31T12:30:00Z{hint}", parameter=name)]
        raise invalid(f"the request has a wrong parameter: {name}", mistakes) from None
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at


def _metadata(request: Request) -> dict[str, tuple[Scalar, ...]]:
    """Each key with what may stand there: the text itself, and the number or the truth that it spells."""
    found: dict[str, list[Scalar]] = {}
    for name, text in request.query_params.multi_items():
        if name.startswith(METADATA):
            _texts(name, [name, text])
            found.setdefault(name.removeprefix(METADATA), []).extend(_spelled(text))
    return {name: tuple(values) for name, values in found.items()}


def _spelled(text: str) -> list[Scalar]:
    parsed = parse(text.encode("utf-8", "replace"))
    if isinstance(parsed, Parsed) and isinstance(parsed.value, bool | int | float):
        return [text, parsed.value]
    return [text]


def _texts(name: str, texts: list[str]) -> list[str]:
    if any("\0" in text for text in texts):
        mistakes = [
            Mistake("the character \\u0000 is in no text that jobs are found by", parameter=name.replace("\0", ""))
        ]
        raise invalid("the query has a text that cannot be looked for", mistakes)
    return texts
