"""A job for people: what it is, what it waits for, its turns, and what to do next."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, assert_never

from stepladder.cli.output import coloured, escape, make_table, plural, printable, short_json, shorten
from stepladder.schemas.job import Failure, JobStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.table import Table

    from stepladder.schemas.degraded import Degraded
    from stepladder.schemas.history import Attempt, TurnVisit
    from stepladder.schemas.responses import ChildJob, Job, OpenSettlement, OpenWait

MAX_LOSSES = 10
MAX_ANSWER = 200  # characters; the table shows what fits
RUNGS = {"passed": "[green]+[/]", "failed": "[red]x[/]", "not_reached": "."}


def print_job(out: Console, job: Job, turns: Sequence[TurnVisit], *, raw: bool = False) -> None:
    """The job's state, a row for every attempt, what was wrong with each answer, and the result."""
    print_state(out, job)
    if any(turn.carried or turn.attempts for turn in turns):
        out.print(_turns_table(turns), soft_wrap=False)
    for turn in turns:
        for attempt in turn.attempts:
            place = f"turn {turn.ordinal}.{attempt.ordinal}"
            for error in attempt.errors:
                outcome = f"{attempt.outcome} by {error.source}" if error.source else attempt.outcome
                out.print("  " + escape(f"{place} {outcome}: {error.pointer or '/'} {error.reason}"))
            if raw and attempt.content is not None:
                out.print(f"  {place} answered:")
                out.print(printable(attempt.content), markup=False)
    for turn in turns:
        if turn.degraded is not None:
            _print_degraded(out, f"turn {turn.ordinal} {turn.state}", turn.degraded)
    _print_result(out, job)
    cost = "" if not job.cost else f", {job.cost:.6g} {escape(job.currency or '')}".rstrip()
    counts = f"{plural(job.turn_count, 'turn')}, {plural(job.attempts, 'attempt')}, {plural(job.tokens, 'token')}"
    out.print(f"{counts}{cost}")


def print_state(out: Console, job: Job) -> None:
    """What the job is, why it failed or what it waits for, and the jobs that it called."""
    out.print(f"job {job.id}  {job.workflow} {job.version}  {coloured(job.status)}")
    if job.failure is not None:
        out.print(f"  {job.failure}: {escape(job.failure_detail or '')}")
    if job.workflow_paused:
        out.print(f"  its workflow is paused; continue with: stepladder unpause --workflow {job.workflow}")
    if job.waiting_for is not None:
        out.print(f"  waits for {escape(job.waiting_for)} in state {job.state}")
    if job.cancel_requested and not job.status.final:
        out.print("  cancellation requested")
    print_retention(out, job)
    if job.settlement is not None:
        print_settlement(out, job, job.settlement)
    if job.wait is not None:
        _print_wait(out, job, job.wait)
    if job.parent is not None:
        out.print(f"  called by job {job.parent}")
    _print_children(out, job.children)


def print_end(out: Console, job: Job) -> None:
    """How a job ended, without its turns."""
    failure = "" if job.failure is None else f": {job.failure}, {escape(shorten(job.failure_detail or ''))}"
    out.print(f"job {job.id} {coloured(job.status)}{failure}")
    for state, degraded in (job.degraded or {}).items():
        _print_degraded(out, f"state {state}", degraded)
    _print_result(out, job)


def print_retention(out: Console, job: Job) -> None:
    """What retention removed, and whether the job is exempt from it."""
    for what, removed_at in (("raw answers", job.raw_gone_at), ("history", job.events_gone_at)):
        if removed_at is not None:
            out.print(f"  {what} removed by retention at {removed_at:%Y-%m-%d %H:%M} UTC")
    if job.hold_at is not None:
        out.print(f"  held by {escape(job.hold_by or '')}: exempt from retention")


def print_settlement(out: Console, job: Job, call: OpenSettlement) -> None:
    """The call that may have taken effect, and the commands that settle it."""
    if job.cancel_requested:
        out.print("  it is cancelled once this call is settled")
    out.print(f"  tool {escape(call.tool)} started at {call.opened_at:%Y-%m-%d %H:%M:%S} UTC and may have taken effect")
    if call.reason is not None:
        out.print(f"  reason: {escape(call.reason.message)} ({escape(call.reason.kind)})")
    out.print(f"  arguments {_json(call.arguments)}")
    out.print(f"  idempotency key {escape(call.key)}")
    if call.said is not None:
        effect = "took effect" if call.said.done else "did not take effect"
        out.print(f"  {escape(call.said.by)} settled it: it {effect}; a worker continues the job")
        return
    out.print("  find out whether it took effect, then run one of")
    out.print(f"  stepladder settle {job.id} --done 'ITS RESULT AS JSON'")
    out.print(f"  stepladder settle {job.id} --not-done")


def _print_wait(out: Console, job: Job, wait: OpenWait) -> None:
    """What has to be decided, and the command that decides it."""
    if wait.show is not None:
        out.print(f"  shows {_json(wait.show)}")
    for state, call in wait.frozen.items():
        out.print(f"  would run in state {escape(state)}: {_json(call)}")
    if wait.until is not None:
        out.print(f"  until {wait.until:%Y-%m-%d %H:%M:%S} UTC")
    if wait.by == "other":
        out.print(f"  must be sent by someone other than {escape(job.principal)}, who submitted the job")
    if wait.scopes:
        out.print(f"  its sender needs {escape(', '.join(wait.scopes))}")
    payload = json.dumps({"action": "...", "wait_id": str(wait.wait_id)} if wait.frozen else {"action": "..."})
    out.print("  answer it with")  # a command stays on one line, to be copied
    out.print(f"  stepladder signal {job.id} {escape(wait.signal)} --data '{escape(payload)}'")


def _print_children(out: Console, children: Sequence[ChildJob]) -> None:
    for child in children:
        why = child.failure or (f"for {child.waiting_for}" if child.waiting_for else "")
        called = f"{child.index}. {child.workflow} {child.version}"
        out.print(f"  called {escape(called)}  job {child.id}  {coloured(child.status)} {escape(why)}".rstrip())
    if children:
        out.print(f"  {plural(sum(child.tokens for child in children), 'token')} used by the jobs that it called")


def _print_degraded(out: Console, where: str, degraded: Degraded) -> None:
    flag = f"[yellow]degraded[/]: from attempt {degraded.attempt} after {degraded.outcome}; it is not an output"
    out.print(f"  {escape(where)} {flag}")
    for loss in degraded.lost[:MAX_LOSSES]:
        out.print(f"    lost: {escape(loss.pointer or '/')} {escape(loss.reason)}")
    if len(degraded.lost) > MAX_LOSSES:
        out.print(f"    lost: {len(degraded.lost) - MAX_LOSSES} more, listed by --json")
    out.print(f"    kept: {_json(degraded.value)}")


def _print_result(out: Console, job: Job) -> None:
    if job.result is not None:
        out.print(f"result {_json(job.result)}")


def _json(value: object) -> str:
    return escape(json.dumps(value, ensure_ascii=False, default=dict))


def _turns_table(turns: Sequence[TurnVisit]) -> Table:
    """One row for each attempt, or for a turn that was carried over. T P S R are the rungs."""
    table = make_table(
        "turn", "state", "try", "outcome", "cause", "T P S R", "tokens", "ms", "answer",
        wide=("answer",), right=("turn", "try", "tokens", "ms"),
    )  # fmt: skip
    for turn in turns:
        ordinal, state = str(turn.ordinal), escape(turn.state)
        if turn.carried:
            output = short_json(turn.output, MAX_ANSWER)
            table.add_row(ordinal, state, "", "[dim]carried[/]", "", "", "", "", output)
        for attempt in turn.attempts:
            first = attempt.ordinal == 1
            table.add_row(
                ordinal if first else "",
                state if first else "",
                str(attempt.ordinal),
                coloured(attempt.outcome or "in flight"),
                escape(attempt.cause or ""),
                _rungs(attempt),
                "" if attempt.usage is None else str(attempt.usage.total),
                "" if attempt.duration_ms is None else f"{attempt.duration_ms:.0f}",
                escape(shorten(" ".join((attempt.content or "").split()), MAX_ANSWER)),
            )
    return table


def _rungs(attempt: Attempt) -> str:
    rungs = attempt.rungs
    states = () if rungs is None else (rungs.termination, rungs.parse, rungs.schema, rungs.semantic)
    return " ".join(RUNGS[state.value] for state in states)


def print_next_step(out: Console, job: Job) -> None:
    """How to continue a job that failed or was cancelled. The command stays on one line, to be copied."""
    found = next_step(job)
    if found is not None:
        why, command = found
        out.print(f"  {why}:")
        out.print(f"  {command}")


def next_step(job: Job) -> tuple[str, str] | None:
    """An explanation and a command that continues the job; None for a job that neither failed nor was cancelled."""
    resume = f"stepladder replay {job.id} --mode resume"
    from_turn = f" --from-turn {job.turn_count}" if job.turn_count > 0 else ""
    fork = f"stepladder replay {job.id} --mode fork{from_turn}"
    if job.status is JobStatus.CANCELLED:
        return "continue from where it was cancelled", resume
    if job.status is not JobStatus.FAILED or job.failure is None:
        return None
    match job.failure:
        case Failure.ATTEMPTS_EXHAUSTED | Failure.REFUSED | Failure.TOOL_FAILED:
            return "continue from where it failed; earlier turns are kept, and no effect happens twice", resume
        case Failure.TOKEN_BUDGET | Failure.DEADLINE | Failure.MAX_TURNS:
            return "continue with new limits; earlier turns are kept", resume
        case Failure.REQUEST_REJECTED:
            return "once the engine accepts its requests, continue from where it failed", resume
        case Failure.PERMISSION_DENIED:
            return "continue as a principal who has the scope: a replay belongs to the one who starts it", resume
        case Failure.TRANSITION_DENIED | Failure.LOOP | Failure.SCHEMA_REJECTED | Failure.EXPRESSION_ERROR:
            return "the same document would fail again: fork with a change", f"{fork} --set PATH=VALUE"
        case Failure.REJECTED:
            return "it ended as its document says; fork it from an earlier turn", fork
        case _:
            assert_never(job.failure)
