"""``stepladder retain``: remove data older than the retention settings."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from stepladder.cli.options import AsJson
from stepladder.cli.output import console, plural, print_json
from stepladder.schemas.errors import BadInputError
from stepladder.wiring.settings import load_settings


def retain(
    raw_days: Annotated[float | None, typer.Option(min=0, help="keep raw answers so long after a job's end")] = None,
    events_days: Annotated[float | None, typer.Option(min=0, help="keep the history so long after a job's end")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only print what would be removed")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="do not ask for confirmation")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove old raw answers and histories now. Verdicts, outputs and held jobs stay.

    Workers do this by themselves if STEPLADDER_KEEP_RAW_DAYS or STEPLADDER_KEEP_EVENTS_DAYS is set.
    """
    from stepladder.cli.session import in_session
    from stepladder.models import retention

    settings = load_settings(keep_raw_days=raw_days, keep_events_days=events_days)
    ages = retention.Ages.of_days(settings.keep_raw_days, settings.keep_events_days)
    if ages.endless:
        remedy = "give --raw-days N or --events-days N, or set STEPLADDER_KEEP_RAW_DAYS or STEPLADDER_KEEP_EVENTS_DAYS"
        raise BadInputError("everything is kept forever", remedy=remedy)
    if not dry_run and not yes and not (sys.stdin.isatty() and typer.confirm("remove it permanently?", err=True)):
        raise BadInputError("nothing was removed", remedy="confirm with --yes, or look first with --dry-run")
    remove = retention.due if dry_run else retention.retain
    removed = in_session(settings, lambda session: remove(session.store.database, ages))
    if as_json:
        counts = ("raw_jobs", "attempts", "event_jobs", "events")
        print_json({"dry_run": dry_run} | {name: getattr(removed, name) for name in counts})
        return
    done = "would be removed" if dry_run else "removed"
    if ages.raw is not None:
        attempts, jobs = plural(removed.attempts, "attempt"), plural(removed.raw_jobs, "job")
        console().print(f"raw answers of {attempts} in {jobs} {done}")
    if ages.events is not None:
        events, jobs = plural(removed.events, "event"), plural(removed.event_jobs, "job")
        console().print(f"{events} of the history of {jobs} {done}")
