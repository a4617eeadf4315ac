"""Taking in a workflow and a job: everything is checked before anything is written."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from stepladder.models.ids import uuid7
from stepladder.models.records import Publication
from stepladder.runner.machines import output_schemas
from stepladder.schemas.errors import BadInputError
from stepladder.workflows.job import Job

if TYPE_CHECKING:
    from datetime import datetime

    from stepladder.models.store import Store
    from stepladder.schemas.jsontypes import Json, JsonObject
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
        lines = "\n".join(f"  {violation.pointer or '/'}: {violation.reason}" for violation in violations)
        message = f"the input does not fit workflow {machine.name} {machine.version}:\n{lines}"
        raise BadInputError(message, remedy="mend the input; nothing was stored")


async def submit(
    store: Store,
    machine: Machine,
    value: Json,
    now: datetime,
    *,
    priority: int = 0,
    metadata: JsonObject | None = None,
    scopes: frozenset[str] | None = None,
) -> Job:
    """Writes a job of a published workflow. Raises ``BadInputError`` for an input that does not fit."""
    check_input(machine, value)
    job_id = uuid7()
    deadline_at = None if machine.deadline_s is None else now + timedelta(seconds=machine.deadline_s)
    job = Job(
        id=job_id,
        lineage=job_id,
        input=value,
        created_at=now,
        token_budget=machine.token_budget,
        deadline_at=deadline_at,
        scopes=scopes,
    )
    await store.submit(job, machine.name, machine.version, priority=priority, metadata=metadata)
    return job
