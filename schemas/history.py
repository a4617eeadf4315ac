"""What a job went through, as the HTTP API answers it: turns and attempts, events, tools, waits, calls and signals."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema

from stepladder.schemas.answer import Usage, Violation
from stepladder.schemas.degraded import Degraded
from stepladder.schemas.event import EventKind
from stepladder.schemas.outcomes import Outcome, Rungs
from stepladder.schemas.responses import AT, Reason
from stepladder.schemas.shape import ResponseModel


class Engine(ResponseModel):
    """Which engine answered an attempt."""

    model: str | None = None
    version: str | None = None
    backend: str | None = None


class Attempt(ResponseModel):
    """One request to the engine; times in milliseconds. In flight it has no `outcome`, `rungs` and `usage`."""

    id: UUID
    ordinal: int
    outcome: Outcome | None
    cause: str | None
    rungs: Rungs | None
    errors: tuple[Violation, ...]
    observed: tuple[Violation, ...]
    finish_reason: str | None
    http_status: int | None
    usage: Usage | None
    ttft_ms: float | None
    tpot_ms: float | None
    duration_ms: float | None
    max_completion_tokens: int
    sampling: dict[str, Any]
    schema_hash: str
    engine: Engine
    request_id: str
    note: str
    content: str | None = Field(description="the completion's text; bytes that are not UTF-8 show as U+FFFD")
    started_at: datetime
    arrived_at: datetime | None = Field(None, description="when its answer was stored")
    cost: float | None = Field(None, description="by the price at that time; null where none is known")
    content_bytes: SkipJsonSchema[bytes | None] = Field(None, exclude=True, repr=False)
    """The completion byte for byte; set by the read service alone."""


class TurnVisit(ResponseModel):
    """One visit to a state that asks the model."""

    ordinal: int
    state: str
    outcome: Outcome | None
    action: str | None
    output: Any
    degraded: Degraded | None
    carried: bool
    question: str
    started_at: datetime
    finished_at: datetime | None
    attempts: tuple[Attempt, ...]


class Event(ResponseModel):
    """One line of a job's history."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "ordinal": 1, "kind": "job_created", "turn": None, "attempt": None, "data": {}, "at": AT,
            }
        }
    )  # fmt: skip

    ordinal: int
    kind: EventKind
    turn: int | None
    attempt: int | None
    data: dict[str, Any]
    at: datetime


class ToolVisit(ResponseModel):
    """One visit to a state that runs a tool. Of its `runs`, `failed` returned an error and `lost` lost their worker."""

    visit: int
    state: str
    tool: str
    effect: str
    arguments: Any
    key: str
    runs: int
    failed: int
    lost: int
    result: Any
    error: Reason | None
    carried: bool
    opened_at: datetime
    closed_at: datetime | None


class WaitVisit(ResponseModel):
    """One visit to a state that waits for a signal, with the signal that it took, if any."""

    visit: int
    state: str
    signal: str
    wait_id: UUID
    show: Any
    frozen: dict[str, Any]
    action: str | None
    payload: Any
    signal_id: UUID | None
    carried: bool
    opened_at: datetime
    until: datetime | None
    closed_at: datetime | None


class CallVisit(ResponseModel):
    """One visit to a state that calls other jobs, which are the job's `children`."""

    visit: int
    state: str
    workflow: str
    version: int | None
    inputs: tuple[Any, ...]
    result: Any
    error: Reason | None
    carried: bool
    opened_at: datetime
    closed_at: datetime | None


class ReceivedSignal(ResponseModel):
    """A signal that the job received, and when a wait took it, if one did."""

    id: UUID
    name: str
    payload: Any
    by: str
    received_at: datetime
    taken_at: datetime | None


class Timeline(ResponseModel):
    """What happened between a job's turns, each oldest first. `turns` gives the visit of each turn by its ordinal."""

    turns: dict[int, int] = Field(examples=[{"1": 1, "2": 3}])
    tools: tuple[ToolVisit, ...]
    waits: tuple[WaitVisit, ...]
    calls: tuple[CallVisit, ...]
    signals: tuple[ReceivedSignal, ...]
