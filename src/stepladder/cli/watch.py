"""``stepladder watch``: a job's progress, live, until it ends."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from stepladder.cli.arguments import parse_job_id
from stepladder.cli.output import Exit, console, print_json
from stepladder.schemas.event import EventKind
from stepladder.wiring.settings import load_settings

if TYPE_CHECKING:
    from uuid import UUID

    from rich.console import Console

    from stepladder.cli.session import Session
    from stepladder.schemas.history import Turn
    from stepladder.schemas.responses import Job
    from stepladder.wiring.settings import Settings


def watch(
    job: Annotated[str, typer.Argument(metavar="JOB", help="the job's id")],
    after: Annotated[int, typer.Option(min=0, help="leave out the history up to this event")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="each event as one line of JSON")] = False,
) -> None:
    """Follow a job until it ends. Exit code 1 if it fails or is cancelled."""
    from stepladder.cli.session import in_session
    from stepladder.cli.view import print_end

    job_id = parse_job_id(job)
    watching = _events if as_json else _lines
    done = in_session(load_settings(), lambda session: watching(session, job_id, after))
    if not as_json:
        print_end(console(), done)
    raise typer.Exit(_code(done))


def see_to_the_end(settings: Settings, job_id: UUID, *, as_json: bool) -> NoReturn:
    """Follows a job that was submitted, shows what came of it, and ends the command."""
    from stepladder.cli.onward import print_onward
    from stepladder.cli.session import in_session
    from stepladder.cli.view import as_json as document
    from stepladder.cli.view import print_job

    async def see(session: Session) -> tuple[Job, tuple[Turn, ...]]:
        done = await _lines(session, job_id, 0, error=True)
        return done, await session.reads.turns(job_id)

    done, turns = in_session(settings, see)
    if as_json:
        print_json(document(done, turns))
    else:
        print_job(console(), done, turns)
        print_onward(console(error=True), done)
    raise typer.Exit(_code(done))


async def _events(session: Session, job_id: UUID, after: int) -> Job:
    from stepladder.cli.history import follow

    await session.job(job_id)
    async for record in follow(session.reads, job_id, after):
        if record is not None:
            print_json(record, indent=None)
    return await session.job(job_id)


async def _lines(session: Session, job_id: UUID, after: int, *, error: bool = False) -> Job:
    from stepladder.cli.history import busy_with, follow, line_of
    from stepladder.cli.timeline import print_line

    job = await session.job(job_id)
    out = console(error=error)  # one console for the lines and for the line that moves
    out.print(f"job {job_id}  {job.workflow} {job.version}")
    last = None
    with out.status("looking") as status:
        async for record in follow(session.reads, job_id, after):
            last = record or last
            if record is not None and (line := line_of(record)) is not None:
                print_line(out, f"[dim]{record.at:%H:%M:%S}[/]", line)
            if record is not None and record.kind is EventKind.SETTLEMENT_NEEDED:
                await _tell_settlement(session, job, out)
            if last is not None:
                since = (datetime.now(UTC) - last.at).total_seconds()
                status.update(busy_with(last, since) or str(status.status))
    return await session.job(job_id)


async def _tell_settlement(session: Session, job: Job, out: Console) -> None:
    """What is to be settled, unless that is long ago."""
    from stepladder.cli.view import print_settlement

    now = await session.job(job.id)
    if now.settlement is not None:
        print_settlement(out, now, now.settlement)


def _code(job: Job) -> Exit:
    return Exit.DONE if job.status == "succeeded" else Exit.FAILED
