"""What somebody wants done, checked against its workflow: a job that can be written, or all that is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from stepladder.models.ids import uuid7
from stepladder.models.records import NewJob
from stepladder.schemas.actor import LOCAL
from stepladder.workflows.job import Job

if TYPE_CHECKING:
    from datetime import datetime

    from stepladder.schemas.actor import Actor
    from stepladder.schemas.answer import Violation
    from stepladder.schemas.jsontypes import Json, JsonObject
    from stepladder.workflows.machine import Machine


@dataclass(frozen=True, slots=True)
class Order:
    """A job as it is asked for. ``deadline_s`` (seconds) and ``token_budget`` win over what the workflow says."""

    workflow: str
    input: Json
    version: int | None = None
    priority: int = 0
    deadline_s: float | None = None
    token_budget: int | None = None
    metadata: JsonObject = field(default_factory=dict)


def prepare(machine: Machine, order: Order, now: datetime, principal: Actor = LOCAL) -> NewJob | tuple[Violation, ...]:
    """The job of an order, or every place where its input breaks the schema, by pointer into the input.

    The job is ``principal``'s, and its tools may use what that may.
    """
    violations = machine.input.violations(order.input)
    if violations:
        return violations
    job_id = uuid7()
    seconds = machine.deadline_s if order.deadline_s is None else order.deadline_s
    job = Job(
        id=job_id,
        lineage=job_id,
        input=order.input,
        created_at=now,
        token_budget=machine.token_budget if order.token_budget is None else order.token_budget,
        deadline_at=None if seconds is None else now + timedelta(seconds=seconds),
        principal=principal.name,
        scopes=principal.scopes,
    )
    return NewJob(job, machine.name, machine.version, order.priority, order.metadata)
