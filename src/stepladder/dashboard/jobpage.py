"""The page of one job, the part of it that is live, and the bytes of its answers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from uuid import UUID, uuid5

import structlog
from starlette.responses import RedirectResponse, Response, StreamingResponse

from stepladder.api.problems import not_found
from stepladder.dashboard import words
from stepladder.dashboard.conversation import conversation
from stepladder.dashboard.desk import desk_of, guest_of, job_of
from stepladder.dashboard.graph import graph_of
from stepladder.dashboard.path import way_of
from stepladder.dashboard.render import HEADERS, page
from stepladder.schemas.errors import UnreachableError
from stepladder.schemas.event import EventKind
from stepladder.schemas.event_text import event_text
from stepladder.schemas.finding import BadDocumentError
from stepladder.schemas.job import Failure, JobStatus
from stepladder.workflows.machine import TIMEOUT, WaitState
from stepladder.workflows.waits import forbids

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from starlette.requests import Request

    from stepladder.dashboard.conversation import Shown
    from stepladder.dashboard.desk import Desk
    from stepladder.dashboard.graph import Graph
    from stepladder.models.reads import Progress
    from stepladder.schemas.history import Event
    from stepladder.schemas.responses import Job
    from stepladder.workflows.job import Wait

log = structlog.get_logger("stepladder.dashboard")

SHOWN_EVENTS = 1000
RECONNECT_MS = 1000


async def show_job(request: Request) -> Response:
    return page(request, "job.html", **await values(request, await job_of(request)))


async def show_part(request: Request) -> Response:
    """What of the page changes while the job runs, for the page's own script."""
    return page(request, "job_live.html", **await values(request, await job_of(request)))


async def values(request: Request, job: Job) -> dict[str, Any]:
    """What the templates of a job show."""
    desk = desk_of(request)
    reads = desk.parts.reads
    events = await reads.events(job.id, max(0, job.event_count - SHOWN_EVENTS))
    turns, timeline = await reads.turns(job.id), await reads.timeline(job.id)
    visits = conversation(turns, timeline, job.children or ())
    replays = await reads.overviews(job.replays)
    wait = await reads.open_wait(job.id) if job.wait is not None else None
    return {
        "job": job,
        "events": events,
        "visits": visits,
        "graph": await _graph(desk, job, visits),
        "replays": replays,
        "again_key": str(uuid5(job.id, str(len(replays)))),
        "resumable": job.status in (JobStatus.FAILED, JobStatus.CANCELLED) and job.failure is not Failure.REJECTED,
        "refused": [],
        "remedy": None if job.failure is None else words.remedy(job.failure),
        "doing": words.doing(job, events[-1] if events else None),
        "event_text": event_text,
        "wait": wait,
        "forbidden": None if wait is None else forbids(wait, guest_of(request).principal, job.principal),
        "signal": None if wait is None or job.status.final else await _signal(desk, job, wait, _key(wait, events)),
        "settlement": job.settlement,
        "mistakes": [],
        "typed": {},
    }


async def _graph(desk: Desk, job: Job, visits: Sequence[Shown]) -> Graph | None:
    """None without the tools that the workflow names."""
    try:
        machine = await desk.parts.machines.get(job.workflow, job.version, job.variant)
    except BadDocumentError:
        return None
    return graph_of(machine, way_of(job, visits))


async def choose_other(request: Request) -> Response:
    """Leads from the form with the other job's id to the two beside each other."""
    job, other = await job_of(request), request.query_params.get("with", "").strip()
    if not other:
        return RedirectResponse(f"/jobs/{job.id}", 303)
    return RedirectResponse(f"/jobs/{job.id}/diff/{quote(other[:100], safe='')}", 303)


def _key(wait: Wait, events: Sequence[Event]) -> UUID:
    """The id of the next signal from this page: the same for each rendering, so that a second click sends nothing new,
    and another one after a signal was refused."""
    refused = sum(event.kind is EventKind.SIGNAL_REFUSED for event in events)
    return uuid5(wait.wait_id, str(refused))


async def _signal(desk: Desk, job: Job, wait: Wait, key: UUID) -> dict[str, Any]:
    """What a form for the open wait's signal asks for. Without the tools that the workflow names, it asks for JSON."""
    form: dict[str, Any] = {"actions": [], "schema": None, "key": str(key)}
    try:
        state = (await desk.parts.machines.get(job.workflow, job.version, job.variant)).states[wait.state]
    except BadDocumentError:
        return form
    if isinstance(state, WaitState):
        schema = None if state.schema is None else state.schema.schema
        return form | {"actions": [word for word in state.edges if word != TIMEOUT], "schema": schema}
    return form


async def follow_job(request: Request) -> Response:
    """Server-sent events: a number whenever the job's history has grown, until the job has ended."""
    job = await job_of(request)
    seen = request.headers.get("last-event-id") or request.query_params.get("after", "")
    behind = int(seen) if seen.isascii() and seen.isdigit() and len(seen) < 10 else 0
    if job.status.final and behind >= job.event_count:
        return Response(status_code=204)  # by which a browser knows not to come back
    headers = HEADERS | {"X-Accel-Buffering": "no"}
    return StreamingResponse(_follow(desk_of(request), job.id, behind), 200, headers, media_type="text/event-stream")


async def _follow(desk: Desk, job_id: UUID, behind: int) -> AsyncIterator[bytes]:
    parts = desk.parts
    yield f"retry: {RECONNECT_MS}\n\n".encode()
    try:
        while not parts.watch.closed:
            progress = (await parts.reads.progress([job_id])).get(job_id)
            if progress is None:
                return
            if progress.event_count > behind:
                behind = progress.event_count
                yield f"id: {behind}\ndata: {behind}\n\n".encode()
            if progress.final:
                return
            if not await parts.watch.until(job_id, partial(_has_more, behind), parts.heartbeat_s):
                yield b": still here\n\n"
    except UnreachableError as error:
        log.warning("live page broken off", job=str(job_id), reason=str(error))


def _has_more(behind: int, progress: Progress) -> bool:
    return progress.event_count > behind


async def download_raw(request: Request) -> Response:
    """The engine's answer byte for byte, as a file: a browser must not make a page of it."""
    attempt_id = request.path_params["attempt_id"]
    try:
        body = await desk_of(request).parts.reads.raw(UUID(attempt_id))
    except ValueError:
        body = None
    if body is None:
        raise not_found(f"attempt {attempt_id[:100]}", "open its job, and follow the link there")
    headers = HEADERS | {
        "Content-Disposition": f'attachment; filename="attempt-{attempt_id}.bin"',
        "X-Content-Type-Options": "nosniff",
    }
    return Response(body, 200, headers, media_type="application/octet-stream")
