"""Taking in a workflow and a job: everything is checked before anything is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepladder.models.records import NewJob, Publication, Retired
from stepladder.runner.machines import output_schemas
from stepladder.schemas.actor import LOCAL
from stepladder.schemas.errors import BadInputError
from stepladder.services.orders import Order, prepare

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from stepladder.models.records import WorkflowRow
    from stepladder.models.store import Store
    from stepladder.schemas.actor import Actor
    from stepladder.schemas.answer import Violation
    from stepladder.schemas.jsontypes import Json, JsonObject
    from stepladder.workflows.job import Job
    from stepladder.workflows.machine import Machine


async def publish(store: Store, machine: Machine) -> Publication:
    """Publishes a compiled workflow under its name and version; the same definition again is no second one.

    Raises ``BadInputError`` where another definition stands there already.
    """
    published = await store.publish(machine.name, machine.version, machine.hash, machine.document.definition())
    if published is Publication.DEFINITION_CHANGED:
        raise BadInputError(
            f"workflow {machine.name} {machine.version} is published with another definition",
            remedy=f"a published version never changes: write `version: {machine.version + 1}`",
        )
    await store.keep_schemas(output_schemas(machine))
    return published


def check_input(machine: Machine, value: Json) -> None:
    """Raises ``BadInputError`` with every place where the input breaks the workflow's schema."""
    violations = machine.input.violations(value)
    if violations:
        raise _misfit(machine, violations)


async def submit(
    store: Store,
    machine: Machine,
    value: Json,
    now: datetime,
    *,
    priority: int = 0,
    metadata: JsonObject | None = None,
    principal: Actor = LOCAL,
) -> Job:
    """Writes a job of a published workflow.

    Raises ``BadInputError`` for an input that does not fit, and for a version that is retired.
    """
    order = Order(machine.name, value, machine.version, priority, metadata=metadata or {})
    new = prepare(machine, order, now, principal)
    if not isinstance(new, NewJob):
        raise _misfit(machine, new)
    if isinstance(await store.submit_many([new]), Retired):
        message, remedy = retired(machine.name, machine.version, await store.workflow(machine.name))
        raise BadInputError(message, remedy=remedy)
    return new.job


def retired(name: str, version: int, current: WorkflowRow | None) -> tuple[str, str]:
    """What is said of a version that no new jobs are made of, and what to do; ``current`` is the one that is named
    where no version is."""
    message = f"version {version} of workflow {name} is retired"
    if current is None:
        return f"{message}, and so are all others", f"publish a new version, or: stepladder unretire {name} {version}"
    return f"{message}; the current one is {current.version}", f"name version {current.version}, or none"


def _misfit(machine: Machine, violations: Sequence[Violation]) -> BadInputError:
    lines = "\n".join(f"  {violation.pointer or '/'}: {violation.reason}" for violation in violations)
    message = f"the input does not fit workflow {machine.name} {machine.version}:\n{lines}"
    return BadInputError(message, remedy="mend the input; nothing was stored")
