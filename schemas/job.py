"""A job's status and failure codes."""

from __future__ import annotations

from enum import StrEnum


class JobStatus(StrEnum):
    """The last three are final."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    PAUSED = "paused"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def final(self) -> bool:
        return self in (JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.CANCELLED)


class Failure(StrEnum):
    """Why a job failed. ``rejected`` means that the machine itself ended in a failure state."""

    ATTEMPTS_EXHAUSTED = "attempts_exhausted"
    TOKEN_BUDGET = "token_budget"  # noqa: S105 -- a failure code, not a secret
    DEADLINE = "deadline"
    MAX_TURNS = "max_turns"
    TRANSITION_DENIED = "transition_denied"
    LOOP = "loop"
    SCHEMA_REJECTED = "schema_rejected"
    REQUEST_REJECTED = "request_rejected"
    REFUSED = "refused"
    PERMISSION_DENIED = "permission_denied"
    TOOL_FAILED = "tool_failed"
    EXPRESSION_ERROR = "expression_error"
    REJECTED = "rejected"


SETTLEMENT = "settlement"
"""What a job waits for when it is unknown whether an irreversible tool took effect."""

CHILDREN = "children"
"""What a job waits for while the jobs that it called run."""
