"""``stepladder show``: one job as it stands in the database."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from stepladder.cli import view
from stepladder.cli.arguments import parse_job_id
from stepladder.cli.output import console, say_json
from stepladder.schemas.errors import BadInputError
from stepladder.wiring import servers
from stepladder.wiring.settings import load_settings
from stepladder.wiring.system import open_store

if TYPE_CHECKING:
    from uuid import UUID


def show(
    job: Annotated[str, typer.Argument(metavar="JOB", help="the job's id")],
    turn: Annotated[int | None, typer.Option(help="only this turn")] = None,
    raw: Annotated[bool, typer.Option(help="the exact text of every answer as well")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="as one JSON document")] = False,
) -> None:
    """Show a job: its turns, their attempts, and what was wrong with each answer."""
    job_id = parse_job_id(job)
    with servers.database(load_settings(), lambda _: None) as url:
        asyncio.run(_show(url, job_id, turn, raw=raw, as_json=as_json))


async def _show(url: str, job_id: UUID, turn: int | None, *, raw: bool, as_json: bool) -> None:
    async with open_store(url) as (_, reads):
        overview = await reads.overview(job_id)
        if overview is None:
            remedy = 'list them: stepladder psql -c "SELECT job_id, workflow, status FROM job_overview"'
            raise BadInputError(f"there is no job {job_id}", remedy=remedy)
        turns = [one for one in await reads.turns(job_id) if turn is None or one.ordinal == turn]
    if turn is not None and not turns:
        raise BadInputError(f"job {job_id} has no turn {turn}", remedy=f"it has {overview.turn_count}")
    if as_json:
        say_json(view.as_json(overview, turns))
    else:
        view.print_job(console(), overview, turns, raw=raw)
