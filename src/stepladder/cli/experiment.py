"""``stepladder experiment``: two variants of a workflow on the same inputs, and how they compare."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from stepladder.cli.arguments import parse_changes
from stepladder.cli.output import console, say_json
from stepladder.schemas.errors import BadInputError
from stepladder.validation.parse import NotJson, parse
from stepladder.wiring.files import read_text
from stepladder.wiring.settings import load_settings

if TYPE_CHECKING:
    from stepladder.cli.desk import Desk
    from stepladder.models.experiments import Experiment
    from stepladder.schemas.jsontypes import Json
    from stepladder.schemas.tool import Kit
    from stepladder.services.experiments import Plan
    from stepladder.wiring.settings import Settings

LOOK_S = 0.5
LISTED = 20

Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="until every job has ended, or waits for somebody")]
Effects = Annotated[bool, typer.Option("--effects", help="run tools that are not read-only, and other workflows, too")]
AsJson = Annotated[bool, typer.Option("--json", help="as one JSON document")]
App = Annotated[str | None, typer.Option(help="Python module that registers tools and rules")]

experiment = typer.Typer(
    help="Run two variants of a workflow on the same inputs, beside each other, and compare them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@experiment.command("run")
def run(
    workflow: Annotated[str, typer.Argument(metavar="NAME", help="a published workflow")],
    inputs: Annotated[str, typer.Option(metavar="FILE.jsonl", help="one input a line, as JSON")],
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="what b changes; version=N is another one")
    ] = None,
    base: Annotated[list[str] | None, typer.Option("--base-set", metavar="PATH=VALUE", help="what a changes")] = None,
    version: Annotated[int | None, typer.Option(min=1, help="else the highest that is not retired")] = None,
    name: Annotated[str, typer.Option(help="by which you know it again")] = "",
    effects: Effects = False,
    wait: Wait = True,
    app: App = None,
    as_json: AsJson = False,
) -> None:
    """Run a workflow (a) and a variant of it (b) on the same inputs. The workers take its jobs, after all others."""
    from stepladder.schemas.experiment import ExperimentKind
    from stepladder.services.experiments import FIRST, SECOND, Plan
    from stepladder.services.replays import Base
    from stepladder.wiring.app import kit_of

    settings = load_settings(app=app)
    arms = {FIRST: parse_changes(base or []), SECOND: parse_changes(changes or [])}
    if arms[FIRST] == arms[SECOND]:
        message = "both variants are the same"
        raise BadInputError(message, remedy="say what b changes: --set decoding=prompt, or --set version=2")
    values = _inputs(inputs)
    kit = kit_of(settings)

    def plan(found: int) -> Plan:
        return Plan(ExperimentKind.COMPARISON, Base(workflow, found), arms, values, name, effects)

    async def work(desk: Desk) -> Experiment:
        return await order(desk, kit, plan(await current(desk, workflow, version)))

    conclude(settings, at_the_desk(settings, work), wait=wait, as_json=as_json)


@experiment.command("show")
def show(
    experiment_id: Annotated[str | None, typer.Argument(metavar="[ID]", help="else the newest are listed")] = None,
    as_json: AsJson = False,
) -> None:
    """Show what came of an experiment, or of a run of `stepladder stability`, as far as it has come."""
    settings = load_settings()
    if experiment_id is None:
        _list(settings, as_json=as_json)
        return
    try:
        wanted = UUID(experiment_id)
    except ValueError:
        message = f"{experiment_id!r} is no id of an experiment"
        raise BadInputError(message, remedy="list them: stepladder experiment show") from None

    async def work(desk: Desk) -> Experiment:
        from stepladder.models.experiments import find_experiment

        found = await find_experiment(desk.store.database, wanted)
        if found is None:
            raise BadInputError(f"there is no experiment {wanted}", remedy="list them: stepladder experiment show")
        return found

    conclude(settings, at_the_desk(settings, work), wait=False, as_json=as_json)


def at_the_desk(settings: Settings, work: Any) -> Experiment:
    from stepladder.cli.desk import at_desk

    found: Experiment = at_desk(settings, work)
    return found


async def current(desk: Desk, workflow: str, version: int | None) -> int:
    """The version that is meant. Raises ``BadInputError`` where there is none."""
    row = await desk.store.workflow(workflow, version)
    if row is None:
        said = workflow if version is None else f"{workflow} {version}"
        raise BadInputError(f"no workflow {said} is published", remedy="publish it: stepladder publish DOC")
    return row.version


async def order(desk: Desk, kit: Kit, plan: Plan) -> Experiment:
    """Writes the experiment and its jobs."""
    from stepladder.cli.replay import refusal, replays_of
    from stepladder.models.experiments import experiment_of
    from stepladder.schemas.actor import LOCAL
    from stepladder.services.experiments import Ordered, order_experiment
    from stepladder.workflows.replay import Refused

    found = await order_experiment(desk.store, replays_of(desk, kit), plan, LOCAL, datetime.now(UTC))
    if isinstance(found, Refused):
        error = refusal(found)
        raise BadInputError(str(error), remedy="--effects, if that is meant") if found.field == "effects" else error
    if not isinstance(found, Ordered):
        raise LookupError("the experiment was not written")
    await desk.notify(found.job_ids[0])  # who takes one takes the others, too
    written = await experiment_of(desk.store.database, found.job_ids[0])
    if written is None:
        raise LookupError("the experiment has vanished from the store")
    return written


def conclude(settings: Settings, found: Experiment, *, wait: bool, as_json: bool) -> None:
    """Waits for the jobs, if that is wanted, and shows what came of them."""
    from stepladder.cli.contrast import print_experiment
    from stepladder.cli.desk import at_desk

    shown = at_desk(settings, lambda desk: _shown(desk, found, wait=wait))
    if as_json:
        say_json(shown)
    else:
        print_experiment(console(), shown)


async def _shown(desk: Desk, found: Experiment, *, wait: bool) -> dict[str, Any]:
    from stepladder.api.experiments import experiment_json

    if wait:
        await _rest(desk, found.id)
    return await experiment_json(desk.store.database, desk.reads, found)


async def _rest(desk: Desk, experiment_id: UUID) -> None:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from stepladder.models.experiments import at_rest

    columns = (TextColumn("running"), BarColumn(), MofNCompleteColumn(), TextColumn("by the workers; Ctrl-C leaves"))
    with Progress(*columns, console=console(error=True), transient=True) as progress:
        task = progress.add_task("", total=None)
        while True:
            done, jobs = await at_rest(desk.store.database, experiment_id)
            progress.update(task, completed=done, total=jobs)
            if done == jobs:
                return
            await asyncio.sleep(LOOK_S)


def _list(settings: Settings, *, as_json: bool) -> None:
    from stepladder.api.experiments import head_json
    from stepladder.cli.contrast import experiments_table
    from stepladder.cli.desk import at_desk
    from stepladder.models.experiments import list_experiments

    found = at_desk(settings, lambda desk: list_experiments(desk.store.database, LISTED))
    if as_json:
        say_json({"experiments": [head_json(one) for one in found]})
    elif found:
        console().print(experiments_table(found), soft_wrap=False)
    else:
        console(error=True).print("there is no experiment yet: stepladder experiment run NAME --inputs FILE.jsonl")


def _inputs(file: str) -> list[Json]:
    """Each line that is not blank. Raises ``BadInputError`` for the first one that is no JSON."""
    values: list[Json] = []
    for number, line in enumerate(read_text(Path(file)).splitlines(), 1):
        if not line.strip():
            continue
        parsed = parse(line.encode("utf-8", "surrogateescape"))
        if isinstance(parsed, NotJson):
            reason = parsed.reason.replace("the answer", "it")
            raise BadInputError(f"{file}, line {number} is no JSON: {reason}", remedy="write one JSON value a line")
        values.append(parsed.value)
    if not values:
        raise BadInputError(f"{file} has no input", remedy="write one JSON value a line")
    return values
