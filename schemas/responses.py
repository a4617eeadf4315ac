"""What the HTTP API answers about jobs. The read service returns these models, and the clients give them to users.

Fields may be added; none is renamed or removed. A field that was not read is not set, and is left out of the JSON.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import ConfigDict, Field

from stepladder.schemas.degraded import Degraded
from stepladder.schemas.job import Failure, JobStatus
from stepladder.schemas.shape import ResponseModel

ID = "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5a6b"
AT = "2026-01-31T12:30:00.123456Z"

JOB_EXAMPLE: dict[str, Any] = {
    "id": ID,
    "workflow": "usage-bill",
    "version": 1,
    "status": "waiting",
    "state": "approve",
    "waiting_for": "approval",
    "failure": None,
    "failure_detail": None,
    "input": {"team": "search"},
    "result": None,
    "degraded": None,
    "turn_count": 2,
    "attempts": 3,
    "tokens": 308,
    "created_at": AT,
    "started_at": AT,
    "finished_at": None,
    "replay_of": None,
    "parent": None,
    "variant": None,
    "bulk": None,
    "priority": 0,
    "metadata": {"order": "4711"},
    "principal": "local",
    "token_budget": 8000,
    "deadline_at": None,
    "event_count": 14,
    "cancel_requested": False,
    "workflow_paused": False,
    "cost": 0.0004,
    "currency": "EUR",
    "hold_at": None,
    "hold_by": None,
    "raw_gone_at": None,
    "events_gone_at": None,
}
WAIT_EXAMPLE: dict[str, Any] = {
    "signal": "approval",
    "state": "approve",
    "wait_id": ID,
    "show": {"total": 36},
    "frozen": {},
    "by": "other",
    "scopes": ["refund:approve"],
    "opened_at": AT,
    "until": AT,
}
SETTLEMENT_EXAMPLE: dict[str, Any] = {
    "state": "pay",
    "tool": "pay_refund",
    "arguments": {"order": "A-1001", "cents": 3490},
    "key": "5f1c0a3b9d8e7f6a5b4c3d2e1f0a9b8c7d6e5f4a",
    "reason": {"kind": "timeout", "message": "it did not come back within 300 s"},
    "opened_at": AT,
    "said": None,
    "route": f"/v1/jobs/{ID}/settle",
}


class OpenWait(ResponseModel):
    """The wait that a job is in: what it shows, and the `wait_id` by which a signal can name it."""

    model_config = ConfigDict(json_schema_extra={"example": WAIT_EXAMPLE})

    signal: str
    state: str
    wait_id: UUID
    show: Any
    frozen: dict[str, Any] = Field(description="by state, the calls of irreversible tools that it leads to")
    by: Literal["anyone", "other"] = Field(description="`other`: the job's own principal may not send it")
    scopes: tuple[str, ...] = Field(description="what its sender needs besides `signals:write`")
    opened_at: datetime
    until: datetime | None


class Reason(ResponseModel):
    """Why a tool or a called job gave no result."""

    kind: str = Field(description="such as `worker_lost`, `timeout`, `effect_unknown`")
    message: str


class Said(ResponseModel):
    """The settlement that a person sent, until a worker processes it."""

    done: bool
    result: Any
    by: str


class OpenSettlement(ResponseModel):
    """The call of an irreversible tool that may have taken effect. `route` is where to settle it."""

    model_config = ConfigDict(json_schema_extra={"example": SETTLEMENT_EXAMPLE})

    state: str
    tool: str
    arguments: dict[str, Any]
    key: str = Field(description="the call's idempotency key, by which to look for its effect")
    reason: Reason | None
    opened_at: datetime = Field(description="when the tool was started")
    said: Said | None
    route: str


class ChildJob(ResponseModel):
    """A job that another job called: at which visit of the caller, and at which index of that call, from 1."""

    id: UUID
    visit: int
    index: int
    workflow: str
    version: int
    status: JobStatus
    state: str | None
    waiting_for: str | None
    failure: Failure | None
    tokens: int = Field(description="its own, without those of jobs that it called")


class Misfit(ResponseModel):
    """A turn whose output was carried over from another job, and breaks the schema of its state now."""

    turn: int
    pointer: str
    reason: str


class Job(ResponseModel):
    """A job. Times are UTC."""

    model_config = ConfigDict(json_schema_extra={"example": JOB_EXAMPLE | {"wait": WAIT_EXAMPLE, "settlement": None}})

    id: UUID
    workflow: str
    version: int
    status: JobStatus
    state: str | None
    waiting_for: str | None
    failure: Failure | None
    failure_detail: str | None
    input: Any
    result: Any
    degraded: dict[str, Degraded] | None = Field(
        description="by state, the degraded result of its last turn, if that failed and the document says `degrade`"
    )
    turn_count: int
    attempts: int
    tokens: int
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    replay_of: UUID | None
    parent: UUID | None = Field(description="the job that called this one")
    variant: str | None = Field(None, description="of a fork by a changed document: its hash")
    bulk: UUID | None = Field(None, description="the bulk replay that made it")
    priority: int
    metadata: dict[str, Any]
    principal: str
    token_budget: int | None
    deadline_at: datetime | None
    event_count: int = Field(description="the ordinal of its last event")
    cancel_requested: bool = Field(description="it ends as soon as it may; an unsettled effect is settled first")
    workflow_paused: bool = Field(description="no worker continues it, because its workflow is paused")
    cost: float | None = Field(None, description="of all its attempts; null unless the price of each is known")
    currency: str | None = None
    hold_at: datetime | None = Field(None, description="since when it is exempt from retention")
    hold_by: str | None = None
    raw_gone_at: datetime | None = Field(None, description="when retention removed its raw answers")
    events_gone_at: datetime | None = Field(None, description="when retention removed its history")
    wait: OpenWait | None = Field(None, description="only in the answer about one job")
    settlement: OpenSettlement | None = Field(None, description="only in the answer about one job")
    children: tuple[ChildJob, ...] = Field(
        (), description="the jobs that it called, up to 1,000; only in the answer about one job"
    )
    replays: tuple[UUID, ...] = Field((), description="made from this job; only in the answer about one job")
    misfits: tuple[Misfit, ...] = Field((), description="only in the answer to a replay")


class JobPage(ResponseModel):
    """Jobs, newest first. `next_cursor` is null on the last page.

    A search reads a bounded number of jobs for one page, whether they match or not: `looked_back_to` is when the last
    of them was created, and `next_cursor` continues after it.
    """

    model_config = ConfigDict(json_schema_extra={"example": {"jobs": [JOB_EXAMPLE], "next_cursor": None}})

    jobs: tuple[Job, ...]
    next_cursor: str | None
    looked_back_to: datetime | None = Field(None, description="of a search")


class Jobs(ResponseModel):
    """The jobs of a batch, in its order."""

    model_config = ConfigDict(json_schema_extra={"example": {"jobs": [JOB_EXAMPLE]}})

    jobs: tuple[Job, ...]


class Signalled(ResponseModel):
    """`accepted`, or `duplicate` if a signal with this id had arrived already."""

    status: Literal["accepted", "duplicate"]
    signal_id: UUID
