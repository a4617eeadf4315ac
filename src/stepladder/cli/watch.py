"""``stepladder watch``: a job's progress, live, until it ends."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from stepladder.cli.options import AsJson, JobId
from stepladder.cli.output import Exit, console, escape, print_json, shorten
from stepladder.schemas.event import EventKind
from stepladder.wiring.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from uuid import UUID

    from stepladder.cli.session import Session
    from stepladder.queries.reads import Reads
    from stepladder.schemas.history import Event, TurnVisit
    from stepladder.schemas.responses import Job
    from stepladder.wiring.settings import Settings

POLL_EVERY_S = 0.2
CHUNK = 500
CLAIMED_WITHIN_S = 5.0  # a running worker claims a job within about a second


def watch(
    job_id: JobId,
    after: Annotated[int, typer.Option(min=0, help="skip the history up to this event")] = 0,
    as_json: AsJson = False,
) -> None:
    """Follow a job until it ends; --json prints one event a line. Exit code 1 if it fails or is cancelled."""
    from stepladder.cli.session import in_session
    from stepladder.cli.view import print_end

    follow = _print_json_lines if as_json else _print_lines
    job = in_session(load_settings(), lambda session: follow(session, job_id, after))
    if not as_json:
        print_end(console(), job)
    raise typer.Exit(_code(job))


def wait_for_end(settings: Settings, job_id: UUID, *, as_json: bool) -> NoReturn:
    """Follow a new job, print how it ended, and exit."""
    from stepladder.cli.session import in_session
    from stepladder.cli.view import print_job, print_next_step

    async def wait(session: Session) -> tuple[Job, tuple[TurnVisit, ...]]:
        return await _print_lines(session, job_id, 0, error=True), await session.reads.turns(job_id)

    job, turns = in_session(settings, wait)
    if as_json:
        print_json({**dict(job), "turns": turns})
    else:
        print_job(console(), job, turns)
        print_next_step(console(error=True), job)
    raise typer.Exit(_code(job))


async def _print_json_lines(session: Session, job_id: UUID, after: int) -> Job:
    await session.job(job_id)
    async for event in _events(session.reads, job_id, after):
        if event is not None:
            print_json(event, indent=None)
    return await session.job(job_id)


async def _print_lines(session: Session, job_id: UUID, after: int, *, error: bool = False) -> Job:
    from stepladder.cli.history import QUIET, event_markup, print_line
    from stepladder.cli.view import print_settlement

    job = await session.job(job_id)
    out = console(error=error)  # one console for the lines and for the status
    out.print(f"job {job_id}  {job.workflow} {job.version}")
    last = None
    with out.status("reading") as status:
        async for event in _events(session.reads, job_id, after):
            last = event or last
            if event is not None and event.kind not in QUIET:
                print_line(out, f"[dim]{event.at:%H:%M:%S}[/]", event_markup(event))
            if event is not None and event.kind is EventKind.SETTLEMENT_NEEDED:
                now = await session.job(job_id)
                if now.settlement is not None:  # it may have been settled long ago
                    print_settlement(out, now, now.settlement)
            if last is not None:
                status.update(_activity(last) or str(status.status))
    return await session.job(job_id)


async def _events(reads: Reads, job_id: UUID, after: int) -> AsyncIterator[Event | None]:
    """The events after an ordinal as they are written, until the job has ended; None while there are no new ones."""
    while True:
        # The status is read first, so that the events of a job that has ended are complete.
        progress = (await reads.progress([job_id])).get(job_id)
        while events := await reads.events(job_id, after, CHUNK):
            for event in events:
                yield event
            after = events[-1].ordinal
        if progress is None or progress.final:
            return
        yield None
        await asyncio.sleep(POLL_EVERY_S)


def _activity(event: Event) -> str | None:
    """What the job has been doing since its last event, as markup; None if that has not changed."""
    value = {name: escape(shorten(str(value))) for name, value in event.data.items()}
    waited_s = (datetime.now(UTC) - event.at).total_seconds()
    match event.kind:
        case EventKind.JOB_CREATED if waited_s > CLAIMED_WITHIN_S:
            return "queued, but no worker claims it: is `stepladder up` or `stepladder worker` running?"
        case EventKind.JOB_CREATED | EventKind.JOB_UNPAUSED:
            return "queued"
        case EventKind.TURN_STARTED:
            return f"turn {event.turn} {value['state']}: asking the model"
        case EventKind.ATTEMPT_JUDGED | EventKind.ATTEMPT_ABANDONED if event.data.get("outcome") != "valid":
            return f"turn {event.turn}: asking again"
        case EventKind.RETRY_SCHEDULED:
            what = f"tool {value['tool']}" if event.turn is None else f"turn {event.turn}"
            return f"{what}: waiting to retry"
        case EventKind.TOOL_STARTED:
            return f"running tool {value['tool']}"
        case EventKind.WAIT_STARTED | EventKind.SIGNAL_REFUSED:
            return f"waiting for signal {value['signal']}"
        case EventKind.SETTLEMENT_NEEDED:
            return f"waiting for settlement of {value['tool']}"
        case EventKind.JOB_PAUSED:
            return "paused"
        case _:
            return None


def _code(job: Job) -> Exit:
    return Exit.DONE if job.status == "succeeded" else Exit.FAILED
