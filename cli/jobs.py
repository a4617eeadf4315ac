"""``stepladder jobs``: which jobs there are, newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from stepladder.cli.arguments import parse_job_id, parse_pairs, parse_time
from stepladder.cli.output import console, say_json
from stepladder.schemas.job import Failure, JobStatus  # noqa: TC001 -- typer reads them at run time
from stepladder.schemas.outcomes import Outcome  # noqa: TC001 -- as these
from stepladder.wiring.settings import load_settings

if TYPE_CHECKING:
    from uuid import UUID

    from stepladder.cli.desk import Desk
    from stepladder.models.listing import JobFilter
    from stepladder.models.reads import Overview

MOST = 1000


def jobs(
    status: Annotated[list[JobStatus] | None, typer.Option(help="only jobs with this status; may be repeated")] = None,
    workflow: Annotated[list[str] | None, typer.Option(metavar="NAME", help="of this workflow")] = None,
    outcome: Annotated[list[Outcome] | None, typer.Option(help="with an attempt of this outcome")] = None,
    failure: Annotated[list[Failure] | None, typer.Option(help="that failed for this reason")] = None,
    created_after: Annotated[str | None, typer.Option(metavar="TIME", help="created then or later (RFC 3339)")] = None,
    created_before: Annotated[str | None, typer.Option(metavar="TIME", help="created before then")] = None,
    metadata: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="with this among its words")] = None,
    limit: Annotated[int, typer.Option(min=1, max=MOST, help="of one page")] = 50,
    cursor: Annotated[str | None, typer.Option(metavar="JOB", help="go on behind this job of the page before")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="as one JSON document, with next_cursor")] = False,
) -> None:
    """List jobs, newest first. An option that is repeated takes any of its values."""
    from stepladder.cli.desk import at_desk
    from stepladder.models.listing import JobFilter

    wanted = JobFilter(
        status=tuple(status or ()),
        workflow=tuple(workflow or ()),
        outcome=tuple(outcome or ()),
        failure=tuple(failure or ()),
        created_after=parse_time(created_after, "--created-after"),
        created_before=parse_time(created_before, "--created-before"),
        metadata={key: (text, *_spelled(text)) for key, text in parse_pairs(metadata or [], "--metadata").items()},
    )
    after = None if cursor is None else parse_job_id(cursor)
    page, more = at_desk(load_settings(), lambda desk: _page(desk, wanted, limit, after))
    _show(page, more=more, as_json=as_json)


async def _page(desk: Desk, wanted: JobFilter, limit: int, after: UUID | None) -> tuple[tuple[Overview, ...], bool]:
    """The page, and whether there is another one. A job's place in the list never changes, so that its id is a
    cursor.
    """
    from stepladder.models.listing import Place

    place = None if after is None else Place((await desk.job(after)).created_at, after)
    found = await desk.reads.jobs(wanted, limit + 1, place)
    return found[:limit], len(found) > limit


def _show(page: tuple[Overview, ...], *, more: bool, as_json: bool) -> None:
    from stepladder.cli.view import job_json, jobs_table

    following = page[-1].id if more else None
    if as_json:
        say_json({"jobs": [job_json(job) for job in page], "next_cursor": following})
        return
    if page:
        console().print(jobs_table(page), soft_wrap=False)
    else:
        console(error=True).print("no job is like that")
    if following is not None:
        console(error=True).print(f"there are more: --cursor {following}", style="dim")


def _spelled(text: str) -> tuple[int | float | bool, ...]:
    """The number or the truth that a text spells, which a job's metadata may hold in its place."""
    from stepladder.validation.parse import Parsed, parse

    parsed = parse(text.encode("utf-8", "replace"))
    return (parsed.value,) if isinstance(parsed, Parsed) and isinstance(parsed.value, bool | int | float) else ()
