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
    "priority": 0,
    "metadata": {"order": "4711"},
    "principal": "local",
    "token_budget": 8000,
    "deadline_at": None,
    "event_count": 14,
}
WAIT_EXAMPLE: dict[str, Any] = {
    "signal": "approval",
    "state": "approve",
    "wait_id": ID,
    "show": {"total": 36},
    "frozen": {},
    "opened_at": AT,
    "until": AT,
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
    opened_at: datetime
    until: datetime | None


class Job(Shape):
    """A job. Times are UTC; `outcome`s are its attempts'."""

    model_config = ConfigDict(json_schema_extra={"example": JOB_EXAMPLE | {"wait": WAIT_EXAMPLE}})

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
    degraded: Any
    turn_count: int
    attempts: int
    tokens: int
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    replay_of: UUID | None
    priority: int
    metadata: dict[str, Any]
    principal: str
    token_budget: int | None
    deadline_at: datetime | None
    event_count: int
    wait: OpenWait | None = Field(None, description="only where one job is asked for")


class JobPage(Shape):
    """Newest first. `next_cursor` is null on the last page."""

    model_config = ConfigDict(json_schema_extra={"example": {"jobs": [JOB_EXAMPLE], "next_cursor": None}})

    jobs: list[Job]
    next_cursor: str | None


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


class Turn(Shape):
    """One visit to a state that asks the model."""

    ordinal: int
    state: str
    outcome: Outcome | None
    action: str | None
    output: Any
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


class Version(Shape):
    """A published version."""

    name: str
    version: int
    hash: str
    retired: bool
    created_at: datetime


class Finding(Shape):
    pointer: str
    reason: str
    code: str
    remedy: str
    line: int | None
    column: int | None


class Publication(Version):
    """A published version, with what may be worth a second look in it."""

    warnings: list[Finding]


class Document(Version):
    """A published version, and its definition in full."""

    document: dict[str, Any]


class Workflows(Shape):
    workflows: list[Version]


class EngineIdentity(Shape):
    """What an engine says of itself; what it does not say is null."""

    model: str
    version: str | None
    backend: str | None
    kind: str
    max_model_len: int | None
    models: list[str]


class Engines(Shape):
    engines: list[EngineIdentity]


class Check(Shape):
    name: str
    ok: bool
    detail: str


class Health(Shape):
    status: Literal["ok"]


class Readiness(Shape):
    status: Literal["ready", "not_ready"]
    checks: list[Check]
