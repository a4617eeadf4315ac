"""``stepladder run``: one job, in this process, from its document to its end."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from stepladder.cli.arguments import parse_json, parse_signals
from stepladder.cli.lint import print_warning_count
from stepladder.cli.options import App, AsJson, Input, LogLevel, Model, OldJob
from stepladder.cli.output import Exit, console, escape, hint, print_json
from stepladder.schemas.errors import BadInputError
from stepladder.schemas.job import CHILDREN, SETTLEMENT, JobStatus
from stepladder.wiring.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from uuid import UUID

    from stepladder.schemas.history import TurnVisit
    from stepladder.schemas.jsontypes import Json
    from stepladder.schemas.responses import Job
    from stepladder.schemas.tool import Kit
    from stepladder.wiring.settings import Settings
    from stepladder.wiring.system import System
    from stepladder.workflows.machine import Machine
    from stepladder.workflows.transition import Transition


@dataclass(frozen=True, slots=True)
class _Request:
    """A new job of ``machine``, or the existing job ``job_id``. The machines in ``called`` are published first."""

    kit: Kit
    machine: Machine | None
    job_id: UUID | None
    input: Json
    signals: Mapping[str, list[Json]]
    called: tuple[Machine, ...]


def run(
    document: Annotated[str | None, typer.Argument(metavar="DOC", help="YAML or JSON file, or MODULE:NAME")] = None,
    value: Input = "{}",
    signal: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=JSON", help="the payload when the job waits for signal NAME; may be repeated"),
    ] = None,
    also: Annotated[
        list[str] | None, typer.Option(metavar="DOC", help="a document that it calls; may be repeated")
    ] = None,
    job: OldJob = None,
    app: App = None,
    model: Model = None,
    log_level: LogLevel = None,
    as_json: AsJson = False,
) -> None:
    """Run one job of a workflow in this process, without a broker."""
    from stepladder.cli.progress import print_progress
    from stepladder.cli.view import print_job
    from stepladder.wiring import servers
    from stepladder.wiring.logs import configure_logs

    settings = load_settings(app=app, model=model, log_level=log_level)
    configure_logs(settings.log_level or "warning")
    request = _checked(settings, document, value, job, signal or [], also or [])
    progress = console(error=True)
    with ExitStack() as stack:
        status = stack.enter_context(progress.status("starting"))
        url = stack.enter_context(servers.database(settings, status.update))
        engine_url = stack.enter_context(servers.engine(settings, status.update))

        def observe(transition: Transition) -> None:
            print_progress(progress, status, transition)

        done, turns = asyncio.run(_run(settings, url, engine_url, request, observe))
    if as_json:
        print_json({**dict(done), "turns": turns})
    else:
        print_job(console(), done, turns)
    _print_hints(done)
    raise typer.Exit(Exit.FAILED if done.status in (JobStatus.FAILED, JobStatus.CANCELLED) else Exit.DONE)


def _print_hints(job: Job) -> None:
    hint(f"see more: stepladder show {job.id} --raw")
    if job.waiting_for == SETTLEMENT:
        hint(f"then continue: stepladder run --job {job.id}")
    elif job.waiting_for == CHILDREN:
        hint(f"it waits for jobs that it called: stepladder jobs --parent {job.id}")
    elif job.status is JobStatus.WAITING:
        hint(f"continue: stepladder run --job {job.id} --signal {job.waiting_for}=JSON")


def _checked(
    settings: Settings, document: str | None, value: str, job_id: UUID | None, signals: list[str], also: Sequence[str]
) -> _Request:
    """Checks everything before any server is started. Raises ``BadInputError``."""
    from stepladder.services.submission import check_input
    from stepladder.wiring.app import load_kit, load_machine

    if (document is None) == (job_id is None):
        raise BadInputError("name a workflow document or a job", remedy="stepladder run DOC, or --job JOB")
    payloads = parse_signals(signals)
    kit = load_kit(settings.app, document)
    called = tuple(load_machine(other, kit)[0] for other in also)
    if document is None:
        return _Request(kit, None, job_id, None, payloads, called)
    machine, warnings = load_machine(document, kit)
    print_warning_count(document, warnings)
    job_input = parse_json(value, "--input")
    check_input(machine, job_input)
    _check_signals(machine, called, payloads)
    return _Request(kit, machine, None, job_input, payloads, called)


def _check_signals(machine: Machine, called: Sequence[Machine], payloads: Mapping[str, object]) -> None:
    """Raises ``BadInputError`` for a signal that none of the machines waits for."""
    from stepladder.workflows.machine import ChildState, WaitState

    states = [state for one in (machine, *called) for state in one.states.values()]
    known = [one.name for one in called]
    if any(isinstance(state, ChildState) and state.workflow not in known for state in states):
        return  # a workflow that was published earlier may wait for anything
    names = dict.fromkeys(state.signal for state in states if isinstance(state, WaitState))
    unknown = next((name for name in payloads if name not in names), None)
    if unknown is not None:
        message = f"--signal {unknown}: workflow {machine.name} {machine.version} never waits for it"
        raise BadInputError(message, remedy=f"it waits for {', '.join(names) or 'no signal'}")


async def _run(
    settings: Settings, url: str, engine_url: str, request: _Request, observe: Callable[[Transition], None]
) -> tuple[Job, tuple[TurnVisit, ...]]:
    from stepladder.runner.drive import Driver
    from stepladder.wiring.system import open_system

    async with open_system(url, engine_url, request.kit, settings=settings, observe=observe) as system:
        job_id = await _job(system, request)
        try:
            await Driver(system.runner, system.store, system.reads, request.signals).drive(job_id)
        except asyncio.CancelledError:
            console(error=True).print(escape(f"job {job_id} released; continue with: stepladder run --job {job_id}"))
            raise
        job = await system.reads.job(job_id)
        if job is None:
            raise LookupError(f"job {job_id} has vanished from the store")
        return job, await system.reads.turns(job_id)


async def _job(system: System, request: _Request) -> UUID:
    from stepladder.services.submission import publish, submit

    for machine in (*request.called, *([request.machine] if request.machine else [])):
        await publish(system.store, machine)
    if request.machine is not None:
        return (await submit(system.store, request.machine, request.input, await system.store.database.now())).id
    job = None if request.job_id is None else await system.reads.overview(request.job_id)
    if job is None:
        raise BadInputError(f"there is no job {request.job_id}", remedy="list the jobs with `stepladder jobs`")
    if job.status.final:
        raise BadInputError(f"job {job.id} has ended: {job.status}", remedy=f"see it: stepladder show {job.id}")
    return job.id
