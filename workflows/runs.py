"""The runs of one tool call: begun again after an error, or after its worker was lost, as often as is allowed.

What cannot be undone is begun once. Whatever keeps it from coming back makes the job wait for a person.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from stepladder.schemas.event import EventKind
from stepladder.workflows import calls
from stepladder.workflows.job import ToolError
from stepladder.workflows.retry import backoff
from stepladder.workflows.transition import AwaitSettlement, Hold, Rest, RunTool

if TYPE_CHECKING:
    from datetime import datetime

    from stepladder.schemas.jsontypes import JsonObject
    from stepladder.workflows.builder import JobFailure, TransitionBuilder
    from stepladder.workflows.job import ToolCall

MOST_LOST = 3
"""A tool that takes its worker down with it would take all of them down, one after the other. Once is chance, and twice
may be: machines are rebooted, and a neighbour in the same process may have been to blame."""

SAME_AGAIN = ("invalid_arguments", "bad_result")
"""Errors that the same call would run into again: what is wrong stands in the document or in the tool's code."""


def came_back(builder: TransitionBuilder, call: ToolCall, error: ToolError) -> Rest | str | JobFailure:
    """The run came back with an error: a rest before the next one, or the way on from the state."""
    call = replace(call, failed=call.failed + 1)
    until = _again_at(builder, call, error)
    if until is None:
        return calls.failed(builder, call, error)
    builder.put(replace(call, error=error))
    calls.note_failure(builder, call, error)
    after_s = round((until - builder.now).total_seconds(), 3)
    data: JsonObject = {"after_s": after_s, "state": call.state, "tool": call.tool, "run": call.runs + 1}
    builder.note(EventKind.RETRY_SCHEDULED, data)
    builder.change(due_at=until)
    return Rest(until)


def _again_at(builder: TransitionBuilder, call: ToolCall, error: ToolError) -> datetime | None:
    """When the tool is to be run again; None if it is not."""
    if calls.is_unknowable(call) or error.kind in SAME_AGAIN or call.failed >= calls.state_of(builder, call).attempts:
        return None
    until = builder.now + timedelta(seconds=backoff(call.failed, f"{call.key}/{call.failed}"))
    deadline = builder.job.deadline_at
    return until if deadline is None or until < deadline else None


def taken_up(
    builder: TransitionBuilder, call: ToolCall, *, lost: bool
) -> RunTool | Rest | Hold | AwaitSettlement | str | JobFailure:
    """Somebody claimed the job and finds the call open. ``lost`` says that the worker before did not hand it back."""
    if calls.is_unknowable(call):
        return AwaitSettlement(calls.await_settlement(builder, call))
    if call.error is not None and builder.job.due_at is not None and builder.now < builder.job.due_at:
        return Rest(builder.job.due_at)
    if call.error is None and lost:
        call = replace(call, lost=call.lost + 1)
        if call.lost >= MOST_LOST:
            message = f"the worker was lost {call.lost} times while this tool ran"
            return calls.failed(builder, call, ToolError(calls.CUT_OFF.kind, message))
        calls.note_failure(builder, call, calls.CUT_OFF)
    late = builder.late()
    if late is not None:
        builder.put(replace(call, error=call.error or ToolError(late.kind.value, late.detail), closed_at=builder.now))
        return late
    if builder.hold:
        builder.put(replace(call, error=call.error or calls.CUT_OFF))
        builder.change(due_at=builder.now)
        return Hold()
    call = replace(call, runs=call.runs + 1, error=None)
    calls.begin(builder, call)
    return RunTool(call)
