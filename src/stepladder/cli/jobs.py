"""``stepladder jobs``: which jobs there are, newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from stepladder.cli import filters  # noqa: TC001 -- typer reads them at run time
from stepladder.cli.arguments import parse_job_id
from stepladder.cli.filters import read_filter
from stepladder.cli.output import console, print_json
from stepladder.wiring.settings import load_settings

if TYPE_CHECKING:
    from uuid import UUID

    from stepladder.cli.session import Session
    from stepladder.models.listing import JobFilter
    from stepladder.models.reads import FoundJobs

MOST = 1000


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
    limit: Annotated[int, typer.Option(min=1, max=MOST, help="of one page")] = 50,
    cursor: Annotated[str | None, typer.Option(metavar="JOB", help="go on behind this job of the page before")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="as one JSON document, with next_cursor")] = False,
) -> None:
    """List jobs, newest first. An option that is repeated takes any of its values.

    --outcome, --cause, --rule and --search speak of one and the same attempt.
    """
    from stepladder.cli.session import in_session

    wanted = read_filter(
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
    after = None if cursor is None else parse_job_id(cursor)
    page = in_session(load_settings(), lambda session: _page(session, wanted, limit, after))
    _show(page, as_json=as_json)


async def _page(session: Session, wanted: JobFilter, limit: int, after: UUID | None) -> FoundJobs:
    """A job's place in the list never changes, so that its id is a cursor."""
    from stepladder.models.listing import Place

    place = None if after is None else Place((await session.job(after)).created_at, after)
    return await session.reads.page(wanted, limit, place)


def _show(page: FoundJobs, *, as_json: bool) -> None:
    from stepladder.cli.view import jobs_table

    following = None if page.following is None else page.following.job_id
    if as_json:
        looked = {} if page.looked_back_to is None else {"looked_back_to": page.looked_back_to}
        print_json({"jobs": page.jobs, "next_cursor": following} | looked)
        return
    told = console(error=True)
    if page.jobs:
        console().print(jobs_table(page.jobs), soft_wrap=False)
    elif following is None:
        told.print("no job is like that")
    if following is not None and page.looked_back_to is not None:
        told.print(
            f"looked at jobs back to {page.looked_back_to:%Y-%m-%d %H:%M} UTC; look further: --cursor {following}"
        )
    elif following is not None:
        told.print(f"there are more: --cursor {following}", style="dim")
