"""A child call's life: its inputs written first, its workflow found, its children started a few at a time, and its
result or its error written once all that were started have ended.

It continues only when no child is running, so that the next state never runs at the same time as the children.
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

from stepladder.schemas.event import EventKind
from stepladder.schemas.job import CHILDREN, Failure, JobStatus
from stepladder.validation.expressions import EvaluationFailure
from stepladder.workflows.job import JobFailure
from stepladder.workflows.lists import items_of
from stepladder.workflows.machine import ERROR, OK, ChildState, evaluate
from stepladder.workflows.names import EACH, names_of
from stepladder.workflows.transition import AwaitChildren, Resolve, TendChildren
from stepladder.workflows.visits import ChildCall, ChildFailure, ToolError, VisitStatus

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from stepladder.schemas.jsontypes import Json, JsonObject
    from stepladder.workflows.builder import TransitionBuilder
    from stepladder.workflows.job import Child, Job

DEEPEST = 8
"""How many calls may lead to a job, one by the other: people nest two or three, and what calls itself has no end."""

TOLD = 5
CANCELLED = ToolError("cancelled", "the job was cancelled before its children ended; they are asked to end too")


def open_call(builder: TransitionBuilder, state: ChildState) -> Resolve | str | JobFailure:
    """Opens a call with the inputs of all its children. A call over an empty list is done at once."""
    late = builder.late()
    if late is not None:
        return late
    inputs = _inputs(builder, state)
    if isinstance(inputs, JobFailure):
        return inputs
    call = ChildCall(
        builder.next_visit(), state.name, builder.now, state.workflow, inputs, status=VisitStatus.RESOLVING
    )
    builder.put(call)
    builder.change(due_at=builder.now)
    data: JsonObject = {"state": state.name, "workflow": state.workflow, "children": len(inputs)}
    builder.note(EventKind.CALL_STARTED, data)
    if builder.job.depth >= DEEPEST:
        message = f"{DEEPEST} calls lead to this job already, each from the one before; a workflow may call itself"
        return _failed(builder, call, ToolError("too_deep", message))
    return Resolve(call, state.version) if inputs else _close(builder, call, ())


def _inputs(builder: TransitionBuilder, state: ChildState) -> tuple[Json, ...] | JobFailure:
    names = names_of(builder.job)
    scopes: list[dict[str, Json]] = [names]
    if state.over is not None:
        items = items_of(builder, state.over, state.name, state.at_most)
        if isinstance(items, JobFailure):
            return items
        count = len(items)
        scopes = [names | {EACH: {"index": n, "count": count, "item": one}} for n, one in enumerate(items, 1)]
    inputs: list[Json] = []
    for index, scope in enumerate(scopes, 1):
        value = evaluate(state.inputs, scope)
        if isinstance(value, EvaluationFailure):
            which = "" if state.over is None else f" for item {index}"
            return JobFailure(Failure.EXPRESSION_ERROR, f"the input of state {state.name}{which}: {value.reason}")
        inputs.append(value)
    return tuple(inputs)


def claimed(builder: TransitionBuilder, call: ChildCall) -> Resolve | TendChildren:
    """A worker claimed the job and finds the call open."""
    return Resolve(call, state_of(builder, call).version) if call.version is None else TendChildren(call)


def resolved(
    builder: TransitionBuilder, call: ChildCall, version: int, refused: tuple[ChildFailure, ...]
) -> TendChildren | AwaitChildren | str | JobFailure:
    """The workflow is there. A bad input keeps all children from starting, unless failures are collected."""
    call = replace(call, version=version, failed=refused, status=VisitStatus.RUNNING)
    builder.put(call)
    return seen(builder, call, ())


def unresolved(builder: TransitionBuilder, call: ChildCall, error: ToolError) -> str | JobFailure:
    """There is no such workflow."""
    return _failed(builder, call, error)


def seen(
    builder: TransitionBuilder, call: ChildCall, children: Sequence[Child]
) -> TendChildren | AwaitChildren | str | JobFailure:
    """What to do next, given the children as they are now."""
    state = state_of(builder, call)
    running = [child for child in children if not child.status.final]
    stopping = not state.collect and bool(_failures(call, children))
    if stopping and any(not child.cancel_requested for child in running):
        return TendChildren(call, stop=True)
    known = {child.index for child in children} | {failure.index for failure in call.failed}
    room = 0 if stopping else max(0, state.concurrency - len(running))
    start = tuple(index for index in range(1, len(call.inputs) + 1) if index not in known)[:room]
    if start:
        return TendChildren(call, start)
    return _wait(builder, call) if running else _close(builder, call, children)


def _wait(builder: TransitionBuilder, call: ChildCall) -> AwaitChildren:
    builder.change(status=JobStatus.WAITING, waiting_for=CHILDREN, due_at=None)
    return AwaitChildren(call)


def _failures(call: ChildCall, children: Sequence[Child]) -> tuple[ChildFailure, ...]:
    """By index, those that failed of themselves before those that were cancelled."""
    ended = [child for child in children if child.status.final and child.status is not JobStatus.SUCCEEDED]
    found = sorted((*call.failed, *map(_failure, ended)), key=lambda failure: failure.index)
    return tuple(sorted(found, key=lambda failure: failure.kind == CANCELLED.kind))


def _failure(child: Child) -> ChildFailure:
    kind = CANCELLED.kind if child.failure is None else child.failure.value
    detail = f": {child.failure_detail}" if child.failure_detail else ""
    return ChildFailure(child.index, kind, f"job {child.id} {child.status}{detail}")


def _close(builder: TransitionBuilder, call: ChildCall, children: Sequence[Child]) -> str | JobFailure:
    state = state_of(builder, call)
    failures = _failures(call, children)
    results = {child.index: child.result for child in children if child.status is JobStatus.SUCCEEDED}
    call = replace(call, failed=failures)
    if failures and not state.collect:
        first = failures[0]
        which = "" if state.over is None else f"child {first.index} of {len(call.inputs)}: "
        return _failed(builder, call, ToolError(first.kind, which + first.message))
    if state.over is None:
        return _returned(builder, replace(call, result=results[1]))
    gave: list[Json] = [results.get(index) for index in range(1, len(call.inputs) + 1)]
    error = ToolError("children_failed", _told(failures, len(gave))) if failures else None
    return _returned(builder, replace(call, result=gave, error=error))


def _told(failures: Sequence[ChildFailure], count: int) -> str:
    listed = "; ".join(f"child {one.index}: {one.kind}" for one in failures[:TOLD])
    more = f"; and {len(failures) - TOLD} more" if len(failures) > TOLD else ""
    return f"{len(failures)} of {count} gave no result: {listed}{more}"


def _returned(builder: TransitionBuilder, call: ChildCall) -> str:
    data: JsonObject = {"state": call.state, "workflow": call.workflow, "failed": len(call.failed)}
    builder.note(EventKind.CALL_RETURNED, data)
    return _leave(builder, call, OK)


def _failed(builder: TransitionBuilder, call: ChildCall, error: ToolError) -> str:
    data: JsonObject = {"state": call.state, "workflow": call.workflow, "kind": error.kind, "message": error.message}
    builder.note(EventKind.CALL_FAILED, data)
    return _leave(builder, replace(call, error=error), ERROR)


def _leave(builder: TransitionBuilder, call: ChildCall, word: str) -> str:
    builder.put(call.close(builder.now))
    # The deadline stood still: a child has its own.
    builder.change(
        status=JobStatus.RUNNING, waiting_for=None, deadline_at=builder.after_waiting(call), due_at=builder.now
    )
    return builder.follow(word, state_of(builder, call).edges[word])


def child_id(job: Job, call: ChildCall, index: int) -> UUID:
    """The same however often a child is started, so that a second start finds the first."""
    return uuid.uuid5(job.id, f"child/{call.visit}/{index}")


def child_lineage(job: Job, call: ChildCall, index: int) -> UUID:
    """The same in every replay of the caller, so that a fork of it leads to the same keys of side effects."""
    nth = sum(visit.state == call.state and visit.visit <= call.visit for visit in job.visits)
    return uuid.uuid5(job.lineage, f"child/{call.state}/{nth}/{index}")


def state_of(builder: TransitionBuilder, call: ChildCall) -> ChildState:
    state = builder.machine.states[call.state]
    if not isinstance(state, ChildState):
        raise TypeError(f"state {call.state} calls no workflow")
    return state
