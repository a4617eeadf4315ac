"""Replays: what one may do, and what the HTTP API answers about them."""

from __future__ import annotations

from enum import StrEnum
from typing import Any
from uuid import UUID

from pydantic import Field

from stepladder.schemas.answer import Violation
from stepladder.schemas.outcomes import Outcome
from stepladder.schemas.shape import ResponseModel


class Mode(StrEnum):
    """What a replay is to do."""

    REVALIDATE = "revalidate"
    """Judge what is stored again. Nothing is asked, and nothing written."""
    RESUME = "resume"
    """Go on from the turn that failed, by the same version."""
    FORK = "fork"
    """Go on from any turn, by a changed document or another version."""


class JudgedAgain(ResponseModel):
    """A stored answer with its old and its new verdict.

    `now` is null where it could not be judged again; `unjudged` says why. The errors are there where it `changed`.
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
