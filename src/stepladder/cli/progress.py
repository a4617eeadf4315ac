"""A job's progress, line by line, and what it is busy with right now."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

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

    from stepladder.schemas.event import HistoryEvent
    from stepladder.workflows.job import Attempt
    from stepladder.workflows.transition import Transition


class Progress:
    """Prints one line for each verdict, tool, wait and end; ``status`` is the line that moves."""

    def __init__(self, out: Console, status: Status) -> None:
        self._out = out
        self._status = status

    def seen(self, step: Transition) -> None:
        """To be called with every step of the job."""
        for attempt in step.judged:
            self._attempt(step, attempt)
        for event in step.events:
            self._event(event)
        self._status.update(_busy(step))

    def say(self, text: str) -> None:
        self._out.print(escape(text))

    def _attempt(self, step: Transition, attempt: Attempt) -> None:
        verdict = attempt.verdict
        if verdict is None:
            return
        state = next((v.state for v in reversed(step.job.visits) if getattr(v, "ordinal", None) == attempt.turn), "")
        colour = "green" if verdict.ok else "yellow"
        why = f" ({verdict.cause})" if verdict.cause else ""
        place = f"turn {attempt.turn} {state}, attempt {attempt.ordinal}"
        self._out.print(f"  {escape(place)}: [{colour}]{verdict.outcome}{escape(why)}[/]")
        for error in verdict.errors[:3]:
            text = f"{error.pointer or '/'}: {error.reason}"
            self._out.print(f"      {_short(text)}")

    def _event(self, event: HistoryEvent) -> None:
        data = event.data
        match event.kind:
            case EventKind.TOOL_RETURNED:
                self._out.print(f"  tool {data['tool']}: [green]returned[/]")
            case EventKind.TOOL_FAILED:
                text = f"{data['kind']}: {data['message']}"
                self._out.print(f"  tool {data['tool']}: [yellow]{_short(text)}[/]")
            case EventKind.SIGNAL_REFUSED:
                self._out.print(f"  signal {data['signal']}: [yellow]refused[/], {_short(str(data['reason']))}")
            case EventKind.SIGNAL_TAKEN:
                self._out.print(f"  signal {data['signal']}: [green]{escape(str(data['action']))}[/]")
            case EventKind.RETRY_SCHEDULED:
                again = "asking" if event.turn is not None else f"running tool {data['tool']}"
                self._out.print(f"  {again} again in {data['after_s']} s")
            case EventKind.SETTLEMENT_NEEDED:
                why = _short(f"{data['kind']}: {data['message']}")
                self._out.print(f"  tool {data['tool']}: [yellow]nobody knows whether it took effect[/], {why}")
            case EventKind.SETTLED:
                took = "took effect" if data["done"] else "did not take effect"
                self._out.print(f"  tool {data['tool']}: [green]settled[/], it {took}, says {_short(str(data['by']))}")
            case _:
                pass


def _short(text: str) -> str:
    return escape(shorten(text))


def _busy(step: Transition) -> str:
    match step.next:
        case Ask(turn, attempt):
            return f"turn {turn.ordinal} {turn.state}: asking the model (attempt {attempt.ordinal})"
        case RunTool(call):
            return f"running tool {call.tool}"
        case Rest(until):
            return f"resting until {until:%H:%M:%S}"
        case Await(wait):
            return f"waiting for signal {wait.signal}"
        case AwaitSettlement(call):
            return f"waiting for somebody to settle {call.tool}"
        case Resolve(call) | TendChildren(call) | AwaitChildren(call):
            return f"calling {call.workflow}"
        case Hold():
            return "paused"
        case Finished():
            return f"job {step.job.status}"
        case _:
            assert_never(step.next)
