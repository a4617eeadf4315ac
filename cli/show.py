"""``stepladder show``: one job as it stands in the database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from stepladder.cli.arguments import parse_job_id
from stepladder.cli.output import console, say_json
from stepladder.schemas.errors import BadInputError
from stepladder.wiring.settings import load_settings

if TYPE_CHECKING:
    from uuid import UUID

    from stepladder.cli.desk import Desk
    from stepladder.models.reads import Overview, TurnRecord
    from stepladder.workflows.job import Wait


def show(
    job: Annotated[str, typer.Argument(metavar="JOB", help="the job's id")],
    turn: Annotated[int | None, typer.Option(help="only this turn")] = None,
    raw: Annotated[bool, typer.Option(help="the exact text of every answer as well")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="as one JSON document")] = False,
) -> None:
    """Show a job: its turns, their attempts, and what was wrong with each answer."""
    from stepladder.cli import view
    from stepladder.cli.desk import at_desk

    job_id = parse_job_id(job)
    overview, turns, wait = at_desk(load_settings(), lambda desk: _found(desk, job_id, turn))
    if as_json:
        say_json(view.as_json(overview, turns))
    else:
        view.print_job(console(), overview, turns, wait, raw=raw)


async def _found(desk: Desk, job_id: UUID, turn: int | None) -> tuple[Overview, list[TurnRecord], Wait | None]:
    overview = await desk.job(job_id)
    turns = [one for one in await desk.reads.turns(job_id) if turn is None or one.ordinal == turn]
    if turn is not None and not turns:
        raise BadInputError(f"job {job_id} has no turn {turn}", remedy=f"it has {overview.turn_count}")
    return overview, turns, await desk.reads.open_wait(job_id)
