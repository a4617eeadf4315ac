"""A job as people and programs see it: the same facts as a table and as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rich.table import Table

from stepladder.cli.output import escape, printable, shorten

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from stepladder.models.reads import AttemptRecord, Overview, TurnRecord
    from stepladder.workflows.job import Wait

COLOURS = {"succeeded": "green", "valid": "green", "failed": "red", "cancelled": "red"}


def coloured(word: object) -> str:
    text = "-" if word is None else str(word)
    return f"[{COLOURS.get(text, 'yellow')}]{escape(text)}[/]"


def print_job(
    out: Console, job: Overview, turns: Sequence[TurnRecord], wait: Wait | None = None, *, raw: bool = False
) -> None:
    """The job in short, then a line for every attempt with what was wrong, then the result."""
    out.print(f"job {job.id}  {job.workflow} {job.version}  {coloured(job.status)}")
    if job.failure is not None:
        out.print(f"  {job.failure}: {escape(job.failure_detail or '')}")
    if job.waiting_for is not None:
        out.print(f"  waits for {escape(job.waiting_for)} in state {job.state}")
    if wait is not None:
        print_wait(out, job, wait)
    table = turns_table(turns)
    if table.row_count:
        out.print(table, soft_wrap=False)
    for turn in turns:
        for attempt in turn.attempts:
            print_rejection(out, turn, attempt)
            if raw and attempt.content is not None:
                out.print(f"  turn {turn.ordinal}.{attempt.ordinal} answered:")
                out.print(printable(attempt.content.decode(errors="replace")), markup=False)
    if job.result is not None:
        out.print("result " + escape(json.dumps(job.result, ensure_ascii=False)))
    out.print(f"{job.turn_count} turns, {job.attempts} attempts, {job.tokens} tokens")


def print_end(out: Console, job: Overview) -> None:
    """How a job ended, without its turns."""
    failure = "" if job.failure is None else f": {job.failure}, {escape(shorten(job.failure_detail or ''))}"
    out.print(f"job {job.id} {coloured(job.status)}{failure}")
    if job.result is not None:
        out.print("result " + escape(json.dumps(job.result, ensure_ascii=False)))


def print_wait(out: Console, job: Overview, wait: Wait) -> None:
    """What somebody has to decide about, and the command by which it is decided."""
    if wait.show is not None:
        out.print(f"  shows {escape(json.dumps(wait.show, ensure_ascii=False))}")
    for state, call in wait.frozen.items():
        out.print(f"  would run in state {escape(state)}: {escape(json.dumps(call, ensure_ascii=False))}")
    if wait.until is not None:
        out.print(f"  until {wait.until:%Y-%m-%d %H:%M:%S} UTC")
    payload = json.dumps({"action": "...", "wait_id": str(wait.wait_id)} if wait.frozen else {"action": "..."})
    out.print("  answer it with")  # a command stays on one line, to be copied
    out.print(f"  stepladder signal {job.id} {escape(wait.signal)} --data '{escape(payload)}'")


def turns_table(turns: Sequence[TurnRecord]) -> Table:
    """One row an attempt, within a hundred columns."""
    table = Table(box=None, pad_edge=False, header_style="bold", expand=True)
    for name in ("turn", "state", "try", "outcome", "cause", "T P S R", "tokens", "ms"):
        right = name in ("turn", "try", "tokens", "ms")
        table.add_column(name, justify="right" if right else "left", no_wrap=True)
    table.add_column("answer", ratio=1, no_wrap=True, overflow="ellipsis")  # the one that gives way
    for turn in turns:
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


def as_json(job: Overview, turns: Sequence[TurnRecord]) -> dict[str, Any]:
    """The same as one JSON document, in the words of the HTTP API."""
    return job_json(job) | {"turns": [turn_json(turn) for turn in turns]}


def job_json(job: Overview) -> dict[str, Any]:
    names = (
        "id", "workflow", "version", "status", "state", "waiting_for", "failure", "failure_detail", "input", "result",
        "turn_count", "attempts", "tokens", "priority", "metadata", "created_at", "started_at", "finished_at",
        "deadline_at", "replay_of",
    )  # fmt: skip
    return {name: getattr(job, name) for name in names} | {"degraded": None}


def turn_json(turn: TurnRecord) -> dict[str, Any]:
    names = ("ordinal", "state", "outcome", "action", "output", "carried")
    attempts = [attempt_json(attempt) for attempt in turn.attempts]
    return {name: getattr(turn, name) for name in names} | {"attempts": attempts}


def attempt_json(attempt: AttemptRecord) -> dict[str, Any]:
    names = (
        "id", "ordinal", "outcome", "cause", "finish_reason", "http_status", "ttft_ms", "tpot_ms", "duration_ms",
        "max_completion_tokens", "sampling", "schema_hash", "request_id",
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
