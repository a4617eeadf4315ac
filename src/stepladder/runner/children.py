"""What a runner does for a child call: finds the workflow, starts the children, and checks on them."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from stepladder.models.child_jobs import NewChild, cancel_children, children_of, start_children
from stepladder.schemas.document import Workflow
from stepladder.validation.schema import Schema, compile_schema
from stepladder.workflows.child_calls import child_id, child_lineage
from stepladder.workflows.events import ChildrenSeen, Resolved, Unresolved
from stepladder.workflows.visits import ChildFailure, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from uuid import UUID

    from stepladder.models.records import Claim, WorkflowRow
    from stepladder.models.store import Store
    from stepladder.workflows.job import Job
    from stepladder.workflows.transition import Resolve, TendChildren
    from stepladder.workflows.visits import ChildCall

MAX_VIOLATIONS = 5


async def resolve(store: Store, action: Resolve) -> Resolved | Unresolved:
    """Finds the called workflow and checks the inputs. This process may lack its tools."""
    call = action.call
    row = await store.workflow(call.workflow, action.version)
    if row is None:
        which = call.workflow if action.version is None else f"{call.workflow} {action.version}"
        retired = " that is not retired" if action.version is None else ""
        return Unresolved(ToolError("unknown_workflow", f"no workflow {which}{retired} is published"))
    schema = compile_schema(_document(row).input)
    if not isinstance(schema, Schema):
        raise TypeError(f"the input schema of workflow {row.name} {row.version} cannot be used")
    return Resolved(row.version, tuple(_refused(row, schema, call)))


def _document(row: WorkflowRow) -> Workflow:
    return Workflow.model_validate(row.document)


def _refused(row: WorkflowRow, schema: Schema, call: ChildCall) -> list[ChildFailure]:
    refused = []
    for index, value in enumerate(call.inputs, 1):
        broken = schema.violations(value)
        if broken:
            listed = "; ".join(f"{one.pointer or '/'} {one.reason}" for one in broken[:MAX_VIOLATIONS])
            message = f"the input does not fit workflow {row.name} {row.version}: {listed}"
            refused.append(ChildFailure(index, "bad_input", message))
    return refused


async def tend(
    store: Store, claim: Claim, job: Job, action: TendChildren, now: datetime, notify: Callable[[Sequence[UUID]], None]
) -> ChildrenSeen | None:
    """Starts or cancels children, and reads the status of all. None: another worker has the parent."""
    call = action.call
    if action.stop:
        notify(await cancel_children(store, job.id))
    if action.start:
        started = await _start(store, claim, job, action, now)
        if started is None:
            return None
        notify(started)
    return ChildrenSeen(await children_of(store, job.id, call.visit))


async def _start(store: Store, claim: Claim, job: Job, action: TendChildren, now: datetime) -> list[UUID] | None:
    call = action.call
    row = None if call.version is None else await store.workflow(call.workflow, call.version)
    if row is None:
        raise LookupError(f"workflow {call.workflow} {call.version} of a call is not in the store")
    limits = _document(row).limits
    children = [
        NewChild(
            id=child_id(job, call, index),
            lineage=child_lineage(job, call, index),
            index=index,
            input=call.inputs[index - 1],
            token_budget=limits.token_budget,
            deadline_at=None if limits.deadline_s is None else now + timedelta(seconds=limits.deadline_s),
            created_at=now,
        )
        for index in action.start
    ]
    return await start_children(store, claim, call.visit, row.name, row.version, children)
