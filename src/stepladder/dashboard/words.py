"""What the pages say: a mark beside every word, sentences for events, and what to do about a failure."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from stepladder.schemas.event_text import event_text
from stepladder.schemas.job import CHILDREN, SETTLEMENT, Failure, JobStatus

if TYPE_CHECKING:
    from stepladder.schemas.history import Event
    from stepladder.schemas.responses import Job

MARKS = {
    "succeeded": "✓", "valid": "✓", "passed": "✓", "failed": "✗", "cancelled": "⊘", "running": "▶", "queued": "…",
    "waiting": "◷", "paused": "‖", "not_reached": "–",
}  # fmt: skip


def mark(word: object) -> str:
    """A sign that says the same as the colour; an outcome that is not ``valid`` is one that failed."""
    return MARKS.get(str(word), "✗")


def plain(word: object) -> str:
    return str(word).replace("_", " ")


def remedy(failure: Failure) -> str:
    """What to do about a failed job."""
    match failure:
        case Failure.ATTEMPTS_EXHAUSTED:
            return (
                "Read the errors of the last attempts below. Where they differ, resume it, or fork it with more"
                " attempts (retry.attempts); where the same one comes back, fork it with a clearer question or rule."
            )
        case Failure.TOKEN_BUDGET:
            return "Submit it again with a larger token_budget, or shorten what the questions carry along (history)."
        case Failure.DEADLINE:
            return "See below where the time went: slow answers, retries or tools. Then submit it with more deadline_s."
        case Failure.MAX_TURNS:
            return "See below whether its turns lead anywhere. If they do, raise limits.max_turns."
        case Failure.TRANSITION_DENIED:
            return "The last turn chose an action that has no edge. Add the edge, or take the action out of the schema."
        case Failure.LOOP:
            return "Its turns went in a circle. Give the state a way out (max_visits, exhausted) or a clearer question."
        case Failure.SCHEMA_REJECTED:
            return "The engine refuses the output schema. See its words below, and simplify the schema."
        case Failure.REQUEST_REJECTED:
            return "The engine refuses the request. See its words below: a key, a model's name, or too long a context."
        case Failure.REFUSED:
            return "The model declined to answer. Read its words below, and put the question in another way."
        case Failure.PERMISSION_DENIED:
            return "The key that submitted the job lacks a scope that the tool wants. Submit it with a key that has it."
        case Failure.TOOL_FAILED:
            return "Read the tool's error below, and mend its cause, or give the state an edge for `error`."
        case Failure.EXPRESSION_ERROR:
            return "An expression of the workflow cannot be evaluated here. Mend it, and publish a new version."
        case Failure.REJECTED:
            return "The workflow itself ended in a failure state. The path below shows what led there."
        case _:
            assert_never(failure)


def doing(job: Job, last: Event | None) -> str:
    """What a job is busy with, in a line."""
    if job.workflow_paused:
        return f"Its workflow is paused: nobody goes on with it until {job.workflow} is unpaused."
    match job.status:
        case JobStatus.QUEUED:
            return "Queued: it waits for a worker. Does stepladder worker or stepladder up run?"
        case JobStatus.PAUSED:
            return "Paused: nobody goes on with it until it is unpaused."
        case JobStatus.WAITING if job.waiting_for == SETTLEMENT:
            ends = " It is asked to end, and does so once it is settled." if job.cancel_requested else ""
            return f"Waiting: nobody knows whether a tool took effect. Find out there, and settle the job.{ends}"
        case JobStatus.WAITING if job.waiting_for == CHILDREN:
            return "Waiting for the jobs that it called, which stand below."
        case JobStatus.WAITING:
            return f"Waiting for the signal {job.waiting_for}."
        case JobStatus.RUNNING:
            return f"Running: {event_text(last)}." if last is not None else "Running."
        case JobStatus.SUCCEEDED:
            return "Succeeded."
        case JobStatus.FAILED:
            return f"Failed: {plain(job.failure)}."
        case JobStatus.CANCELLED:
            return "Cancelled."
        case _:
            assert_never(job.status)
