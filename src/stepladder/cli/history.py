"""A job's history for people: events, visits and replays, a line each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepladder.cli.output import coloured, escape, short_json, shorten
from stepladder.schemas.event import EventKind
from stepladder.schemas.event_text import event_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from rich.console import Console

    from stepladder.schemas.event import HistoryEvent
    from stepladder.schemas.history import Event, Timeline, ToolVisit, WaitVisit
    from stepladder.schemas.responses import Job

SHOWN = 60  # characters of a value within a line
MAX_REPLAYS = 10

QUIET = (EventKind.TURN_STARTED, EventKind.TURN_ACCEPTED, EventKind.TOOL_STARTED, EventKind.LIST_STARTED)
"""Events that the next one repeats with its outcome."""

_GREEN = (EventKind.TOOL_RETURNED, EventKind.CALL_RETURNED, EventKind.SIGNAL_TAKEN, EventKind.SETTLED)
_RED = (EventKind.TURN_FAILED, EventKind.PERMISSION_DENIED, EventKind.JOB_FAILED)
_YELLOW = (
    EventKind.JOB_TAKEN_OVER, EventKind.ATTEMPT_ABANDONED, EventKind.TURN_DEGRADED, EventKind.TOOL_FAILED,
    EventKind.CALL_FAILED, EventKind.SIGNAL_REFUSED, EventKind.WAIT_TIMED_OUT, EventKind.SETTLEMENT_NEEDED,
)  # fmt: skip
_COLOURS = dict.fromkeys(_GREEN, "green") | dict.fromkeys(_RED, "red") | dict.fromkeys(_YELLOW, "yellow")


def event_markup(event: HistoryEvent | Event) -> str:
    """What happened, as markup."""
    colour = _COLOURS.get(event.kind)
    if event.kind is EventKind.ATTEMPT_JUDGED:
        colour = "green" if event.data["outcome"] == "valid" else "yellow"
    text = escape(event_text(event))
    return text if colour is None else f"[{colour}]{text}[/]"


def print_events(out: Console, events: Sequence[Event]) -> None:
    """The whole history, with ordinals."""
    for event in events:
        print_line(out, f"{event.ordinal:>4}  [dim]{event.at:%m-%d %H:%M:%S}[/]", event_markup(event))


def print_line(out: Console, head: str, text: str) -> None:
    """A line that wraps under its own text."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(f"  {head}", text)
    out.print(grid, soft_wrap=False)


def print_timeline(out: Console, timeline: Timeline) -> None:
    """The tools that ran and the waits by their visit, then the signals that no wait took."""
    lines = [(tool.visit, tool.state, _tool(tool)) for tool in timeline.tools]
    lines += [(wait.visit, wait.state, _wait(wait)) for wait in timeline.waits]
    lines += [
        (call.visit, call.state, f"call of {escape(call.workflow)} (carried)")
        for call in timeline.calls
        if call.carried  # the job's own calls are listed with its children
    ]
    for visit, state, text in sorted(lines):
        out.print(f"  visit {visit} {escape(state)}  {text}")
    for signal in timeline.signals:
        if signal.taken_at is None:
            payload = short_json(signal.payload, SHOWN)
            out.print(f"  signal {escape(signal.name)} by {escape(signal.by)}: not taken  {payload}")


def _tool(visit: ToolVisit) -> str:
    runs = " (carried)" if visit.carried else f", {visit.runs} runs" if visit.runs > 1 else ""
    call = f"tool {escape(visit.tool)}{runs}: {short_json(visit.arguments, SHOWN)}"
    if visit.error is not None:
        return f"{call} gave [yellow]{escape(visit.error.kind)}[/], {escape(shorten(visit.error.message, SHOWN))}"
    return f"{call} running" if visit.closed_at is None else f"{call} gave {short_json(visit.result, SHOWN)}"


def _wait(visit: WaitVisit) -> str:
    name = f"signal {escape(visit.signal)}{' (carried)' if visit.carried else ''}"
    if visit.closed_at is None:
        return f"{name}: waiting"
    payload = "" if visit.payload is None else short_json(visit.payload, SHOWN)
    return f"{name}: [green]{escape(visit.action or 'taken')}[/] {payload}".rstrip()


def print_times(out: Console, created_at: datetime, finished_at: datetime | None) -> None:
    ended = ""
    if finished_at is not None:
        seconds = (finished_at - created_at).total_seconds()
        ended = f", ended {finished_at:%Y-%m-%d %H:%M:%S} UTC after {seconds:.1f} s"
    out.print(f"  created {created_at:%Y-%m-%d %H:%M:%S} UTC{ended}")


def print_lineage(out: Console, job: Job, first: Event | None, replays: Sequence[Job]) -> None:
    """The job that this one replays and how, by its ``first`` event, and the newest replays of this one."""
    created = {} if first is None or first.kind is not EventKind.JOB_CREATED else first.data
    if job.replay_of is not None:
        how = f": {created['mode']} from turn {created.get('from_turn')}" if "mode" in created else ""
        out.print(f"  replay of job {job.replay_of}{escape(how)}")
    for path, value in (created.get("set") or {}).items():
        out.print(f"    set {escape(path)}={short_json(value, SHOWN)}")
    for replay in replays[-MAX_REPLAYS:]:
        why = "" if replay.failure is None else f" {replay.failure}"
        out.print(f"  replayed by job {replay.id}  {coloured(replay.status)}{why}")
    if len(replays) > MAX_REPLAYS:
        out.print(f"  older replays: stepladder jobs --replay-of {job.id}")
