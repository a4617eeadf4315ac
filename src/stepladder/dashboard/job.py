"""The page of one job, its live updates, and the bytes of its answers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid5

import structlog
from starlette.responses import Response, StreamingResponse

from stepladder.api.problems import not_found
from stepladder.dashboard.context import context_of, form_of, job_of, session_of
from stepladder.dashboard.graph import graph_of
from stepladder.dashboard.messages import REMEDIES, doing
from stepladder.dashboard.rendering import HEADERS, page
from stepladder.dashboard.timeline import visits_of
from stepladder.schemas.errors import UnreachableError
from stepladder.schemas.event import EventKind
from stepladder.schemas.event_text import event_text
from stepladder.schemas.finding import BadDocumentError
from stepladder.schemas.job import Failure, JobStatus
from stepladder.workflows.machine import TIMEOUT, WaitState
from stepladder.workflows.waits import forbids

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request

    from stepladder.dashboard.context import Context
    from stepladder.queries.reads import Progress
    from stepladder.schemas.responses import Job
    from stepladder.workflows.machine import Machine

log = structlog.get_logger("stepladder.dashboard")

SHOWN_EVENTS = 1000
RECONNECT_MS = 1000


async def show_job(request: Request) -> Response:
    return page(request, "job.html", **await _values(request, await job_of(request)))


async def show_part(request: Request) -> Response:
    """The part of the page that changes while the job runs, for the page's script."""
    return page(request, "job_live.html", **await _values(request, await job_of(request)))


async def show_mistakes(
    request: Request, job: Job, *mistakes: str, status: int = 422, replay: bool = False
) -> Response:
    """The job's page with the errors next to the user's input, in the form for replays or the others."""
    values = await _values(request, job)
    values |= {"refused" if replay else "mistakes": mistakes, "typed": dict(form_of(request))}
    return page(request, "job.html", status, **values)


async def _values(request: Request, job: Job) -> dict[str, Any]:
    context, principal = context_of(request), session_of(request).principal
    reads = context.services.reads
    events = await reads.events(job.id, max(0, job.event_count - SHOWN_EVENTS))
    visits = visits_of(job, await reads.turns(job.id), await reads.timeline(job.id))
    replays = await reads.overviews(job.replays)
    machine = await _machine(context, job)
    wait = await reads.open_wait(job.id) if job.wait is not None else None
    state = None if machine is None or wait is None else machine.states[wait.state]
    waits = state if isinstance(state, WaitState) else None
    rejected = sum(event.kind is EventKind.SIGNAL_REFUSED for event in events)
    return {
        "job": job,
        "events": events,
        "event_text": event_text,
        "visits": visits,
        "graph": None if machine is None else graph_of(machine, job, visits),
        "doing": doing(job, events[-1] if events else None),
        "remedy": None if job.failure is None else REMEDIES[job.failure],
        "replays": replays,
        "replay_key": uuid5(job.id, str(len(replays))),
        "resumable": job.status in (JobStatus.FAILED, JobStatus.CANCELLED) and job.failure is not Failure.REJECTED,
        "wait": wait,
        "forbidden": None if wait is None else forbids(wait, principal, job.principal),
        # The same for each rendering, so that a second click sends nothing new, until a signal is rejected.
        "signal_key": None if wait is None else uuid5(wait.wait_id, str(rejected)),
        "actions": [word for word in waits.edges if word != TIMEOUT] if waits else [],
        "signal_schema": waits.schema.schema if waits and waits.schema else None,
        "settlement": job.settlement,
        "mistakes": (),
        "refused": (),
        "typed": {},
    }


async def _machine(context: Context, job: Job) -> Machine | None:
    """None without the tools that the workflow names."""
    try:
        return await context.services.machines.get(job.workflow, job.version, job.variant)
    except BadDocumentError:
        return None


async def follow_job(request: Request) -> Response:
    """Server-sent events: the number of events whenever the job's history has grown, until the job has ended."""
    job = await job_of(request)
    seen = request.headers.get("last-event-id") or request.query_params.get("after", "")
    after = int(seen) if seen.isascii() and seen.isdigit() and len(seen) < 10 else 0
    if job.status.final and after >= job.event_count:
        return Response(status_code=204)  # tells a browser not to reconnect
    headers = HEADERS | {"X-Accel-Buffering": "no"}
    return StreamingResponse(_follow(context_of(request), job.id, after), 200, headers, "text/event-stream")


async def _follow(context: Context, job_id: UUID, after: int) -> AsyncIterator[bytes]:
    services = context.services
    yield f"retry: {RECONNECT_MS}\n\n".encode()
    try:
        while not services.watch.closed:
            progress = (await services.reads.progress([job_id])).get(job_id)
            if progress is None:
                return
            if progress.event_count > after:
                after = progress.event_count
                yield f"id: {after}\ndata: {after}\n\n".encode()
            if progress.final:
                return
            if not await services.watch.until(job_id, partial(_has_more, after), services.heartbeat_s):
                yield b": still here\n\n"
    except UnreachableError as error:
        log.warning("live page interrupted", job=str(job_id), reason=str(error))


def _has_more(after: int, progress: Progress) -> bool:
    return progress.event_count > after


async def download_raw(request: Request) -> Response:
    """The engine's answer byte for byte, as a file: a browser must not render it."""
    attempt_id = request.path_params["attempt_id"]
    try:
        body = await context_of(request).services.reads.raw(UUID(attempt_id))
    except ValueError:
        body = None
    if body is None:
        raise not_found(f"attempt {attempt_id[:100]}", "open its job, and follow the link there")
    headers = HEADERS | {
        "Content-Disposition": f'attachment; filename="attempt-{attempt_id}.bin"',
        "X-Content-Type-Options": "nosniff",
    }
    return Response(body, 200, headers, media_type="application/octet-stream")
