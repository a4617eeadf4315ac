"""Two jobs, visit by visit, as the API answers it."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias
from uuid import UUID

from pydantic import Field

from stepladder.schemas.job import Failure, JobStatus
from stepladder.schemas.shape import ResponseModel, Text

VisitKind: TypeAlias = Literal["turn", "tool", "wait", "call"]


class Change(ResponseModel):
    """One place, by its JSON pointer: into the first value for what was removed, into the second otherwise."""

    kind: Literal["added", "removed", "changed"]
    pointer: Text
    was: Any = Field(None, description="missing where something was added")
    now: Any = Field(None, description="missing where something was removed")


class Visited(ResponseModel):
    """One visit to a state that asks, runs a tool, waits, or calls other jobs."""

    visit: int
    turn: int | None
    outcome: Text | None = Field(description="of a turn; of a tool or a call `ok` or `error`; null while it is open")
    cause: Text | None = Field(description="of the turn's last attempt; of a tool the kind of its error")
    action: Text | None
    given: Any = Field(description="a tool's arguments, a call's inputs, what a wait shows")
    output: Any = Field(description="a turn's output, a tool's result, a signal's payload")
    attempts: int | None = Field(description="of a turn; of a tool its runs")
    tokens: int | None = Field(description="of all attempts")
    ms: float | None = Field(description="from the start of the visit to its end")
    carried: bool


class PairOfVisits(ResponseModel):
    """The `nth` visit of a state in both jobs; null for a job that did not make it.

    `differs` names the fields that differ. Tokens and time are ignored: they almost always differ.
    """

    kind: VisitKind
    state: str
    nth: int
    was: Visited | None
    now: Visited | None
    differs: list[str]
    given: list[Change]
    output: list[Change]


class Ran(ResponseModel):
    """A job at a glance. `seconds` are from its first step to its end, waits included."""

    id: UUID
    workflow: str
    version: int
    variant: str | None
    status: JobStatus
    failure: Failure | None
    turns: int
    attempts: int
    tokens: int
    cost: float | None
    currency: str | None
    seconds: float | None


class JobDiff(ResponseModel):
    """Two jobs, visit by visit. `same`: both took the same path to the same end."""

    job: Ran
    other: Ran
    same: bool
    input: list[Change]
    result: list[Change]
    visits: list[PairOfVisits]
