"""What the API answers, as the specification shows it. Fields may be added; none is renamed or dropped."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from stepladder.schemas.event import EventKind
from stepladder.schemas.job import Failure, JobStatus
from stepladder.schemas.outcomes import Outcome, RungState

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


class Shape(BaseModel):
    model_config = ConfigDict(extra="allow")


class Mistake(Shape):
    """One place: a JSON pointer into the body, or, for a parameter, its name."""

    pointer: str
    reason: str
    parameter: str | None = None


class Problem(Shape):
    """What went wrong (RFC 9457), and, in `remedy`, what to do next."""

    type: str = Field(examples=["urn:stepladder:problem:invalid-request"])
    title: str = Field(examples=["Invalid request"])
    status: int = Field(examples=[422])
    detail: str = Field(examples=["the input does not fit workflow usage-bill 1"])
    errors: list[Mistake] = Field(examples=[[{"pointer": "/input/team", "reason": "must be a string, not 5"}]])
    remedy: str = Field(examples=["mend the input; nothing was stored"])


class OpenWait(Shape):
    """The wait that a job is in: what it shows, and the `wait_id` by which a signal can name it."""

    model_config = ConfigDict(json_schema_extra={"example": WAIT_EXAMPLE})

    signal: str
    state: str
    wait_id: UUID
    show: Any
    frozen: dict[str, Any]
    by: Literal["anyone", "other"] = Field(description="`other` than the job's own principal has to send it")
    scopes: list[str] = Field(description="what its sender needs beside `signals:write`")
    opened_at: datetime
    until: datetime | None


class Reason(Shape):
    kind: str = Field(description="`worker_lost`, `timeout`, `effect_unknown`")
    message: str


class Said(Shape):
    """What a person said of the call, until a worker takes it up."""

    done: bool
    result: Any
    by: str


class OpenSettlement(Shape):
    """The call of an irreversible tool that may have taken effect. `route` takes what a person says of it."""

    model_config = ConfigDict(json_schema_extra={"example": SETTLEMENT_EXAMPLE})

    state: str
    tool: str
    arguments: dict[str, Any]
    key: str = Field(description="the call's idempotency key, by which to look for its effect")
    reason: Reason | None
    opened_at: datetime = Field(description="when the tool was begun")
    said: Said | None
    route: str


class Loss(Shape):
    """One thing that is lost or unsure: where in the answer as the model wrote it (a JSON pointer), and why."""

    pointer: str
    reason: str


class Degraded(Shape):
    """What was kept of the answer of an attempt when its turn was given up: no output, and nothing reads it."""

    value: Any
    lost: list[Loss]
    attempt: int
    outcome: Outcome


class Child(Shape):
    """A job that was called by another, in its visit of that number, as the child of that index."""

    id: UUID
    visit: int
    index: int
    workflow: str
    version: int
    status: JobStatus
    state: str | None
    waiting_for: str | None
    failure: Failure | None
    tokens: int = Field(description="its own; those of the jobs that it called come on top")


class Job(Shape):
    """A job. Times are UTC; `outcome`s are its attempts'."""

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
        description="by state, what was kept of its last turn where that was given up and its document says `degrade`"
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
    priority: int
    metadata: dict[str, Any]
    principal: str
    token_budget: int | None
    deadline_at: datetime | None
    event_count: int
    cancel_requested: bool = Field(description="it ends as soon as it may; an effect that nobody knows comes first")
    workflow_paused: bool = Field(description="nobody goes on with it, since its workflow is paused")
    cost: float | None = Field(None, description="of all its attempts; null unless the price of each is known")
    currency: str | None = None
    hold_at: datetime | None = Field(None, description="since when retention is to leave it alone")
    hold_by: str | None = None
    raw_gone_at: datetime | None = Field(None, description="when retention took its raw answers away")
    events_gone_at: datetime | None = Field(None, description="when retention took its history away")
    wait: OpenWait | None = Field(None, description="only where one job is asked for")
    settlement: OpenSettlement | None = Field(None, description="only where one job is asked for")
    children: list[Child] | None = Field(
        None, description="the jobs that it called, up to 1,000; only where one job is asked for"
    )
    replays: list[UUID] | None = Field(None, description="made from this job; only where one job is asked for")


class JudgedAgain(Shape):
    """One attempt with both outcomes. `now` is null where it could not be judged again, and `unjudged` says why."""

    id: UUID
    turn: int
    attempt: int
    state: str
    was: Outcome
    now: Outcome | None
    was_cause: str | None
    now_cause: str | None
    changed: bool
    unjudged: str | None = Field(description="`broken_off`, `gone`, `no_state`")


class Replayed(Shape):
    """Every attempt judged again, and how many verdicts are others now; or the job that a key stands for."""

    attempts: list[JudgedAgain] | int = Field(default_factory=list)
    changed: int = 0


class BulkReplay(Shape):
    """An order of many replays: `running`, `stopped`, or `done` once each has ended or waits for somebody.

    With `dry_run` it is what it would do, and with `revalidate` the report. `refused` counts by reason the jobs that
    cannot be replayed.
    """

    id: UUID | None = None
    mode: str
    state: str | None = None
    where: dict[str, Any] = Field(default_factory=dict)
    total: int | None = Field(None, description="jobs that passed the filter")
    jobs: dict[str, int] | int = Field(description="replays by status; of a dry run and a report, how many jobs")
    refused: dict[str, int] = Field(default_factory=dict)


class JobPage(Shape):
    """Newest first. `next_cursor` is null on the last page.

    A search ends a page after it has read the answers of so many jobs, found or not: `looked_back_to` is when the last
    of them was made, and `next_cursor` goes on behind it.
    """

    model_config = ConfigDict(json_schema_extra={"example": {"jobs": [JOB_EXAMPLE], "next_cursor": None}})

    jobs: list[Job]
    next_cursor: str | None
    looked_back_to: datetime | None = Field(None, description="of a search")


class Jobs(Shape):
    """The jobs of a batch, in its order."""

    model_config = ConfigDict(json_schema_extra={"example": {"jobs": [JOB_EXAMPLE]}})

    jobs: list[Job]


class Rungs(Shape):
    termination: RungState
    parse: RungState
    schema_: RungState = Field(alias="schema")
    semantic: RungState


class Violation(Shape):
    pointer: str
    reason: str
    source: str


class Usage(Shape):
    prompt_tokens: int
    completion_tokens: int


class Engine(Shape):
    model: str | None
    version: str | None
    backend: str | None


class Attempt(Shape):
    """One request to the engine. In flight it has no outcome, rungs and usage."""

    id: UUID
    ordinal: int
    outcome: Outcome | None
    cause: str | None
    rungs: Rungs | None
    errors: list[Violation]
    observed: list[Violation]
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
    content: str | None = Field(description="the completion's text; what is no UTF-8 in it shows as U+FFFD")
    started_at: datetime
    arrived_at: datetime | None = Field(None, description="when its answer was stored")
    cost: float | None = Field(None, description="by the price that held; null where none is known")


class Turn(Shape):
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
    attempts: list[Attempt]


class Event(Shape):
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


class Signalled(Shape):
    """`accepted`, or `duplicate` where a signal with this id was there already."""

    status: Literal["accepted", "duplicate"]
    signal_id: UUID
