"""``stepladder experiment`` and ``stepladder stability``: variants of a workflow on the same inputs, compared."""

from __future__ import annotations

import asyncio
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from stepladder.cli.arguments import parse_changes, parse_json, refusal
from stepladder.cli.options import App, AsJson
from stepladder.cli.output import console, print_json, progress_bar
from stepladder.schemas.errors import BadInputError
from stepladder.validation.parse import NotJson, parse
from stepladder.wiring.files import read_text
from stepladder.wiring.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stepladder.cli.session import Session
    from stepladder.schemas.experiment import Experiment, ExperimentHead, ExperimentKind
    from stepladder.schemas.jsontypes import Json, JsonObject
    from stepladder.schemas.tool import Kit
    from stepladder.services.replays import Base

POLL_S = 0.5
LISTED = 20
MAX_TIMES = 100

Waiting = Annotated[bool, typer.Option("--wait/--no-wait", help="until every job has ended, or waits for a person")]
Effects = Annotated[bool, typer.Option("--effects", help="run tools that are not read-only, and other workflows, too")]
Version = Annotated[int | None, typer.Option(min=1, help="else the highest that is not retired")]

experiment = typer.Typer(
    help="Run two variants of a workflow on the same inputs, and compare them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


class Seeds(StrEnum):
    """The seed of every turn."""

    VARY = "vary"
    SAME = "same"


@experiment.command("run")
def run(
    workflow: Annotated[str, typer.Argument(metavar="NAME", help="a published workflow")],
    inputs: Annotated[str, typer.Option(metavar="FILE.jsonl", help="one input a line, as JSON")],
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="what b changes; version=N is another one")
    ] = None,
    base: Annotated[list[str] | None, typer.Option("--base-set", metavar="PATH=VALUE", help="what a changes")] = None,
    version: Version = None,
    name: Annotated[str, typer.Option(help="a name to recognize it by")] = "",
    effects: Effects = False,
    wait: Waiting = True,
    app: App = None,
    as_json: AsJson = False,
) -> None:
    """Run a workflow (a) and a variant of it (b) on the same inputs. Workers run its jobs after all others."""
    from stepladder.cli.session import in_session
    from stepladder.schemas.experiment import ExperimentKind
    from stepladder.services.experiments import FIRST, SECOND
    from stepladder.services.replays import Base
    from stepladder.wiring.app import kit_of

    settings = load_settings(app=app)
    variants = {FIRST: parse_changes(base or []), SECOND: parse_changes(changes or [])}
    if variants[FIRST] == variants[SECOND]:
        message = "both variants are the same"
        raise BadInputError(message, remedy="say what b changes: --set decoding=prompt, or --set version=2")
    values = _inputs(inputs)
    kit = kit_of(settings)

    async def work(session: Session) -> Experiment:
        at = Base(workflow, await _version(session, workflow, version))
        head = await _order(session, kit, ExperimentKind.COMPARISON, at, variants, values, name=name, effects=effects)
        return await _report(session, head, wait=wait)

    _print(in_session(settings, work), as_json=as_json)


def stability(
    target: Annotated[str, typer.Argument(metavar="NAME|JOB", help="a published workflow, or a job to repeat")],
    value: Annotated[str | None, typer.Option("--input", metavar="JSON|@FILE", help="of a workflow: its input")] = None,
    times: Annotated[int, typer.Option(min=2, max=MAX_TIMES, help="how often")] = 10,
    seeds: Annotated[Seeds, typer.Option(help="a new seed each time, or the document's")] = Seeds.VARY,
    version: Version = None,
    effects: Effects = False,
    wait: Waiting = True,
    app: App = None,
    as_json: AsJson = False,
) -> None:
    """Run the same job N times, on the workers, and show how often each field of its outputs agrees."""
    from stepladder.cli.session import in_session
    from stepladder.schemas.experiment import ExperimentKind
    from stepladder.services.experiments import FIRST
    from stepladder.services.replays import Base
    from stepladder.wiring.app import kit_of

    settings = load_settings(app=app)
    job_id = _uuid(target)
    if job_id is not None and (value is not None or version is not None):
        flag = "--input" if value is not None else "--version"
        raise BadInputError(f"a job has its own: no {flag}", remedy="name the workflow in place of the job")
    given: Json = {} if value is None else parse_json(value, "--input")
    kit = kit_of(settings)

    async def work(session: Session) -> Experiment:
        if job_id is None:
            base, question = Base(target, await _version(session, target, version)), given
        else:
            job = await session.job(job_id)
            base, question = Base(job.workflow, job.version, job.variant), job.input
        kind, vary = ExperimentKind.STABILITY, seeds is Seeds.VARY
        head = await _order(session, kit, kind, base, {FIRST: {}}, [question] * times, effects=effects, vary_seeds=vary)
        return await _report(session, head, wait=wait)

    _print(in_session(settings, work), as_json=as_json)


@experiment.command("show")
def show(
    experiment_id: Annotated[str | None, typer.Argument(metavar="[ID]", help="else the newest are listed")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the results so far of an experiment, or of a run of `stepladder stability`."""
    from stepladder.cli.session import in_session
    from stepladder.models.experiments import find_experiment

    settings = load_settings()
    wanted = None if experiment_id is None else _uuid(experiment_id)

    async def work(session: Session) -> Experiment:
        found = None if wanted is None else await find_experiment(session.store.database, wanted)
        if found is None:
            said = f"{experiment_id!r} is not the id of an experiment" if wanted is None else f"no experiment {wanted}"
            raise BadInputError(said, remedy="list them: stepladder experiment show")
        return await _report(session, found, wait=False)

    if experiment_id is None:
        _list(as_json=as_json)
    else:
        _print(in_session(settings, work), as_json=as_json)


async def _version(session: Session, workflow: str, version: int | None) -> int:
    """The version to run. Raises ``BadInputError`` if there is none."""
    row = await session.store.workflow(workflow, version)
    if row is None:
        said = workflow if version is None else f"{workflow} {version}"
        raise BadInputError(f"no workflow {said} is published", remedy="publish it: stepladder publish DOC")
    return row.version


async def _order(
    session: Session,
    kit: Kit,
    kind: ExperimentKind,
    base: Base,
    variants: Mapping[str, JsonObject],
    inputs: Sequence[Json],
    *,
    name: str = "",
    effects: bool,
    vary_seeds: bool = False,
) -> ExperimentHead:
    """Writes the experiment and its jobs."""
    from stepladder.schemas.actor import LOCAL
    from stepladder.services.experiments import EFFECTS, Ordered, draft, order_experiment
    from stepladder.workflows.replay import Refused

    head = draft(kind, base, variants, LOCAL, await session.store.database.now(), name=name, samples=len(inputs))
    replays = session.replays(kit)
    found = await order_experiment(session.store, replays, head, inputs, LOCAL, effects=effects, vary_seeds=vary_seeds)
    if isinstance(found, Refused):
        error = refusal(found)
        raise BadInputError(str(error), remedy="add --effects if that is intended") if found.field == EFFECTS else error
    if not isinstance(found, Ordered):
        raise LookupError("the experiment was not written")
    session.notify(found.job_ids)
    return head


async def _report(session: Session, head: ExperimentHead, *, wait: bool) -> Experiment:
    from stepladder.models.experiments import at_rest, read_experiment

    with progress_bar("running", "on the workers; Ctrl-C leaves", shown=wait) as progress:
        task = progress.add_task("", total=None)
        while wait:
            done, jobs = await at_rest(session.store.database, head.id)
            progress.update(task, completed=done, total=jobs)
            if done == jobs:
                break
            await asyncio.sleep(POLL_S)
    return await read_experiment(session.store.database, head)


def _print(found: Experiment, *, as_json: bool) -> None:
    from stepladder.cli.comparison import print_experiment

    if as_json:
        print_json(found)
    else:
        print_experiment(console(), found)


def _list(*, as_json: bool) -> None:
    from stepladder.cli.comparison import experiments_table
    from stepladder.cli.session import in_session
    from stepladder.models.experiments import list_experiments
    from stepladder.schemas.experiment import Experiments

    found = in_session(load_settings(), lambda session: list_experiments(session.store.database, LISTED))
    if as_json:
        print_json(Experiments(experiments=found))
    elif found:
        console().print(experiments_table(found), soft_wrap=False)
    else:
        console(error=True).print("no experiments yet: stepladder experiment run NAME --inputs FILE.jsonl")


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _inputs(file: str) -> list[Json]:
    """Each line that is not blank. Raises ``BadInputError`` for the first one that is not JSON."""
    values: list[Json] = []
    for number, line in enumerate(read_text(Path(file)).splitlines(), 1):
        if not line.strip():
            continue
        parsed = parse(line.encode("utf-8", "surrogateescape"))
        if isinstance(parsed, NotJson):
            reason = parsed.reason.replace("the answer", "it")
            raise BadInputError(f"{file}, line {number} is not JSON: {reason}", remedy="write one JSON value per line")
        values.append(parsed.value)
    if not values:
        raise BadInputError(f"{file} has no input", remedy="write one JSON value per line")
    return values
