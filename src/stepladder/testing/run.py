"""Running your own workflow in a test: a real store, a scripted engine, and the runner of production."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepladder.lint.check import check_document
from stepladder.runner.drive import Driver
from stepladder.runner.machines import compiled
from stepladder.schemas.actor import LOCAL
from stepladder.schemas.document import Workflow
from stepladder.schemas.finding import BadDocumentError
from stepladder.sdk.kit import registered
from stepladder.services.submission import publish, submit
from stepladder.wiring.system import open_system

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stepladder.schemas.actor import Actor
    from stepladder.schemas.history import Event, TurnVisit
    from stepladder.schemas.jsontypes import Json
    from stepladder.schemas.responses import Job
    from stepladder.schemas.tool import Kit
    from stepladder.workflows.machine import Machine
    from stepladder.workflows.transition import Transition


@dataclass(frozen=True, slots=True)
class Ran:
    """A job that has ended or waits for a signal, with its history."""

    job: Job
    turns: tuple[TurnVisit, ...]
    events: tuple[Event, ...]
    transitions: tuple[Transition, ...]


async def run(
    workflow: Workflow | str,
    value: Json = None,
    *,
    engine_url: str,
    database_url: str,
    signals: Mapping[str, Sequence[Json]] | None = None,
    kit: Kit | None = None,
    principal: Actor = LOCAL,
    sender: Actor = LOCAL,
    others: Sequence[Workflow | str] = (),
) -> Ran:
    """Run one job of ``workflow``, a document's text or its Python form, until it ends or waits.

    ``signals`` are sent when the job waits for them. ``kit`` defaults to all registered tools and rules. The job
    belongs to ``principal``, whose scopes its tools may use; the signals come from ``sender``. ``others`` are workflows
    that it calls; ``transitions`` includes those of its child jobs.

    Raises ``BadDocumentError``, ``BadInputError`` or ``UnreachableError``.
    """
    kit = registered() if kit is None else kit
    machine, called = _machine(workflow, kit), [_machine(other, kit) for other in others]
    transitions: list[Transition] = []
    async with open_system(database_url, engine_url, kit, observe=transitions.append) as system:
        for one in (*called, machine):
            await publish(system.store, one)
        given = {} if value is None else value
        job = await submit(system.store, machine, given, await system.store.database.now(), principal=principal)
        await Driver(system.runner, system.store, system.reads, signals or {}, sender).drive(job.id)
        overview = await system.reads.overview(job.id)
        if overview is None:
            raise LookupError(f"job {job.id} has vanished from the store")
        turns, events = await system.reads.turns(job.id), await system.reads.events(job.id)
    return Ran(overview, turns, events, tuple(transitions))


def _machine(workflow: Workflow | str, kit: Kit) -> Machine:
    if isinstance(workflow, Workflow):
        return compiled(workflow, kit)
    checked = check_document(workflow, kit)
    if checked.machine is None:
        raise BadDocumentError("the workflow", checked.errors)
    return checked.machine
