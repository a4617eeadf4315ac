"""The progress of a job that runs in this process: lines for what happened, and one line for what it does now."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from stepladder.cli.history import event_markup
from stepladder.cli.output import escape, shorten
from stepladder.schemas.event import EventKind
from stepladder.workflows.transition import (
    Ask,
    Await,
    AwaitChildren,
    AwaitSettlement,
    Finished,
    Hold,
    Resolve,
    Rest,
    RunTool,
    TendChildren,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

    from stepladder.workflows.transition import Transition

MAX_ERRORS = 3
PRINTED = (
    EventKind.ATTEMPT_JUDGED, EventKind.TOOL_RETURNED, EventKind.TOOL_FAILED, EventKind.SIGNAL_TAKEN,
    EventKind.SIGNAL_REFUSED, EventKind.RETRY_SCHEDULED, EventKind.SETTLEMENT_NEEDED, EventKind.SETTLED,
)  # fmt: skip


def print_progress(out: Console, status: Status, transition: Transition) -> None:
    """Print what a transition brought; ``status`` shows what the job does next."""
    errors = {attempt.ordinal: attempt.verdict.errors for attempt in transition.judged if attempt.verdict is not None}
    for event in transition.events:
        if event.kind in PRINTED:
            out.print(f"  {event_markup(event)}")
        if event.kind is EventKind.ATTEMPT_JUDGED:
            for error in errors.get(event.attempt or 0, ())[:MAX_ERRORS]:
                text = f"{error.pointer or '/'}: {error.reason}"
                out.print(f"      {escape(shorten(text))}")
    status.update(escape(_activity(transition)))


def _activity(transition: Transition) -> str:
    match transition.next:
        case Ask(turn, attempt):
            return f"turn {turn.ordinal} {turn.state}: asking the model (attempt {attempt.ordinal})"
        case RunTool(call):
            return f"running tool {call.tool}"
        case Rest(until):
            return f"waiting until {until:%H:%M:%S}"
        case Await(wait):
            return f"waiting for signal {wait.signal}"
        case AwaitSettlement(call):
            return f"waiting for settlement of {call.tool}"
        case Resolve(call) | TendChildren(call) | AwaitChildren(call):
            return f"calling {call.workflow}"
        case Hold():
            return "paused"
        case Finished():
            return f"job {transition.job.status}"
        case _:
            assert_never(transition.next)
