"""``stepladder run``: one job, in this process, from its document to its end."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from stepladder.cli import view
from stepladder.cli.arguments import parse_job_id, parse_json, parse_signals
from stepladder.cli.output import Exit, console, say_json
from stepladder.cli.progress import Progress
from stepladder.runner.drive import Driver
from stepladder.runner.submission import check_input, publish, submit
from stepladder.schemas.errors import BadInputError
from stepladder.schemas.job import JobStatus
from stepladder.wiring import servers
from stepladder.wiring.app import load_kit, load_machine
from stepladder.wiring.logs import configure_logs
from stepladder.wiring.settings import load_settings
from stepladder.wiring.system import open_system
from stepladder.workflows.machine import WaitState

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from stepladder.models.reads import Overview, TurnRecord
    from stepladder.schemas.jsontypes import Json
    from stepladder.schemas.tool import Kit
    from stepladder.wiring.settings import Settings
    from stepladder.wiring.system import System
    from stepladder.workflows.machine import Machine


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be run: a new job of ``machine``, or the job that ``job_id`` names."""

    kit: Kit
    machine: Machine | None
    job_id: UUID | None
    value: Json
    answers: Mapping[str, list[Json]] = field(default_factory=dict)


def run(
    document: Annotated[str | None, typer.Argument(metavar="DOC", help="YAML or JSON file, or MODULE:NAME")] = None,
    value: Annotated[str, typer.Option("--input", metavar="JSON|@FILE", help="the job's input")] = "{}",
    signal: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=JSON", help="what to answer when the job waits for signal NAME; may be repeated"),
    ] = None,
    job: Annotated[str | None, typer.Option(help="go on with this job, in place of a new one")] = None,
    app: Annotated[str | None, typer.Option(help="Python module, or .py file, that registers tools and rules")] = None,
    model: Annotated[str | None, typer.Option(help="model to ask for; else the first that the engine lists")] = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="the job and its turns as one JSON document")] = False,
) -> None:
    """Run one job of a workflow here and now, without a broker."""
    settings = load_settings(app=app, model=model, log_level=log_level)
    configure_logs(settings.log_level or "warning")
    order = _order(settings, document, value, job, signal or [])
    progress = console(error=True)
    with ExitStack() as stack:
        status = stack.enter_context(progress.status("starting"))
        url = stack.enter_context(servers.database(settings, status.update))
        engine_url = stack.enter_context(servers.engine(settings, status.update))
        done, turns = asyncio.run(_run(settings, url, engine_url, order, Progress(progress, status)))
    if as_json:
        say_json(view.as_json(done, turns))
    else:
        view.print_job(console(), done, turns)
    progress.print(f"look further: stepladder show {done.id} --raw", style="dim")
    if done.status is JobStatus.WAITING:
        progress.print(f"go on: stepladder run --job {done.id} --signal {done.waiting_for}=JSON", style="dim")
    raise typer.Exit(Exit.FAILED if done.status in (JobStatus.FAILED, JobStatus.CANCELLED) else Exit.DONE)


def _order(settings: Settings, document: str | None, value: str, job: str | None, signals: list[str]) -> Order:
    """Checks all that was typed before any server is started."""
    if (document is None) == (job is None):
        raise BadInputError(
            "name a workflow document, or a job to go on with", remedy="stepladder run DOC, or --job JOB"
        )
    answers = parse_signals(signals)
    kit = load_kit(settings.app, document)
    if document is None:
        return Order(kit, None, parse_job_id(str(job)), None, answers)
    machine, _ = load_machine(document, kit)
    job_input = parse_json(value, "--input")
    check_input(machine, job_input)
    _check_signals(machine, answers)
    return Order(kit, machine, None, job_input, answers)


def _check_signals(machine: Machine, answers: Mapping[str, object]) -> None:
    names = dict.fromkeys(state.signal for state in machine.states.values() if isinstance(state, WaitState))
    unknown = next((name for name in answers if name not in names), None)
    if unknown is not None:
        message = f"--signal {unknown}: workflow {machine.name} {machine.version} never waits for it"
        raise BadInputError(message, remedy=f"it waits for {', '.join(names) or 'no signal'}")


async def _run(
    settings: Settings, url: str, engine_url: str, order: Order, progress: Progress
) -> tuple[Overview, tuple[TurnRecord, ...]]:
    key = settings.engine_api_key
    async with open_system(
        url,
        engine_url,
        order.kit,
        api_key=None if key is None else key.get_secret_value(),
        model=settings.model,
        observe=progress.seen,
    ) as system:
        job_id = await _job(system, order)
        try:
            await Driver(system.runner, system.store, system.reads, order.answers).drive(job_id)
        except asyncio.CancelledError:
            progress.say(f"job {job_id} is handed back; go on with: stepladder run --job {job_id}")
            raise
        done = await system.reads.overview(job_id)
        if done is None:
            raise LookupError(f"job {job_id} has vanished from the store")
        return done, await system.reads.turns(job_id)


async def _job(system: System, order: Order) -> UUID:
    if order.machine is not None:
        await publish(system.store, order.machine)
        return (await submit(system.store, order.machine, order.value, datetime.now(UTC))).id
    known = None if order.job_id is None else await system.reads.overview(order.job_id)
    if known is None:
        raise BadInputError(f"there is no job {order.job_id}", remedy="name one of this database's jobs")
    if known.status.final:
        raise BadInputError(f"job {known.id} has ended: {known.status}", remedy=f"see it: stepladder show {known.id}")
    return known.id
