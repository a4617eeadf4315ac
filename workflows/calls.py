"""A tool call's life: its arguments and its key written first, then run, then its result or its error written."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from stepladder.schemas.canonical import exact_hash
from stepladder.schemas.event import EventKind
from stepladder.schemas.job import SETTLEMENT, Failure, JobStatus
from stepladder.schemas.tool import Effect
from stepladder.validation.expressions import EvaluationFailure
from stepladder.workflows.job import ToolCall, ToolError, Wait
from stepladder.workflows.machine import ERROR, OK, ToolState, evaluate
from stepladder.workflows.move import Fault
from stepladder.workflows.names import names_of

if TYPE_CHECKING:
    from stepladder.schemas.jsontypes import Json, JsonObject
    from stepladder.workflows.move import Move

NOT_DONE = ToolError("not_done", "a person says that it did not take effect")
CANCELLED = ToolError("cancelled", "the job was cancelled before the tool came back; it may have taken effect")


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


def open_call(move: Move, state: ToolState) -> ToolCall | Fault:
    """Opens a call. An irreversible one runs with the arguments that its wait froze and showed."""
    late = move.late()
    if late is not None:
        return late
    found = _frozen(move, state) or call_of(move, state)
    if isinstance(found, Fault):
        return found
    name, arguments = found
    tool = state.tools[name]
    missing = [] if move.job.scopes is None else [word for word in tool.permissions if word not in move.job.scopes]
    if missing:
        detail = f"state {state.name} may not run {name}: the job's principal lacks {', '.join(missing)}"
        return Fault(Failure.PERMISSION_DENIED, detail)
    call = ToolCall(
        visit=move.next_visit(),
        state=state.name,
        tool=name,
        effect=tool.effect,
        arguments=arguments,
        key=_key(move, state.name, name, arguments),
        opened_at=move.now,
    )
    move.put(call)
    move.change(due_at=move.now)
    move.note(EventKind.TOOL_STARTED, {"state": state.name, "tool": name, "key": call.key})
    return call


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


def await_settlement(move: Move, call: ToolCall) -> None:
    """The job waits for a person who says whether the effect took place."""
    if move.job.waiting_for != SETTLEMENT:
        move.note(EventKind.SETTLEMENT_NEEDED, {"state": call.state, "tool": call.tool, "key": call.key})
    move.change(status=JobStatus.WAITING, waiting_for=SETTLEMENT, due_at=None)


def settled(move: Move, call: ToolCall, result: Json, *, done: bool) -> str | Fault:
    move.note(EventKind.SETTLED, {"state": call.state, "tool": call.tool, "done": done})
    # The deadline stood still. What the worker that died took of it cannot be told apart, and counts as waiting.
    move.change(status=JobStatus.RUNNING, waiting_for=None, due_at=move.now, deadline_at=move.after_waiting(call))
    return returned(move, call, result) if done else failed(move, call, NOT_DONE)


def returned(move: Move, call: ToolCall, result: Json) -> str | Fault:
    """Writes the result and follows ``ok``."""
    move.put(replace(call, result=result, closed_at=move.now))
    move.note(EventKind.TOOL_RETURNED, {"state": call.state, "tool": call.tool})
    return move.follow(OK, _state(move, call).edges[OK])


def failed(move: Move, call: ToolCall, error: ToolError) -> str | Fault:
    """Writes the error and follows ``error``, where there is such an edge."""
    move.put(replace(call, error=error, closed_at=move.now))
    data = {"state": call.state, "tool": call.tool, "kind": error.kind, "message": error.message}
    move.note(EventKind.TOOL_FAILED, data)
    target = _state(move, call).edges.get(ERROR)
    if target is None:
        return Fault(Failure.TOOL_FAILED, f"state {call.state}, tool {call.tool}: {error.kind}: {error.message}")
    return move.follow(ERROR, target)


def _state(move: Move, call: ToolCall) -> ToolState:
    state = move.machine.states[call.state]
    if not isinstance(state, ToolState):
        raise TypeError(f"state {call.state} runs no tool")
    return state
