"""What the pages say: a mark beside every word, sentences for events, and what to do about a failure."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, assert_never

from stepladder.schemas.event import EventKind
from stepladder.schemas.job import CHILDREN, SETTLEMENT, Failure, JobStatus
from stepladder.workflows.machine import ALWAYS

if TYPE_CHECKING:
    from stepladder.models.reads import Overview
    from stepladder.schemas.event import Event

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


def doing(job: Overview, last: Event | None) -> str:
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
            return f"Running: {sentence(last)}." if last is not None else "Running."
        case JobStatus.SUCCEEDED:
            return "Succeeded."
        case JobStatus.FAILED:
            return f"Failed: {plain(job.failure)}."
        case JobStatus.CANCELLED:
            return "Cancelled."
        case _:
            assert_never(job.status)


def sentence(event: Event) -> str:
    """What happened."""
    said = defaultdict(str, {name: str(value)[:300] for name, value in event.data.items()})
    turn, attempt = f"turn {event.turn}", f"turn {event.turn}, attempt {event.attempt}"
    match event.kind:
        case EventKind.JOB_CREATED if event.data.get("mode") is not None:
            return f"made from job {said['replay_of']}: {said['mode']} from turn {said['from_turn']}"
        case EventKind.JOB_CREATED:
            return "submitted"
        case EventKind.JOB_STARTED:
            return "a worker has begun"
        case EventKind.JOB_TAKEN_OVER:
            return "its worker was lost, and another goes on"
        case EventKind.TURN_STARTED:
            return f"{turn}, state {said['state']}: the model is asked"
        case EventKind.ATTEMPT_JUDGED:
            cause = f" ({said['cause']})" if event.data.get("cause") else ""
            return f"{attempt}: {plain(said['outcome'])}{cause}"
        case EventKind.ATTEMPT_ABANDONED:
            return f"{attempt}: abandoned, its worker was lost"
        case EventKind.RETRY_SCHEDULED if event.turn is None:
            return f"tool {said['tool']} runs again in {said['after_s']} s"
        case EventKind.RETRY_SCHEDULED:
            return f"{turn}: asked again in {said['after_s']} s"
        case EventKind.TURN_ACCEPTED:
            chosen = f", which chose {said['action']}" if event.data.get("action") else ""
            return f"{turn}: the answer is accepted{chosen}"
        case EventKind.TURN_FAILED:
            return f"{turn} failed: {plain(said['failure'])}, {said['detail']}"
        case EventKind.TURN_DEGRADED:
            return f"{turn} is degraded: a part of attempt {event.attempt} is kept, and is no output"
        case EventKind.TRANSITION:
            by = "" if event.data.get("action") in (None, ALWAYS) else f" by {said['action']}"
            return f"on to state {said['to']}{by}"
        case EventKind.TOOL_STARTED:
            again = "" if event.data.get("run", 1) == 1 else f" again, run {said['run']}"
            return f"tool {said['tool']} runs{again}"
        case EventKind.TOOL_RETURNED:
            return f"tool {said['tool']} returned"
        case EventKind.TOOL_FAILED:
            return f"tool {said['tool']} failed: {said['kind']}, {said['message']}"
        case EventKind.TOOL_CARRIED:
            return f"tool {said['tool']} was not run again: job {said['job']} had begun this call"
        case EventKind.PERMISSION_DENIED:
            missing = event.data.get("missing")
            lacking = ", ".join(map(str, missing)) if isinstance(missing, list | tuple) else ""
            return f"tool {said['tool']} was denied to {said['principal']}, who lacks {lacking}"
        case EventKind.LIST_STARTED:
            return f"state {said['state']} begins a list"
        case EventKind.LIST_ENDED:
            return f"state {said['state']} has built a list of {said['elements']}"
        case EventKind.CALL_STARTED:
            return f"calls workflow {said['workflow']}, children: {said['children']}"
        case EventKind.CALL_RETURNED:
            lost = f", {said['failed']} gave no result" if event.data.get("failed") else ""
            return f"workflow {said['workflow']} returned{lost}"
        case EventKind.CALL_FAILED:
            return f"workflow {said['workflow']} failed: {plain(said['kind'])}, {said['message']}"
        case EventKind.WAIT_STARTED:
            return f"waits for the signal {said['signal']}"
        case EventKind.SIGNAL_TAKEN:
            return f"signal {said['signal']} came: {said['action']}" + (f", from {said['by']}" if said["by"] else "")
        case EventKind.SIGNAL_REFUSED:
            return f"signal {said['signal']} was refused: {said['reason']}"
        case EventKind.WAIT_TIMED_OUT:
            return f"signal {said['signal']} did not come in time"
        case EventKind.SETTLEMENT_NEEDED:
            return f"nobody knows whether tool {said['tool']} took effect: {said['message']}"
        case EventKind.SETTLED:
            took = "took" if event.data.get("done") else "did not take"
            return f"settled by {said['by']}: tool {said['tool']} {took} effect"
        case EventKind.JOB_PAUSED:
            return f"paused by {said['by']}" + (", with its workflow" if said["workflow"] else "")
        case EventKind.JOB_UNPAUSED:
            return f"goes on, by {said['by']}" + (", with its workflow" if said["workflow"] else "")
        case EventKind.JOB_SUCCEEDED:
            return "succeeded"
        case EventKind.JOB_FAILED:
            return f"failed: {plain(said['failure'])}, {said['detail']}"
        case EventKind.JOB_CANCELLED:
            return "cancelled"
        case _:
            return plain(event.kind)
