"""``stepladder stability``: the same job many times, and how often each field comes out the same."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from stepladder.cli.arguments import parse_json
from stepladder.cli.experiment import App, AsJson, Effects, Wait, at_the_desk, conclude, current, order
from stepladder.schemas.errors import BadInputError
from stepladder.wiring.settings import load_settings

if TYPE_CHECKING:
    from stepladder.cli.desk import Desk
    from stepladder.models.experiments import Experiment
    from stepladder.schemas.jsontypes import Json

MOST_TIMES = 100


class Seeds(StrEnum):
    """What every turn is asked with."""

    VARY = "vary"
    SAME = "same"


def stability(
    target: Annotated[str, typer.Argument(metavar="NAME|JOB", help="a published workflow, or a job to repeat")],
    value: Annotated[str | None, typer.Option("--input", metavar="JSON|@FILE", help="of a workflow: its input")] = None,
    times: Annotated[int, typer.Option(min=2, max=MOST_TIMES, help="how often")] = 10,
    seeds: Annotated[Seeds, typer.Option(help="another seed each time, or what the document says")] = Seeds.VARY,
    version: Annotated[int | None, typer.Option(min=1, help="else the highest that is not retired")] = None,
    effects: Effects = False,
    wait: Wait = True,
    app: App = None,
    as_json: AsJson = False,
) -> None:
    """Run the same job N times, on the workers, and show how often each field of its outputs agrees."""
    from stepladder.schemas.experiment import ExperimentKind
    from stepladder.services.experiments import FIRST, Plan
    from stepladder.services.replays import Base
    from stepladder.wiring.app import kit_of

    settings = load_settings(app=app)
    job_id = _job_id(target)
    if job_id is not None and (value is not None or version is not None):
        flag = "--input" if value is not None else "--version"
        raise BadInputError(f"a job has its own: no {flag}", remedy="name the workflow in place of the job")
    given = None if value is None else parse_json(value, "--input")
    kit = kit_of(settings)

    async def what(desk: Desk) -> tuple[Base, Json]:
        if job_id is None:
            return Base(target, await current(desk, target, version)), {} if given is None else given
        job = await desk.job(job_id)
        return Base(job.workflow, job.version, job.variant), job.input

    async def work(desk: Desk) -> Experiment:
        base, ask = await what(desk)
        plan = Plan(
            ExperimentKind.STABILITY,
            base,
            {FIRST: {}},
            [ask] * times,
            effects=effects,
            vary_seeds=seeds is Seeds.VARY,
        )
        return await order(desk, kit, plan)

    conclude(settings, at_the_desk(settings, work), wait=wait, as_json=as_json)


def _job_id(target: str) -> UUID | None:
    """A workflow's name is no UUID, but for one that somebody made to look like it."""
    try:
        return UUID(target)
    except ValueError:
        return None
