"""Replays: what one may do, and what the HTTP API answers about them."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, Literal
from uuid import UUID

from pydantic import ConfigDict, Field

from stepladder.schemas.answer import Violation
from stepladder.schemas.outcomes import Outcome
from stepladder.schemas.shape import ResponseModel


class Mode(StrEnum):
    """What a replay does."""

    REVALIDATE = "revalidate"
    """Judge stored answers again, without requests and without writing."""
    RESUME = "resume"
    """Continue from the turn that failed, with the same version."""
    FORK = "fork"
    """Continue from any turn, with a changed document or another version."""


class JudgedAgain(ResponseModel):
    """A stored answer with its old and its new verdict.

    `now` is null if it could not be judged again; `unjudged` says why. Errors are included if it `changed`.
    """

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
    was_errors: tuple[Violation, ...] = ()
    now_errors: tuple[Violation, ...] = ()


class Revalidated(ResponseModel):
    """All answers of a job judged again, oldest first, and how many verdicts changed."""

    attempts: tuple[JudgedAgain, ...]
    changed: int


class BulkReplay(ResponseModel):
    """An order of many replays: `running`, `stopped`, or `done` once each has ended or waits for a person.

    `total` jobs matched `where` when it was ordered. `refused` counts by reason the jobs that cannot be replayed.
    """

    id: UUID
    mode: Mode
    state: Literal["running", "stopped", "done"]
    where: dict[str, Any]
    set: dict[str, Any]
    concurrency: int
    priority: int
    principal: str
    total: int
    jobs: dict[str, int] = Field(description="the replays so far, by status")
    refused: dict[str, int]
    handed_out: int = Field(description="the replays so far")
    created_at: datetime
    stopped_at: datetime | None = None
    scopes: frozenset[str] | None = Field(None, exclude=True)
    after_at: datetime | None = Field(None, exclude=True)
    after_id: UUID | None = Field(None, exclude=True)


class BulkEstimate(ResponseModel):
    """The answer to a dry run. `turns` would be asked again; `tokens` and `cost` are what they took before."""

    mode: Mode
    dry_run: Literal[True]
    jobs: int
    turns: int | None = None
    tokens: int | None = None
    cost: float | None = None
    currency: str | None = None
    refused: dict[str, int] = Field(default_factory=dict)


class DriftReport(ResponseModel):
    """Many jobs judged again: how many verdicts changed, in which jobs, and how."""

    model_config = ConfigDict(extra="allow")

    mode: Mode
    jobs: int
    attempts: int
    judged: int
    changed: int
