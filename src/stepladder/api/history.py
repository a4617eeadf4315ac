"""Routes: a job's turns, events and visits, and the exact bytes of requests and answers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import structlog
from fastapi import APIRouter, Header, Query, Request
from starlette.responses import Response, StreamingResponse

from stepladder.api.answers import JsonAnswer
from stepladder.api.dependencies import Reader, Services, ServicesDep
from stepladder.api.problems import Mistake, invalid, not_found
from stepladder.api.specification import answered, problems
from stepladder.engine.wire import encode
from stepladder.schemas.errors import UnreachableError
from stepladder.schemas.history import Timeline, TurnVisit
from stepladder.schemas.jsontext import json_text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from stepladder.queries.reads import Progress
    from stepladder.schemas.history import Event

log = structlog.get_logger("stepladder.api")

router = APIRouter(prefix="/v1", tags=["history"])

STREAM = "text/event-stream"
CHUNK = 500  # events read at once, so that a long history is never whole in memory
RECONNECT_MS = 1000

RAW: dict[int | str, dict[str, Any]] = {
    200: {"description": "The body, byte for byte", "content": {"application/octet-stream": {"schema": {}}}},
    **problems(404, 410),
}
SENT: dict[int | str, dict[str, Any]] = {
    200: {"description": "The body, byte for byte", "content": {"application/json": {"schema": {"type": "object"}}}},
    **problems(404),
}
EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The history, oldest first",
        "content": {
            "application/json": {
                "schema": {"type": "array", "items": {"$ref": "#/components/schemas/Event"}},
            },
            STREAM: {"schema": {"type": "string"}, "example": "id: 1\nevent: job_created\ndata: {...}\n\n"},
        },
    },
    204: {"description": "As a stream: the job has ended, and there is nothing after `Last-Event-ID`"},
    **problems(404),
}


@router.get(
    "/jobs/{job_id}/turns",
    responses={200: {"model": list[TurnVisit], "description": "Turns, with their attempts"}, **problems(404)},
)
async def get_turns(job_id: UUID, services: ServicesDep, _: Reader) -> JsonAnswer:
    """Every turn with every attempt, open ones included."""
    turns = await services.reads.turns(job_id)
    if not turns:
        await services.job(job_id)
    return JsonAnswer(turns)


@router.get("/attempts/{attempt_id}/raw", response_class=Response, responses=RAW)
async def get_raw(attempt_id: UUID, services: ServicesDep, _: Reader) -> Response:
    """What the engine answered, byte for byte. Empty before anything has arrived; a 410 if retention removed it."""
    body = await services.reads.raw(attempt_id)
    if body is None:
        raise not_found(f"attempt {attempt_id}", "a job's attempts are listed in GET /v1/jobs/{id}/turns")
    headers = {"Content-Disposition": f'attachment; filename="attempt-{attempt_id}.bin"'}
    return Response(body, media_type="application/octet-stream", headers=headers)


@router.get(
    "/jobs/{job_id}/visits", responses={200: answered(Timeline, "Tools, waits, calls, signals"), **problems(404)}
)
async def get_visits(job_id: UUID, services: ServicesDep, _: Reader) -> JsonAnswer:
    """What happened between a job's turns: tools, waits, signals, and calls of other jobs, each oldest first."""
    await services.job(job_id)
    return JsonAnswer(await services.reads.timeline(job_id))


@router.get("/attempts/{attempt_id}/request", response_class=Response, responses=SENT)
async def get_request(attempt_id: UUID, services: ServicesDep, _: Reader) -> Response:
    """The request as it was sent to the engine, byte for byte, rebuilt from the transcript."""
    sent = await services.reads.request(attempt_id)
    if sent is None:
        raise not_found(f"attempt {attempt_id}", "a job's attempts are listed in GET /v1/jobs/{id}/turns")
    headers = {"Content-Disposition": f'attachment; filename="request-{attempt_id}.json"'}
    return Response(encode(sent.body), media_type="application/json", headers=headers)


@router.get("/jobs/{job_id}/events", response_class=Response, responses=EVENTS)
async def get_events(
    request: Request,
    job_id: UUID,
    services: ServicesDep,
    _: Reader,
    after: Annotated[int, Query(ge=0, le=2**31 - 1, description="events after this ordinal")] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000, description="of the list; a stream has no limit")] = 1000,
    last_event_id: Annotated[str | None, Header(description="the stream continues after this one")] = None,
) -> Response:
    """The history. As `text/event-stream` it follows the job until it ends; the event's `id` is its ordinal."""
    job = await services.job(job_id)
    if STREAM not in request.headers.get("accept", ""):
        return JsonAnswer(await services.reads.events(job_id, after, limit))
    behind = max(after, _ordinal(last_event_id))
    over = job.status.final and (behind >= job.event_count or not await services.reads.events(job_id, behind, 1))
    if over:
        return Response(status_code=204)  # after this a browser does not reconnect
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_follow(services, job_id, behind), media_type=STREAM, headers=headers)


def _ordinal(last_event_id: str | None) -> int:
    if not last_event_id:
        return 0
    if last_event_id.isascii() and last_event_id.isdigit() and len(last_event_id) < 10:
        return int(last_event_id)
    mistakes = [Mistake("must be the `id` of an event, a number", parameter="Last-Event-ID")]
    raise invalid("the header Last-Event-ID cannot be used", mistakes, "leave it out to start with the first event")


async def _follow(services: Services, job_id: UUID, behind: int) -> AsyncIterator[bytes]:
    """Events as they are written, and a comment as heartbeat, until the job or the server ends.

    A broken database connection ends the stream; the client reconnects, and says how far it has read.
    """
    yield f"retry: {RECONNECT_MS}\n\n".encode()
    try:
        while not services.watch.closed:
            # Progress first, so that all events of a job that has ended by now are read.
            progress = (await services.reads.progress([job_id])).get(job_id)
            while events := await services.reads.events(job_id, behind, CHUNK):
                behind = events[-1].ordinal
                yield "".join(map(_framed, events)).encode()
            if progress is None or progress.final:
                return
            if not await services.watch.until(job_id, partial(_has_moved, behind), services.heartbeat_s):
                yield b": still here\n\n"
    except UnreachableError as error:
        log.warning("stream aborted", job=str(job_id), reason=str(error))


def _has_moved(behind: int, progress: Progress) -> bool:
    """The end counts too: its event may be newer than the progress that was read."""
    return progress.final or progress.event_count > behind


def _framed(event: Event) -> str:
    """JSON contains no line break, so one line of data holds it."""
    return f"id: {event.ordinal}\nevent: {event.kind}\ndata: {json_text(event)}\n\n"
