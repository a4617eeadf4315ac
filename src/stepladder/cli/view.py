"""A job as people and programs see it: the same facts as a table and as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rich.table import Table

from stepladder.cli.onward import print_line_of_replays
from stepladder.cli.output import escape, printable, shorten

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from stepladder.cli.onward import Line
    from stepladder.schemas.degraded import Degraded
    from stepladder.schemas.history import Attempt, Turn
    from stepladder.schemas.responses import ChildJob, Job, OpenSettlement, OpenWait

SHOWN_LOSSES = 10
COLOURS = {"succeeded": "green", "valid": "green", "failed": "red", "cancelled": "red"}


def coloured(word: object) -> str:
    text = "-" if word is None else str(word)
    return f"[{COLOURS.get(text, 'yellow')}]{escape(text)}[/]"


def print_job(
    out: Console,
    job: Job,
    turns: Sequence[Turn],
    line: Line | None = None,
    *,
    raw: bool = False,
) -> None:
    """The job in short, then a line for every attempt with what was wrong, then the result."""
    out.print(f"job {job.id}  {job.workflow} {job.version}  {coloured(job.status)}")
    if job.failure is not None:
        out.print(f"  {job.failure}: {escape(job.failure_detail or '')}")
    if job.workflow_paused:
        out.print(f"  its workflow is paused; let it go on: stepladder unpause --workflow {job.workflow}")
    if job.waiting_for is not None:
        out.print(f"  waits for {escape(job.waiting_for)} in state {job.state}")
    if job.cancel_requested and not job.status.final:
        out.print("  is asked to end")
    print_retention(out, job)
    if line is not None:
        print_line_of_replays(out, job, line)
    if job.settlement is not None:
        print_settlement(out, job, job.settlement)
    if job.wait is not None:
        print_wait(out, job, job.wait)
    if job.parent is not None:
        out.print(f"  called by job {job.parent}")
    print_children(out, job.children)
    table = turns_table(turns)
    if table.row_count:
        out.print(table, soft_wrap=False)
    for turn in turns:
        for attempt in turn.attempts:
            print_rejection(out, turn, attempt)
            if raw and attempt.content is not None:
                out.print(f"  turn {turn.ordinal}.{attempt.ordinal} answered:")
                out.print(printable(attempt.content), markup=False)
    for turn in turns:
        if turn.degraded is not None:
            print_degraded(out, f"turn {turn.ordinal} {turn.state}", turn.degraded)
    if job.result is not None:
        out.print("result " + escape(json.dumps(job.result, ensure_ascii=False)))
    cost = "" if not job.cost else f", {job.cost:.6g} {escape(job.currency or '')}".rstrip()
    out.print(f"{job.turn_count} turns, {job.attempts} attempts, {job.tokens} tokens{cost}")


def print_retention(out: Console, job: Job) -> None:
    """What went with age, and whether anything may."""
    for what, gone in (("raw answers", job.raw_gone_at), ("history", job.events_gone_at)):
        if gone is not None:
            out.print(f"  its {what} went by retention at {gone:%Y-%m-%d %H:%M} UTC")
    if job.hold_at is not None:
        out.print(f"  is held by {escape(job.hold_by or '')}: nothing of it goes with age")


def print_children(out: Console, children: Sequence[ChildJob]) -> None:
    """The jobs that a job called, a line each, and the tokens that they took beside its own."""
    for child in children:
        why = child.failure or (f"for {child.waiting_for}" if child.waiting_for else "")
        called = f"{child.index}. {child.workflow} {child.version}"
        out.print(f"  called {escape(called)}  job {child.id}  {coloured(child.status)} {escape(why)}".rstrip())
    if children:
        out.print(f"  {sum(child.tokens for child in children)} tokens of jobs that it called")


def print_end(out: Console, job: Job) -> None:
    """How a job ended, without its turns."""
    failure = "" if job.failure is None else f": {job.failure}, {escape(shorten(job.failure_detail or ''))}"
    out.print(f"job {job.id} {coloured(job.status)}{failure}")
    for state, kept in (job.degraded or {}).items():
        print_degraded(out, f"state {state}", kept)
    if job.result is not None:
        out.print("result " + escape(json.dumps(job.result, ensure_ascii=False)))


def print_degraded(out: Console, where: str, kept: Degraded) -> None:
    """What was kept of a turn that was given up, and all that is lost of it."""
    flag = f"[yellow]degraded[/]: kept from attempt {kept.attempt} after {kept.outcome}; it is no output"
    out.print(f"  {escape(where)} {flag}")
    for loss in kept.lost[:SHOWN_LOSSES]:
        out.print(f"    lost: {escape(loss.pointer or '/')} {escape(loss.reason)}")
    if len(kept.lost) > SHOWN_LOSSES:
        out.print(f"    lost: {len(kept.lost) - SHOWN_LOSSES} more, which --json lists")
    out.print("    kept: " + escape(json.dumps(kept.value, ensure_ascii=False)))


def print_wait(out: Console, job: Job, wait: OpenWait) -> None:
    """What somebody has to decide about, and the command by which it is decided."""
    if wait.show is not None:
        out.print(f"  shows {escape(json.dumps(wait.show, ensure_ascii=False))}")
    for state, call in wait.frozen.items():
        out.print(f"  would run in state {escape(state)}: {escape(json.dumps(call, ensure_ascii=False))}")
    if wait.until is not None:
        out.print(f"  until {wait.until:%Y-%m-%d %H:%M:%S} UTC")
    if wait.by == "other":
        out.print(f"  to be sent by somebody other than {escape(job.principal)}, whose job it is")
    if wait.scopes:
        out.print(f"  its sender needs {escape(', '.join(wait.scopes))}")
    payload = json.dumps({"action": "...", "wait_id": str(wait.wait_id)} if wait.frozen else {"action": "..."})
    out.print("  answer it with")  # a command stays on one line, to be copied
    out.print(f"  stepladder signal {job.id} {escape(wait.signal)} --data '{escape(payload)}'")


def print_settlement(out: Console, job: Job, call: OpenSettlement) -> None:
    """Of which call nobody knows whether it took effect, and the commands by which that is said."""
    said = call.said
    if job.cancel_requested:
        out.print("  it ends once it is settled, as somebody asked for its end")
    since = f"{call.opened_at:%Y-%m-%d %H:%M:%S} UTC"
    out.print(f"  tool {escape(call.tool)} was begun at {since}, and may have taken effect")
    if call.reason is not None:
        out.print(f"  why nobody knows: {escape(call.reason.message)} ({escape(call.reason.kind)})")
    out.print(f"  arguments {escape(json.dumps(call.arguments, ensure_ascii=False))}")
    out.print(f"  idempotency key {escape(call.key)}")
    if said is not None:
        out.print(f"  {escape(said.by)} says that it {'did' if said.done else 'did not'}; a worker has yet to go on")
        return
    out.print("  find out whether it did, and say so with one of")
    out.print(f"  stepladder settle {job.id} --done 'ITS RESULT AS JSON'")
    out.print(f"  stepladder settle {job.id} --not-done")


def turns_table(turns: Sequence[Turn]) -> Table:
    """One row an attempt, or a turn that was taken over, within a hundred columns."""
    table = Table(box=None, pad_edge=False, header_style="bold", expand=True)
    for name in ("turn", "state", "try", "outcome", "cause", "T P S R", "tokens", "ms"):
        right = name in ("turn", "try", "tokens", "ms")
        table.add_column(name, justify="right" if right else "left", no_wrap=True)
    table.add_column("answer", ratio=1, no_wrap=True, overflow="ellipsis")  # the one that gives way
    for turn in turns:
        if turn.carried:
            output = escape(shorten(json.dumps(turn.output, ensure_ascii=False), 200))
            table.add_row(str(turn.ordinal), escape(turn.state), "", "[dim]carried[/]", "", "", "", "", output)
        for attempt in turn.attempts:
            first = attempt.ordinal == 1
            table.add_row(
                str(turn.ordinal) if first else "",
                escape(turn.state) if first else "",
                str(attempt.ordinal),
                coloured(attempt.outcome or "in flight"),
                escape(attempt.cause or ""),
                rungs(attempt),
                "" if attempt.usage is None else str(attempt.usage.total),
                "" if attempt.duration_ms is None else f"{attempt.duration_ms:.0f}",
                escape(answer(attempt)),
            )
    return table


def print_rejection(out: Console, turn: Turn, attempt: Attempt) -> None:
    for error in attempt.errors:
        where = f"turn {turn.ordinal}.{attempt.ordinal} {attempt.outcome}"
        source = f" by {error.source}" if error.source else ""
        text = f"{where}{source}: {error.pointer or '/'} {error.reason}"
        out.print(f"  {escape(text)}")


def rungs(attempt: Attempt) -> str:
    """The four rungs as one mark each: passed, failed, not reached."""
    if attempt.rungs is None:
        return ""
    marks = {"passed": "[green]+[/]", "failed": "[red]x[/]", "not_reached": "."}
    states = (attempt.rungs.termination, attempt.rungs.parse, attempt.rungs.schema, attempt.rungs.semantic)
    return " ".join(marks[state.value] for state in states)


def answer(attempt: Attempt) -> str:
    text = "" if attempt.content is None else " ".join(attempt.content.split())
    return shorten(text, 200)


def jobs_table(jobs: Sequence[Job]) -> Table:
    """One row a job, within a hundred columns."""
    table = Table(box=None, pad_edge=False, header_style="bold", expand=True)
    for name in ("id", "created (UTC)", "status", "turns"):
        table.add_column(name, justify="right" if name == "turns" else "left", no_wrap=True)
    table.add_column("workflow", ratio=1, no_wrap=True, overflow="ellipsis")  # the two that give way
    table.add_column("where", ratio=1, no_wrap=True, overflow="ellipsis")
    for job in jobs:
        table.add_row(
            str(job.id),
            f"{job.created_at:%y-%m-%d %H:%M}",
            coloured(job.status),
            str(job.turn_count),
            escape(f"{job.workflow} {job.version}"),
            escape(_where(job)),
        )
    return table


def _where(job: Job) -> str:
    """Why it failed, what it waits for, or the state that it is in."""
    if job.failure is not None:
        return job.failure
    if job.waiting_for is not None:
        return f"for {job.waiting_for}"
    return "" if job.status.final else job.state or ""


def as_json(job: Job, turns: Sequence[Turn]) -> dict[str, Any]:
    """The same as one JSON document, in the words of the HTTP API."""
    return {**dict(job), "turns": turns}
