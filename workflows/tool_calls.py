"""A tool call's life: its arguments and its key written first, then run, then its result or its error written."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from stepladder.schemas.actor import Actor
from stepladder.schemas.canonical import exact_hash
from stepladder.schemas.event import EventKind
from stepladder.schemas.job import SETTLEMENT, Failure, JobStatus
from stepladder.validation.expressions import EvaluationFailure
from stepladder.workflows.job import JobFailure
from stepladder.workflows.machine import ERROR, OK, ToolState, evaluate
from stepladder.workflows.names import names_of
from stepladder.workflows.retry import backoff
from stepladder.workflows.transition import AwaitSettlement, Hold, Rest, RunTool
from stepladder.workflows.visits import SignalWait, ToolCall, ToolError, VisitStatus

if TYPE_CHECKING:
    from datetime import datetime

    from stepladder.schemas.jsontypes import Json, JsonObject
    from stepladder.workflows.builder import TransitionBuilder
    from stepladder.workflows.events import Settled
    from stepladder.workflows.job import Spent


NOT_DONE = ToolError("not_done", "a person says that it did not take effect")
CANCELLED = ToolError("cancelled", "the job was cancelled before the tool came back; it may have taken effect")
CUT_OFF = ToolError("worker_lost", "its worker was lost, or stopped, while it ran; it may have taken effect")

MOST_LOST = 3
"""A tool that takes its worker down with it would take all of them down, one after the other. Once is chance, and twice
may be: machines are rebooted, and a neighbour in the same process may have been to blame."""

SAME_AGAIN = ("invalid_arguments", "bad_result")
"""Errors that the same call would run into again: the cause is in the document or in the tool's code."""


def call_of(builder: TransitionBuilder, state: ToolState) -> tuple[str, JsonObject] | JobFailure:
    """The tool and the arguments that ``state`` would run with now."""
    names = names_of(builder.job)
    chosen = state.chosen_by
    turn = names["turns"].get(chosen) if chosen is not None and isinstance(names["turns"], Mapping) else None
    turn = turn if isinstance(turn, Mapping) else {}
    tool = turn.get("action") if chosen is not None else next(iter(state.tools))
    if not isinstance(tool, str) or tool not in state.tools:
        listed = ", ".join(state.tools)
        return JobFailure(
            Failure.TRANSITION_DENIED, f"state {state.name} runs {listed}; turn {chosen} chose {str(tool)[:100]!r}"
        )
    arguments = turn.get("arguments", {}) if state.arguments is None else evaluate(state.arguments, names)
    if isinstance(arguments, EvaluationFailure):
        return JobFailure(Failure.EXPRESSION_ERROR, f"the arguments of state {state.name}: {arguments.reason}")
    if not isinstance(arguments, Mapping):
        return JobFailure(
            Failure.EXPRESSION_ERROR, f"the arguments of state {state.name} are no map of names to values"
        )
    return tool, arguments


def open_call(builder: TransitionBuilder, state: ToolState) -> ToolCall | AwaitSettlement | str | JobFailure:
    """Opens a call. An irreversible one runs with the arguments that its wait froze and showed.

    One that another job of the lineage has begun under this key does not run at all: what became of it there holds.
    """
    late = builder.late()
    if late is not None:
        return late
    found = _frozen(builder, state) or call_of(builder, state)
    if isinstance(found, JobFailure):
        return found
    name, arguments = found
    tool = state.tools[name]
    principal = Actor(builder.job.principal, builder.job.scopes)
    missing = principal.lacks(tool.permissions)
    if missing:
        said: JsonObject = {"state": state.name, "tool": name, "principal": principal.name, "missing": missing}
        builder.note(EventKind.PERMISSION_DENIED, said)
        detail = f"state {state.name} may not run the tool {name}: {_permissions(missing)}, and {principal.name},"
        return JobFailure(Failure.PERMISSION_DENIED, f"{detail} whose job it is, has no such scope")
    call = ToolCall(
        visit=builder.next_visit(),
        state=state.name,
        tool=name,
        effect=tool.effect,
        arguments=arguments,
        key=_key(builder, state.name, name, arguments),
        opened_at=builder.now,
    )
    spent = builder.job.spent.get(call.key) if call.irreversible else None
    if spent is not None:
        return _as_before(builder, call, spent)
    begin(builder, call)
    return call


def _as_before(builder: TransitionBuilder, call: ToolCall, spent: Spent) -> AwaitSettlement | str | JobFailure:
    call = replace(call, runs=0, carried=True)
    builder.put(call)
    builder.change(due_at=builder.now)
    data: JsonObject = {"state": call.state, "tool": call.tool, "key": call.key, "job": str(spent.job)}
    builder.note(EventKind.TOOL_CARRIED, data)
    if not spent.closed:
        message = f"job {spent.job} began this call under the same key, and it has not come back"
        return AwaitSettlement(await_settlement(builder, call, ToolError("begun_elsewhere", message)))
    return returned(builder, call, spent.result) if spent.error is None else failed(builder, call, spent.error)


def _permissions(missing: list[str]) -> str:
    return f"it needs the permission{'' if len(missing) == 1 else 's'} {', '.join(missing)}"


def begin(builder: TransitionBuilder, call: ToolCall) -> None:
    """Writes down that the call is about to run."""
    builder.put(call)
    builder.change(due_at=builder.now)
    data: JsonObject = {"state": call.state, "tool": call.tool, "key": call.key, "run": call.runs}
    builder.note(EventKind.TOOL_STARTED, data)


def _frozen(builder: TransitionBuilder, state: ToolState) -> tuple[str, JsonObject] | None:
    wait = builder.job.visits[-1] if builder.job.visits else None
    frozen = wait.frozen.get(state.name) if isinstance(wait, SignalWait) else None
    if not isinstance(frozen, Mapping):
        return None
    tool, arguments = frozen["tool"], frozen["arguments"]
    return (tool, arguments) if isinstance(tool, str) and isinstance(arguments, Mapping) else None


def _key(builder: TransitionBuilder, state: str, tool: str, arguments: JsonObject) -> str:
    """The same for the same call in every replay of the lineage, so that a fork cannot take effect twice.

    The tool is part of it, since in a fork the model may choose another tool with the same arguments.
    """
    parts = f"{builder.job.lineage}/{state}/{builder.visits_of(state) + 1}/{tool}/{exact_hash(arguments)}"
    return hashlib.sha256(parts.encode()).hexdigest()[:40]


def came_back(builder: TransitionBuilder, call: ToolCall, error: ToolError) -> Rest | str | JobFailure:
    """The run returned an error: back off before the next one, or leave the state."""
    call = replace(call, failed=call.failed + 1)
    until = _again_at(builder, call, error)
    if until is None:
        return failed(builder, call, error)
    builder.put(replace(call, error=error, status=VisitStatus.BACKING_OFF))
    note_failure(builder, call, error)
    after_s = round((until - builder.now).total_seconds(), 3)
    data: JsonObject = {"after_s": after_s, "state": call.state, "tool": call.tool, "run": call.runs + 1}
    builder.note(EventKind.RETRY_SCHEDULED, data)
    builder.change(due_at=until)
    return Rest(until)


def _again_at(builder: TransitionBuilder, call: ToolCall, error: ToolError) -> datetime | None:
    """When the tool is to be run again; None if it is not."""
    if call.irreversible or error.kind in SAME_AGAIN or call.failed >= state_of(builder, call).attempts:
        return None
    until = builder.now + timedelta(seconds=backoff(call.failed, f"{call.key}/{call.failed}"))
    deadline = builder.job.deadline_at
    return until if deadline is None or until < deadline else None


def claimed(
    builder: TransitionBuilder, call: ToolCall, *, lost: bool
) -> RunTool | Rest | Hold | AwaitSettlement | str | JobFailure:
    """A worker claimed the job and finds the call open. ``lost``: the previous worker did not release it."""
    if call.irreversible:
        return AwaitSettlement(await_settlement(builder, call))
    backing_off = call.status is VisitStatus.BACKING_OFF
    if backing_off and builder.job.due_at is not None and builder.now < builder.job.due_at:
        return Rest(builder.job.due_at)
    if lost and not backing_off:
        call = replace(call, lost=call.lost + 1)
        if call.lost >= MOST_LOST:
            message = f"the worker was lost {call.lost} times while this tool ran"
            return failed(builder, call, ToolError(CUT_OFF.kind, message))
        note_failure(builder, call, CUT_OFF)
    late = builder.late()
    if late is not None:
        builder.put(call.close(builder.now, error=call.error or ToolError(late.kind.value, late.detail)))
        return late
    if builder.hold:
        builder.put(replace(call, error=call.error or CUT_OFF, status=VisitStatus.BACKING_OFF))
        builder.change(due_at=builder.now)
        return Hold()
    call = replace(call, runs=call.runs + 1, error=None, status=VisitStatus.RUNNING)
    begin(builder, call)
    return RunTool(call)


def await_settlement(builder: TransitionBuilder, call: ToolCall, error: ToolError = CUT_OFF) -> ToolCall:
    """The job waits for a person to settle whether the effect took place. ``error`` says why it is unknown."""
    if call.status is not VisitStatus.SETTLEMENT:
        call = replace(call, error=error, status=VisitStatus.SETTLEMENT)
        builder.put(call)
        data: JsonObject = {"state": call.state, "tool": call.tool, "key": call.key, **_said(error)}
        builder.note(EventKind.SETTLEMENT_NEEDED, data)
    builder.change(status=JobStatus.WAITING, waiting_for=SETTLEMENT, due_at=None)
    return call


def settle(builder: TransitionBuilder, call: ToolCall, said: Settled) -> ToolCall:
    """Closes the call with a person's settlement."""
    who: JsonObject = {"state": call.state, "tool": call.tool, "key": call.key, "by": said.by, "done": said.done}
    builder.note(EventKind.SETTLED, {**who, "result": said.result} if said.done else who)
    # The deadline was suspended. The time that the lost worker used of it is unknown, and counts as waiting.
    builder.change(
        status=JobStatus.RUNNING, waiting_for=None, due_at=builder.now, deadline_at=builder.after_waiting(call)
    )
    outcome = {"result": said.result, "error": None} if said.done else {"error": NOT_DONE}
    closed = call.close(builder.now, **outcome)
    builder.put(closed)
    return closed


def settled(builder: TransitionBuilder, call: ToolCall, said: Settled) -> str | JobFailure:
    """Closes the call with a person's settlement, and follows ``ok`` or ``error``."""
    call = settle(builder, call, said)
    return returned(builder, call, call.result) if call.error is None else failed(builder, call, call.error)


def returned(builder: TransitionBuilder, call: ToolCall, result: Json) -> str | JobFailure:
    """Writes the result and follows ``ok``."""
    builder.put(call.close(builder.now, result=result))
    builder.note(EventKind.TOOL_RETURNED, {"state": call.state, "tool": call.tool, "run": call.runs})
    return builder.follow(OK, state_of(builder, call).edges[OK])


def failed(builder: TransitionBuilder, call: ToolCall, error: ToolError) -> str | JobFailure:
    """Writes the error and follows the edge ``error``, if there is one."""
    builder.put(call.close(builder.now, error=error))
    note_failure(builder, call, error)
    target = state_of(builder, call).edges.get(ERROR)
    if target is None:
        said = f"state {call.state}, tool {call.tool}: {error.kind}: {error.message}"
        return JobFailure(Failure.TOOL_FAILED, f"{said}; the state has no edge `{ERROR}`")
    return builder.follow(ERROR, target)


def note_failure(builder: TransitionBuilder, call: ToolCall, error: ToolError) -> None:
    data: JsonObject = {"state": call.state, "tool": call.tool, "run": call.runs, **_said(error)}
    builder.note(EventKind.TOOL_FAILED, data)


def _said(error: ToolError) -> dict[str, Json]:
    return {"kind": error.kind, "message": error.message}


def state_of(builder: TransitionBuilder, call: ToolCall) -> ToolState:
    state = builder.machine.states[call.state]
    if not isinstance(state, ToolState):
        raise TypeError(f"state {call.state} runs no tool")
    return state
