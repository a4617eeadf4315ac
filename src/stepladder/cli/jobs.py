"""``stepladder jobs``: jobs, newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from stepladder.cli import filters
from stepladder.cli.options import AsJson, Cursor
from stepladder.cli.output import WIDTH, coloured, console, escape, hint, make_table, print_json
from stepladder.wiring.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from rich.table import Table

    from stepladder.cli.session import Session
    from stepladder.queries.reads import FoundJobs
    from stepladder.schemas.job_filter import JobFilter
    from stepladder.schemas.responses import Job

MAX_LIMIT = 1000


def jobs(
    status: filters.Statuses = None,
    workflow: filters.Workflows = None,
    outcome: filters.Outcomes = None,
    cause: filters.Causes = None,
    rule: filters.Rules = None,
    search: filters.Search = None,
    failure: filters.Failures = None,
    state: filters.States = None,
    principal: filters.Principals = None,
    created_after: filters.After = None,
    created_before: filters.Before = None,
    parent: filters.Parent = None,
    replay_of: filters.ReplaysOf = None,
    metadata: filters.Metadata = None,
    limit: Annotated[int, typer.Option(min=1, max=MAX_LIMIT, help="jobs on a page")] = 50,
    cursor: Cursor = None,
    as_json: AsJson = False,
) -> None:
    """List jobs, newest first. A repeated option matches any of its values.

    --outcome, --cause, --rule and --search apply to one and the same attempt.
    """
    from stepladder.cli.session import in_session

    wanted = filters.read_filter(
        status=status,
        workflow=workflow,
        outcome=outcome,
        cause=cause,
        rule=rule,
        search=search,
        failure=failure,
        state=state,
        principal=principal,
        created_after=created_after,
        created_before=created_before,
        parent=parent,
        replay_of=replay_of,
        metadata=metadata,
    )
    page = in_session(load_settings(), lambda session: _page(session, wanted, limit, cursor))
    following = None if page.following is None else page.following.job_id
    searched = {} if page.looked_back_to is None else {"looked_back_to": page.looked_back_to}
    if as_json:
        print_json({"jobs": page.jobs, "next_cursor": following} | searched)
        return
    out = console()
    if page.jobs:
        out.print(_table(page.jobs, wide=out.width >= WIDTH), soft_wrap=False)
    elif following is None:
        console(error=True).print("No jobs match.")
    if following is not None and page.looked_back_to is not None:
        since = f"searched jobs back to {page.looked_back_to:%Y-%m-%d %H:%M} UTC"
        console(error=True).print(f"{since}; search further: --cursor {following}")
    elif following is not None:
        hint(f"there are more: --cursor {following}")


async def _page(session: Session, wanted: JobFilter, limit: int, cursor: UUID | None) -> FoundJobs:
    from stepladder.schemas.job_filter import Place

    # a job's place in the list never changes, so its id is a cursor
    place = None if cursor is None else Place((await session.job(cursor)).created_at, cursor)
    return await session.reads.page(wanted, limit, place)


def _table(jobs: Sequence[Job], *, wide: bool) -> Table:
    """One row for each job; a narrow table has no times and counts, so that ids stay whole."""
    extra = ("created (UTC)", "turns") if wide else ()
    table = make_table("id", "status", *extra, "workflow", "where", wide=("workflow", "where"), right=("turns",))
    for job in jobs:
        times = (f"{job.created_at:%y-%m-%d %H:%M}", str(job.turn_count)) if wide else ()
        table.add_row(
            str(job.id), coloured(job.status), *times, escape(f"{job.workflow} {job.version}"), escape(_where(job))
        )
    return table


def _where(job: Job) -> str:
    """Why it failed, what it waits for, or the state that it is in."""
    if job.failure is not None:
        return job.failure
    if job.waiting_for is not None:
        return f"for {job.waiting_for}"
    return "" if job.status.final else job.state or ""
