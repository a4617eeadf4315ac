"""Where a job comes from, what was made of it, and what to do about one that failed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, assert_never

from stepladder.cli.output import escape, shorten
from stepladder.schemas.job import Failure, JobStatus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from stepladder.schemas.responses import Job

SHOWN = 70  # characters of a change within a line
SHOWN_REPLAYS = 10
AGAIN = "go on from where it failed; all before it is taken over, and no effect takes place twice"
CHANGED = "the same document would fail there again: change it, and fork"


@dataclass(frozen=True, slots=True)
class Line:
    """A job's place in a line of replays. ``made`` is the data of the event with which a replay begins: ``mode``,
    ``from_turn`` and ``set``; empty where the job is no replay, or its history is gone.
    """

    made: Mapping[str, Any]
    replays: Sequence[Job]


def print_line_of_replays(out: Console, job: Job, line: Line) -> None:
    """Of which job it is a replay and how, and the jobs that were made from it, the newest of them."""
    if job.replay_of is not None:
        how = f": {line.made['mode']} from turn {line.made.get('from_turn')}" if "mode" in line.made else ""
        out.print(f"  replay of job {job.replay_of}{escape(how)}")
    for path, value in (line.made.get("set") or {}).items():
        out.print(f"    set {escape(shorten(f'{path}={json.dumps(value, ensure_ascii=False)}', SHOWN))}")
    for other in line.replays[-SHOWN_REPLAYS:]:
        out.print(f"  replayed by job {other.id}  {_came(other)}")
    if len(line.replays) > SHOWN_REPLAYS:
        out.print(f"  and by older ones: stepladder jobs --replay-of {job.id}")


def _came(job: Job) -> str:
    colour = {JobStatus.SUCCEEDED: "green", JobStatus.FAILED: "red", JobStatus.CANCELLED: "red"}.get(job.status)
    why = "" if job.failure is None else f" {job.failure}"
    return f"[{colour or 'yellow'}]{job.status}[/]{why}"


def print_onward(out: Console, job: Job) -> None:
    """Why, and the command: of a job that failed or was cancelled. A command stays on one line, to be copied."""
    found = onward(job)
    if found is not None:
        why, command = found
        out.print(f"  {why}:")
        out.print(f"  {command}")


def onward(job: Job) -> tuple[str, str] | None:
    """Why it can be gone on with, and by which command; None for a job that has not failed."""
    if job.status is JobStatus.CANCELLED:
        return "go on from where it was cancelled", _resume(job)
    if job.status is not JobStatus.FAILED or job.failure is None:
        return None
    match job.failure:
        case Failure.ATTEMPTS_EXHAUSTED | Failure.REFUSED | Failure.TOOL_FAILED:
            return AGAIN, _resume(job)
        case Failure.TOKEN_BUDGET | Failure.DEADLINE | Failure.MAX_TURNS:
            return "limits start anew where it goes on, and all before is taken over", _resume(job)
        case Failure.REQUEST_REJECTED:
            return "once the engine takes its requests, go on from where it failed", _resume(job)
        case Failure.PERMISSION_DENIED:
            return "go on as somebody who has the scope: who replays a job is its principal", _resume(job)
        case Failure.TRANSITION_DENIED | Failure.LOOP | Failure.SCHEMA_REJECTED | Failure.EXPRESSION_ERROR:
            return CHANGED, _fork(job, " --set PATH=VALUE")
        case Failure.REJECTED:
            return "it ended as its document says; let it go another way from one of its turns", _fork(job, "")
        case _:
            assert_never(job.failure)


def _resume(job: Job) -> str:
    return f"stepladder replay {job.id} --mode resume"


def _fork(job: Job, change: str) -> str:
    turn = f" --from-turn {job.turn_count}" if job.turn_count > 0 else ""
    return f"stepladder replay {job.id} --mode fork{turn}{change}"
