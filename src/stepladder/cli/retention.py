"""``stepladder retain``, ``hold`` and ``release``: what is removed with age, and which jobs are exempt."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from stepladder.cli.arguments import parse_job_id
from stepladder.cli.output import console, print_json
from stepladder.schemas.errors import BadInputError
from stepladder.wiring.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from uuid import UUID

    from stepladder.cli.session import Session
    from stepladder.models.records import Receipt
    from stepladder.models.retention import Ages, Removed
    from stepladder.schemas.responses import Job

JobId = Annotated[str, typer.Argument(metavar="JOB", help="the job's id")]
AsJson = Annotated[bool, typer.Option("--json", help="print the job as JSON")]


def hold(job: JobId, as_json: AsJson = False) -> None:
    """Exempt a job's raw answers and its history from retention."""
    from stepladder.cli.session import PRINCIPAL
    from stepladder.models import retention

    _change(
        job,
        lambda session, job_id: retention.hold(session.store.database, job_id, PRINCIPAL),
        "is held",
        as_json=as_json,
    )


def release(job: JobId, as_json: AsJson = False) -> None:
    """Let retention remove a job's raw answers and its history again."""
    from stepladder.models import retention

    def ask(session: Session, job_id: UUID) -> Awaitable[Receipt]:
        return retention.release(session.store.database, job_id)

    _change(job, ask, "is released", as_json=as_json)


def _change(job: str, ask: Callable[[Session, UUID], Awaitable[Receipt]], done: str, *, as_json: bool) -> None:
    from stepladder.cli.session import in_session
    from stepladder.cli.view import print_retention
    from stepladder.models.records import Receipt

    async def change(session: Session) -> tuple[Job, Receipt]:
        await session.job(job_id)
        receipt = await ask(session, job_id)
        return await session.job(job_id), receipt

    job_id = parse_job_id(job)
    now, receipt = in_session(load_settings(), change)
    if as_json:
        print_json(now)
        return
    console().print(f"job {now.id} {done if receipt is Receipt.ACCEPTED else 'was already so'}")
    print_retention(console(), now)


def retain(
    raw_days: Annotated[
        float | None, typer.Option("--raw-days", min=0, help="how long to keep raw answers after a job's end")
    ] = None,
    events_days: Annotated[
        float | None, typer.Option("--events-days", min=0, help="how long to keep the history after a job's end")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only say what would be removed")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="do not ask for confirmation")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="as one JSON document")] = False,
) -> None:
    """Remove now what is older than the settings say. Verdicts, outputs and held jobs stay.

    Workers do the same continuously if STEPLADDER_KEEP_RAW_DAYS or STEPLADDER_KEEP_EVENTS_DAYS is set.
    """
    from stepladder.cli.session import in_session
    from stepladder.models.retention import Ages

    settings = load_settings(keep_raw_days=raw_days, keep_events_days=events_days)
    ages = Ages.of_days(settings.keep_raw_days, settings.keep_events_days)
    if ages.endless:
        remedy = "write --raw-days N or --events-days N, or set STEPLADDER_KEEP_RAW_DAYS or STEPLADDER_KEEP_EVENTS_DAYS"
        raise BadInputError("everything is kept forever", remedy=remedy)
    if not dry_run and not yes and not (sys.stdin.isatty() and typer.confirm("remove it for good?", err=True)):
        raise BadInputError("nothing was done", remedy="confirm with --yes, or look first with --dry-run")
    removed = in_session(settings, lambda session: _retain(session, ages, dry_run=dry_run))
    if as_json:
        names = ("raw_jobs", "attempts", "event_jobs", "events")
        print_json({"dry_run": dry_run} | {name: getattr(removed, name) for name in names})
        return
    verb = "would be removed" if dry_run else "removed"
    if ages.raw is not None:
        console().print(f"raw answers of {removed.attempts:,} attempts in {removed.raw_jobs:,} jobs {verb}")
    if ages.events is not None:
        console().print(f"history of {removed.events:,} events in {removed.event_jobs:,} jobs {verb}")


async def _retain(session: Session, ages: Ages, *, dry_run: bool) -> Removed:
    from stepladder.models.retention import due, retain

    return await (due if dry_run else retain)(session.store.database, ages)
