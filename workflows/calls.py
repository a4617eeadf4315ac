"""A tool call's life: its arguments and its key written first, then run, then its result or its error written."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from stepladder.schemas.actor import Actor
from stepladder.schemas.canonical import exact_hash
from stepladder.schemas.event import EventKind
from stepladder.schemas.job import SETTLEMENT, Failure, JobStatus
from stepladder.schemas.tool import Effect
from stepladder.validation.expressions import EvaluationFailure
from stepladder.workflows.job import ToolCall, ToolError, Wait
from stepladder.workflows.machine import ERROR, OK, ToolState, evaluate
from stepladder.workflows.move import Fault
from stepladder.workflows.names import names_of
from stepladder.workflows.step import AwaitSettlement

if TYPE_CHECKING:
    from stepladder.schemas.jsontypes import Json, JsonObject
    from stepladder.workflows.job import Spent
    from stepladder.workflows.move import Move
    from stepladder.workflows.step import Settled

NEVER_BEGUN = ("not_done", "invalid_arguments")
"""Errors after which a call may be begun in a replay even if it cannot be undone: it took no effect, or never ran."""

NOT_DONE = ToolError("not_done", "a person says that it did not take effect")
CANCELLED = ToolError("cancelled", "the job was cancelled before the tool came back; it may have taken effect")
CUT_OFF = ToolError("worker_lost", "its worker was lost, or stopped, while it ran; it may have taken effect")


def call_of(move: Move, state: ToolState) -> tuple[str, JsonObject] | Fault:
    """The tool and the arguments that ``state`` would run with now."""
    names = names_of(move.job)
    chosen = state.chosen_by
    turn = names["turns"].get(chosen) if chosen is not None and isinstance(names["turns"], Mapping) else None
    turn = turn if isinstance(turn, Mapping) else {}
    tool = turn.get("action") if chosen is not None else next(iter(state.tools))
    if not isinstance(tool, str) or tool not in state.tools:
        listed = ", ".join(state.tools)
        return Fault(
            Failure.TRANSITION_DENIED, f"state {state.name} runs {listed}; turn {chosen} chose {str(tool)[:100]!r}"
        )
    arguments = turn.get("arguments", {}) if state.arguments is None else evaluate(state.arguments, names)
    if isinstance(arguments, EvaluationFailure):
        return Fault(Failure.EXPRESSION_ERROR, f"the arguments of state {state.name}: {arguments.reason}")
    if not isinstance(arguments, Mapping):
        return Fault(Failure.EXPRESSION_ERROR, f"the arguments of state {state.name} are no map of names to values")
    return tool, arguments


def open_call(move: Move, state: ToolState) -> ToolCall | AwaitSettlement | str | Fault:
    """Opens a call. An irreversible one runs with the arguments that its wait froze and showed.

    One that another job of the lineage has begun under this key does not run at all: what became of it there holds.
    """
    late = move.late()
    if late is not None:
        return late
    found = _frozen(move, state) or call_of(move, state)
    if isinstance(found, Fault):
        return found
    name, arguments = found
    tool = state.tools[name]
    principal = Actor(move.job.principal, move.job.scopes)
    missing = principal.lacks(tool.permissions)
    if missing:
        said: JsonObject = {"state": state.name, "tool": name, "principal": principal.name, "missing": missing}
        move.note(EventKind.PERMISSION_DENIED, said)
        detail = f"state {state.name} may not run the tool {name}: {_permissions(missing)}, and {principal.name},"
        return Fault(Failure.PERMISSION_DENIED, f"{detail} whose job it is, has no such scope")
    call = ToolCall(
        visit=move.next_visit(),
        state=state.name,
        tool=name,
        effect=tool.effect,
        arguments=arguments,
        key=_key(move, state.name, name, arguments),
        opened_at=move.now,
    )
    spent = move.job.spent.get(call.key) if is_unknowable(call) else None
    if spent is not None:
        return _as_before(move, call, spent)
    begin(move, call)
    return call


def _as_before(move: Move, call: ToolCall, spent: Spent) -> AwaitSettlement | str | Fault:
    call = replace(call, runs=0, carried=True)
    move.put(call)
    move.change(due_at=move.now)
    data: JsonObject = {"state": call.state, "tool": call.tool, "key": call.key, "job": str(spent.job)}
    move.note(EventKind.TOOL_CARRIED, data)
    if not spent.closed:
        message = f"job {spent.job} began this call under the same key, and it has not come back"
        return AwaitSettlement(await_settlement(move, call, ToolError("begun_elsewhere", message)))
    return returned(move, call, spent.result) if spent.error is None else failed(move, call, spent.error)


def _permissions(missing: list[str]) -> str:
    return f"it needs the permission{'' if len(missing) == 1 else 's'} {', '.join(missing)}"


def begin(move: Move, call: ToolCall) -> None:
    """Writes down that the call is about to run."""
    move.put(call)
    move.change(due_at=move.now)
    data: JsonObject = {"state": call.state, "tool": call.tool, "key": call.key, "run": call.runs}
    move.note(EventKind.TOOL_STARTED, data)


def _frozen(move: Move, state: ToolState) -> tuple[str, JsonObject] | None:
    wait = move.job.visits[-1] if move.job.visits else None
    frozen = wait.frozen.get(state.name) if isinstance(wait, Wait) else None
    if not isinstance(frozen, Mapping):
        return None
    tool, arguments = frozen["tool"], frozen["arguments"]
    return (tool, arguments) if isinstance(tool, str) and isinstance(arguments, Mapping) else None


def _key(move: Move, state: str, tool: str, arguments: JsonObject) -> str:
    """The same for the same call in every replay of the lineage, so that a fork cannot take effect twice.

    The tool is part of it, for where the model chooses one a fork may choose another with the same arguments.
    """
    parts = f"{move.job.lineage}/{state}/{move.visits_of(state) + 1}/{tool}/{exact_hash(arguments)}"
    return hashlib.sha256(parts.encode()).hexdigest()[:40]


def is_unknowable(call: ToolCall) -> bool:
    """Whether nobody can know if an open call took effect: it was begun, and may not be begun again."""
    return call.effect is Effect.IRREVERSIBLE


def await_settlement(move: Move, call: ToolCall, error: ToolError = CUT_OFF) -> ToolCall:
    """The job waits for a person who says whether the effect took place. ``error`` is why nobody else knows."""
    if move.job.waiting_for != SETTLEMENT:
        call = replace(call, error=error)
        move.put(call)
        data: JsonObject = {"state": call.state, "tool": call.tool, "key": call.key, **_said(error)}
        move.note(EventKind.SETTLEMENT_NEEDED, data)
    move.change(status=JobStatus.WAITING, waiting_for=SETTLEMENT, due_at=None)
    return call


def settle(move: Move, call: ToolCall, said: Settled) -> ToolCall:
    """Closes the call with what a person says of it."""
    who: JsonObject = {"state": call.state, "tool": call.tool, "key": call.key, "by": said.by, "done": said.done}
    move.note(EventKind.SETTLED, {**who, "result": said.result} if said.done else who)
    # The deadline stood still. What the worker that died took of it cannot be told apart, and counts as waiting.
    move.change(status=JobStatus.RUNNING, waiting_for=None, due_at=move.now, deadline_at=move.after_waiting(call))
    outcome = {"result": said.result, "error": None} if said.done else {"error": NOT_DONE}
    closed = replace(call, closed_at=move.now, **outcome)
    move.put(closed)
    return closed


def settled(move: Move, call: ToolCall, said: Settled) -> str | Fault:
    """Closes the call with what a person says of it, and follows ``ok`` or ``error``."""
    call = settle(move, call, said)
    return returned(move, call, call.result) if call.error is None else failed(move, call, call.error)


def returned(move: Move, call: ToolCall, result: Json) -> str | Fault:
    """Writes the result and follows ``ok``."""
    move.put(replace(call, result=result, closed_at=move.now))
    move.note(EventKind.TOOL_RETURNED, {"state": call.state, "tool": call.tool, "run": call.runs})
    return move.follow(OK, state_of(move, call).edges[OK])


def failed(move: Move, call: ToolCall, error: ToolError) -> str | Fault:
    """Writes the error and follows ``error``, where there is such an edge."""
    move.put(replace(call, error=error, closed_at=move.now))
    note_failure(move, call, error)
    target = state_of(move, call).edges.get(ERROR)
    if target is None:
        said = f"state {call.state}, tool {call.tool}: {error.kind}: {error.message}"
        return Fault(Failure.TOOL_FAILED, f"{said}; the state has no edge `{ERROR}`")
    return move.follow(ERROR, target)


def note_failure(move: Move, call: ToolCall, error: ToolError) -> None:
    data: JsonObject = {"state": call.state, "tool": call.tool, "run": call.runs, **_said(error)}
    move.note(EventKind.TOOL_FAILED, data)


def _said(error: ToolError) -> dict[str, Json]:
    return {"kind": error.kind, "message": error.message}


def state_of(move: Move, call: ToolCall) -> ToolState:
    state = move.machine.states[call.state]
    if not isinstance(state, ToolState):
        raise TypeError(f"state {call.state} runs no tool")
    return state
