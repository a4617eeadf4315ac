"""What stands between a job's turns, and its history, for people."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rich.table import Table

from stepladder.cli.history import line_of
from stepladder.cli.output import escape, shorten

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from rich.console import Console

    from stepladder.schemas.history import Event, Timeline, ToolVisit, WaitVisit

SHOWN = 60  # characters of a value within a line


def print_timeline(out: Console, timeline: Timeline) -> None:
    """The tools that ran, the waits, and the signals that nobody took, a line each."""
    for call in timeline.tools:
        out.print(f"  visit {call.visit} {escape(call.state)}  tool {escape(call.tool)}{_runs(call)}: {_came(call)}")
    for wait in timeline.waits:
        name = f"{escape(wait.signal)}{' (carried)' if wait.carried else ''}"
        out.print(f"  visit {wait.visit} {escape(wait.state)}  signal {name}: {_answered(wait)}")
    for made in timeline.calls:
        if made.carried:  # those of the job itself stand above, with the jobs that were called
            out.print(f"  visit {made.visit} {escape(made.state)}  call of {escape(made.workflow)} (carried)")
    for signal in timeline.signals:
        if signal.taken_at is None:
            out.print(f"  signal {escape(signal.name)} by {escape(signal.by)}: not taken  {_value(signal.payload)}")


def print_events(out: Console, events: Sequence[Event]) -> None:
    """Every line of the history, with its ordinal."""
    for event in events:
        said = line_of(event) or event.kind.replace("_", " ")
        print_line(out, f"{event.ordinal:>4}  [dim]{event.at:%m-%d %H:%M:%S}[/]", said)


def print_line(out: Console, head: str, said: str) -> None:
    """A line that goes on under its own beginning where there is no room for it."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row(f"  {head}", said)
    out.print(table, soft_wrap=False)


def print_times(out: Console, begun: datetime, ended: datetime | None) -> None:
    took = (
        "" if ended is None else f", ended {ended:%Y-%m-%d %H:%M:%S} UTC after {(ended - begun).total_seconds():.1f} s"
    )
    out.print(f"  created {begun:%Y-%m-%d %H:%M:%S} UTC{took}")


def _runs(call: ToolVisit) -> str:
    return " (carried)" if call.carried else f", {call.runs} runs" if call.runs > 1 else ""


def _came(call: ToolVisit) -> str:
    arguments = _value(call.arguments)
    if call.error is not None:
        return f"{arguments} gave [yellow]{escape(call.error.kind)}[/], {escape(shorten(call.error.message, SHOWN))}"
    return f"{arguments} runs" if call.closed_at is None else f"{arguments} gave {_value(call.result)}"


def _answered(wait: WaitVisit) -> str:
    if wait.closed_at is None:
        return "waits"
    return f"[green]{escape(wait.action or 'taken')}[/] {'' if wait.payload is None else _value(wait.payload)}".rstrip()


def _value(value: object) -> str:
    return escape(shorten(json.dumps(value, ensure_ascii=False, default=str), SHOWN))
