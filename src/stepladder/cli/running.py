"""One job from its document to its end, in this process."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from stepladder.cli.arguments import parse_job_id, parse_json, parse_signals
from stepladder.cli.lint import mention
from stepladder.runner.drive import Driver
from stepladder.schemas.errors import BadInputError
from stepladder.services.submission import check_input, publish, submit
from stepladder.wiring.app import load_kit, load_machine
from stepladder.wiring.system import open_system
from stepladder.workflows.machine import ChildState, WaitState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from stepladder.cli.progress import Progress
    from stepladder.schemas.history import Turn
    from stepladder.schemas.jsontypes import Json
    from stepladder.schemas.responses import Job
    from stepladder.schemas.tool import Kit
    from stepladder.wiring.settings import Settings
    from stepladder.wiring.system import System
    from stepladder.workflows.machine import Machine


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be run: a new job of ``machine``, or the job that ``job_id`` names. ``also`` are published first."""

    kit: Kit
    machine: Machine | None
    job_id: UUID | None
    value: Json
    answers: Mapping[str, list[Json]] = field(default_factory=dict)
    also: tuple[Machine, ...] = ()


def order_of(
    settings: Settings, document: str | None, value: str, job: str | None, signals: list[str], also: Sequence[str]
) -> Order:
    """Checks all that was typed before any server is started."""
    if (document is None) == (job is None):
        raise BadInputError(
            "name a workflow document, or a job to go on with", remedy="stepladder run DOC, or --job JOB"
        )
    answers = parse_signals(signals)
    kit = load_kit(settings.app, document)
    called = tuple(load_machine(other, kit)[0] for other in also)
    if document is None:
        return Order(kit, None, parse_job_id(str(job)), None, answers, called)
    machine, warnings = load_machine(document, kit)
    mention(document, warnings)
    job_input = parse_json(value, "--input")
    check_input(machine, job_input)
    _check_signals(machine, called, answers)
    return Order(kit, machine, None, job_input, answers, called)


def _check_signals(machine: Machine, called: Sequence[Machine], answers: Mapping[str, object]) -> None:
    """Where a workflow is called that was published before, nobody knows here what its jobs wait for."""
    states = [state for one in (machine, *called) for state in one.states.values()]
    if any(isinstance(state, ChildState) and state.workflow not in [one.name for one in called] for state in states):
        return
    names = dict.fromkeys(state.signal for state in states if isinstance(state, WaitState))
    unknown = next((name for name in answers if name not in names), None)
    if unknown is not None:
        message = f"--signal {unknown}: workflow {machine.name} {machine.version} never waits for it"
        raise BadInputError(message, remedy=f"it waits for {', '.join(names) or 'no signal'}")


async def carry_out(
    settings: Settings, url: str, engine_url: str, order: Order, progress: Progress
) -> tuple[Job, tuple[Turn, ...]]:
    async with open_system(url, engine_url, order.kit, settings=settings, observe=progress.seen) as system:
        job_id = await _job(system, order)
        try:
            await Driver(system.runner, system.store, system.reads, order.answers).drive(job_id)
        except asyncio.CancelledError:
            progress.say(f"job {job_id} is handed back; go on with: stepladder run --job {job_id}")
            raise
        done = await system.reads.job(job_id)
        if done is None:
            raise LookupError(f"job {job_id} has vanished from the store")
        return done, await system.reads.turns(job_id)


async def _job(system: System, order: Order) -> UUID:
    for called in order.also:
        await publish(system.store, called)
    if order.machine is not None:
        await publish(system.store, order.machine)
        return (await submit(system.store, order.machine, order.value, datetime.now(UTC))).id
    known = None if order.job_id is None else await system.reads.overview(order.job_id)
    if known is None:
        raise BadInputError(f"there is no job {order.job_id}", remedy="name one of this database's jobs")
    if known.status.final:
        raise BadInputError(f"job {known.id} has ended: {known.status}", remedy=f"see it: stepladder show {known.id}")
    return known.id
