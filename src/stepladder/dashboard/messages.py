"""Texts that several pages share: what a job is doing, what to do about a failure, and a sign for each status."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from stepladder.schemas.event_text import event_text
from stepladder.schemas.job import CHILDREN, SETTLEMENT, Failure, JobStatus

if TYPE_CHECKING:
    from stepladder.schemas.history import Event
    from stepladder.schemas.responses import Job

SIGNS = {
    "succeeded": "✓", "valid": "✓", "passed": "✓", "failed": "✗", "cancelled": "⊘", "running": "▶", "queued": "…",
    "waiting": "◷", "paused": "‖", "not_reached": "–",
}  # fmt: skip

REMEDIES = {
    Failure.ATTEMPTS_EXHAUSTED: (
        "Read the errors of the last attempts below. If they differ, resume the job, or fork it with more attempts"
        " (retry.attempts). If the same error repeats, fork it with a clearer question or rule."
    ),
    Failure.TOKEN_BUDGET: "Submit it again with a larger token_budget, or send less history with each question.",
    Failure.DEADLINE: (
        "See below where the time went: slow answers, retries or tools. Then submit it again with a larger deadline_s."
    ),
    Failure.MAX_TURNS: "Check below whether its turns make progress. If they do, raise limits.max_turns.",
    Failure.TRANSITION_DENIED: (
        "The last turn chose an action without a transition. Add the transition, or remove the action from the schema."
    ),
    Failure.LOOP: (
        "The job repeated itself. Give the state a way out (max_visits with an exhausted transition) or a clearer"
        " question."
    ),
    Failure.SCHEMA_REJECTED: "The engine rejects the output schema. Read its error below, and simplify the schema.",
    Failure.REQUEST_REJECTED: (
        "The engine rejects the request. Read its error below: the key, the model name or the length of the context."
    ),
    Failure.REFUSED: "The model declined to answer. Read its answer below, and rephrase the question.",
    Failure.PERMISSION_DENIED: (
        "The key that submitted the job lacks a scope that the tool requires. Submit it with a key that has the scope."
    ),
    Failure.TOOL_FAILED: ("Read the tool's error below. Fix its cause, or give the state a transition for `error`."),
    Failure.EXPRESSION_ERROR: (
        "An expression of the workflow cannot be evaluated on this data. Fix it, and publish a new version."
    ),
    Failure.REJECTED: "The workflow itself ended in a failure state. The path below shows how it got there.",
}
"""What to do about a failed job."""


def sign(word: object) -> str:
    """Says the same as the colour; every outcome but ``valid`` is a failed one."""
    return SIGNS.get(str(word), "✗")


def spaced(word: object) -> str:
    return str(word).replace("_", " ")


def doing(job: Job, last: Event | None) -> str:
    """What a job is doing, in a line."""
    if job.workflow_paused:
        return f"Its workflow is paused. The job continues when {job.workflow} is unpaused."
    match job.status:
        case JobStatus.QUEUED:
            return "Queued for a worker. Is stepladder worker or stepladder up running?"
        case JobStatus.PAUSED:
            return "Paused. The job continues when it is unpaused."
        case JobStatus.WAITING if job.waiting_for == SETTLEMENT:
            cancelling = " Cancellation requested: the job ends once it is settled." if job.cancel_requested else ""
            return f"Waiting for settlement: a tool may or may not have taken effect.{cancelling}"
        case JobStatus.WAITING if job.waiting_for == CHILDREN:
            return "Waiting for the jobs that it called, listed below."
        case JobStatus.WAITING:
            return f"Waiting for the signal {job.waiting_for}."
        case JobStatus.RUNNING:
            return f"Running: {event_text(last)}." if last is not None else "Running."
        case JobStatus.SUCCEEDED:
            return "Succeeded."
        case JobStatus.FAILED:
            return f"Failed: {spaced(job.failure)}."
        case JobStatus.CANCELLED:
            return "Cancelled."
        case _:
            assert_never(job.status)
