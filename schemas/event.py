"""One line of a job's history."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepladder.schemas.jsontypes import JsonObject


class EventKind(StrEnum):
    """What happened. The values are stored: members may be added but never renamed."""

    JOB_CREATED = "job_created"
    JOB_STARTED = "job_started"
    JOB_TAKEN_OVER = "job_taken_over"
    TURN_STARTED = "turn_started"
    ATTEMPT_JUDGED = "attempt_judged"
    ATTEMPT_ABANDONED = "attempt_abandoned"
    RETRY_SCHEDULED = "retry_scheduled"
    TURN_ACCEPTED = "turn_accepted"
    TURN_FAILED = "turn_failed"
    TURN_DEGRADED = "turn_degraded"
    TRANSITION = "transition"
    TOOL_STARTED = "tool_started"
    TOOL_RETURNED = "tool_returned"
    TOOL_FAILED = "tool_failed"
    TOOL_CARRIED = "tool_carried"
    LIST_STARTED = "list_started"
    LIST_ENDED = "list_ended"
    CALL_STARTED = "call_started"
    CALL_RETURNED = "call_returned"
    CALL_FAILED = "call_failed"
    PERMISSION_DENIED = "permission_denied"
    WAIT_STARTED = "wait_started"
    SIGNAL_TAKEN = "signal_taken"
    SIGNAL_REFUSED = "signal_refused"
    WAIT_TIMED_OUT = "wait_timed_out"
    SETTLEMENT_NEEDED = "settlement_needed"
    SETTLED = "settled"
    JOB_PAUSED = "job_paused"
    JOB_UNPAUSED = "job_unpaused"
    JOB_SUCCEEDED = "job_succeeded"
    JOB_FAILED = "job_failed"
    JOB_CANCELLED = "job_cancelled"


FINAL = (EventKind.JOB_SUCCEEDED, EventKind.JOB_FAILED, EventKind.JOB_CANCELLED)
"""The last event of a history."""


@dataclass(frozen=True, slots=True)
class HistoryEvent:
    """``ordinal`` counts from 1 within the job; ``data`` holds what the kind speaks of, in small."""

    ordinal: int
    kind: EventKind
    turn: int | None = None
    attempt: int | None = None
    data: JsonObject = field(default_factory=dict)
