"""A job as people and programs see it: the same facts as a table and as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rich.table import Table

from stepladder.cli.onward import print_line_of_replays
from stepladder.cli.output import escape, printable, shorten
from stepladder.models.records import Unsettled
from stepladder.workflows.job import Wait

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from stepladder.cli.onward import Line
    from stepladder.models.children import ChildRecord
    from stepladder.models.reads import AttemptRecord, Overview, TurnRecord
    from stepladder.schemas.degraded import Degraded

SHOWN_LOSSES = 10
COLOURS = {"succeeded": "green", "valid": "green", "failed": "red", "cancelled": "red"}


def coloured(word: object) -> str:
    text = "-" if word is None else str(word)
    return f"[{COLOURS.get(text, 'yellow')}]{escape(text)}[/]"


def print_job(
    out: Console,
    job: Overview,
    turns: Sequence[TurnRecord],
    awaited: Wait | Unsettled | None = None,
    children: Sequence[ChildRecord] = (),
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
    if isinstance(awaited, Unsettled):
        print_settlement(out, job, awaited)
    elif awaited is not None:
        print_wait(out, job, awaited)
    if job.parent is not None:
        out.print(f"  called by job {job.parent}")
    print_children(out, children)
    table = turns_table(turns)
    if table.row_count:
        out.print(table, soft_wrap=False)
    for turn in turns:
        for attempt in turn.attempts:
            print_rejection(out, turn, attempt)
            if raw and attempt.content is not None:
                out.print(f"  turn {turn.ordinal}.{attempt.ordinal} answered:")
                out.print(printable(attempt.content.decode(errors="replace")), markup=False)
    for turn in turns:
        if turn.degraded is not None:
            print_degraded(out, f"turn {turn.ordinal} {turn.state}", turn.degraded)
    if job.result is not None:
        out.print("result " + escape(json.dumps(job.result, ensure_ascii=False)))
    cost = "" if not job.cost else f", {job.cost:.6g} {escape(job.currency or '')}".rstrip()
    out.print(f"{job.turn_count} turns, {job.attempts} attempts, {job.tokens} tokens{cost}")


def print_retention(out: Console, job: Overview) -> None:
    """What went with age, and whether anything may."""
    for what, gone in (("raw answers", job.raw_gone_at), ("history", job.events_gone_at)):
        if gone is not None:
            out.print(f"  its {what} went by retention at {gone:%Y-%m-%d %H:%M} UTC")
    if job.hold_at is not None:
        out.print(f"  is held by {escape(job.hold_by or '')}: nothing of it goes with age")


def print_children(out: Console, children: Sequence[ChildRecord]) -> None:
    """The jobs that a job called, a line each, and the tokens that they took beside its own."""
    for child in children:
        why = child.failure or (f"for {child.waiting_for}" if child.waiting_for else "")
        called = f"{child.index}. {child.workflow} {child.version}"
        out.print(f"  called {escape(called)}  job {child.id}  {coloured(child.status)} {escape(why)}".rstrip())
    if children:
        out.print(f"  {sum(child.tokens for child in children)} tokens of jobs that it called")


def print_end(out: Console, job: Overview) -> None:
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


def print_wait(out: Console, job: Overview, wait: Wait) -> None:
    """What somebody has to decide about, and the command by which it is decided."""
    if wait.show is not None:
        out.print(f"  shows {escape(json.dumps(wait.show, ensure_ascii=False))}")
    for state, call in wait.frozen.items():
        out.print(f"  would run in state {escape(state)}: {escape(json.dumps(call, ensure_ascii=False))}")
    if wait.until is not None:
        out.print(f"  until {wait.until:%Y-%m-%d %H:%M:%S} UTC")
    if wait.by_other:
        out.print(f"  to be sent by somebody other than {escape(job.principal)}, whose job it is")
    if wait.scopes:
        out.print(f"  its sender needs {escape(', '.join(wait.scopes))}")
    payload = json.dumps({"action": "...", "wait_id": str(wait.wait_id)} if wait.frozen else {"action": "..."})
    out.print("  answer it with")  # a command stays on one line, to be copied
    out.print(f"  stepladder signal {job.id} {escape(wait.signal)} --data '{escape(payload)}'")


def print_settlement(out: Console, job: Overview, found: Unsettled) -> None:
    """Of which call nobody knows whether it took effect, and the commands by which that is said."""
    call, said = found.call, found.said
    if job.cancel_requested:
        out.print("  it ends once it is settled, as somebody asked for its end")
    since = f"{call.opened_at:%Y-%m-%d %H:%M:%S} UTC"
    out.print(f"  tool {escape(call.tool)} was begun at {since}, and may have taken effect")
    if call.error is not None:
        out.print(f"  why nobody knows: {escape(call.error.message)} ({escape(call.error.kind)})")
    out.print(f"  arguments {escape(json.dumps(call.arguments, ensure_ascii=False))}")
    out.print(f"  idempotency key {escape(call.key)}")
    if said is not None:
        out.print(f"  {escape(said.by)} says that it {'did' if said.done else 'did not'}; a worker has yet to go on")
        return
    out.print("  find out whether it did, and say so with one of")
    out.print(f"  stepladder settle {job.id} --done 'ITS RESULT AS JSON'")
    out.print(f"  stepladder settle {job.id} --not-done")


def turns_table(turns: Sequence[TurnRecord]) -> Table:
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


def print_rejection(out: Console, turn: TurnRecord, attempt: AttemptRecord) -> None:
    for error in attempt.errors:
        where = f"turn {turn.ordinal}.{attempt.ordinal} {attempt.outcome}"
        source = f" by {error.source}" if error.source else ""
        text = f"{where}{source}: {error.pointer or '/'} {error.reason}"
        out.print(f"  {escape(text)}")


def rungs(attempt: AttemptRecord) -> str:
    """The four rungs as one mark each: passed, failed, not reached."""
    if attempt.rungs is None:
        return ""
    marks = {"passed": "[green]+[/]", "failed": "[red]x[/]", "not_reached": "."}
    states = (attempt.rungs.termination, attempt.rungs.parse, attempt.rungs.schema, attempt.rungs.semantic)
    return " ".join(marks[state.value] for state in states)


def answer(attempt: AttemptRecord) -> str:
    text = "" if attempt.content is None else " ".join(attempt.content.decode(errors="replace").split())
    return shorten(text, 200)


def jobs_table(jobs: Sequence[Overview]) -> Table:
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


def _where(job: Overview) -> str:
    """Why it failed, what it waits for, or the state that it is in."""
    if job.failure is not None:
        return job.failure
    if job.waiting_for is not None:
        return f"for {job.waiting_for}"
    return "" if job.status.final else job.state or ""


def as_json(
    job: Overview,
    turns: Sequence[TurnRecord],
    awaited: Wait | Unsettled | None = None,
    children: Sequence[ChildRecord] = (),
) -> dict[str, Any]:
    """The same as one JSON document, in the words of the HTTP API."""
    from stepladder.api.views import settlement_json, wait_json

    open_ = {
        "wait": wait_json(awaited) if isinstance(awaited, Wait) else None,
        "settlement": settlement_json(job, awaited) if isinstance(awaited, Unsettled) else None,
    }
    called = [child.as_json() for child in children]
    return job_json(job) | open_ | {"children": called, "turns": [turn_json(turn) for turn in turns]}


def job_json(job: Overview) -> dict[str, Any]:
    names = (
        "id", "workflow", "version", "status", "state", "waiting_for", "failure", "failure_detail", "input", "result",
        "turn_count", "attempts", "tokens", "priority", "metadata", "created_at", "started_at", "finished_at",
        "deadline_at", "replay_of", "variant", "bulk", "parent", "cancel_requested", "workflow_paused", "principal",
        "cost", "currency", "hold_at", "hold_by", "raw_gone_at", "events_gone_at",
    )  # fmt: skip
    kept = None if job.degraded is None else {state: one.as_json() for state, one in job.degraded.items()}
    return {name: getattr(job, name) for name in names} | {"degraded": kept}


def turn_json(turn: TurnRecord) -> dict[str, Any]:
    names = ("ordinal", "state", "outcome", "action", "output", "carried")
    attempts = [attempt_json(attempt) for attempt in turn.attempts]
    degraded = None if turn.degraded is None else turn.degraded.as_json()
    return {name: getattr(turn, name) for name in names} | {"degraded": degraded, "attempts": attempts}


def attempt_json(attempt: AttemptRecord) -> dict[str, Any]:
    names = (
        "id", "ordinal", "outcome", "cause", "finish_reason", "http_status", "ttft_ms", "tpot_ms", "duration_ms",
        "max_completion_tokens", "sampling", "schema_hash", "request_id", "started_at", "arrived_at", "cost",
    )  # fmt: skip
    rungs, usage = attempt.rungs, attempt.usage
    errors = [{"pointer": error.pointer, "reason": error.reason, "source": error.source} for error in attempt.errors]
    engine = {"model": attempt.model, "version": attempt.engine_version, "backend": attempt.grammar_backend}
    return {name: getattr(attempt, name) for name in names} | {
        "rungs": None if rungs is None else {name: getattr(rungs, name) for name in rungs.__slots__},
        "errors": errors,
        "usage": None
        if usage is None
        else {"prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens},
        "engine": engine,
    }
