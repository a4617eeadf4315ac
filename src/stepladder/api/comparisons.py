"""The shapes of jobs laid beside each other, as the specification shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import Field

from stepladder.schemas.experiment import ExperimentKind
from stepladder.schemas.job import Failure, JobStatus
from stepladder.schemas.outcomes import Outcome
from stepladder.schemas.shape import ResponseModel


class Change(ResponseModel):
    """One place, by its JSON pointer: into the first value for what was removed, into the second for the rest."""

    kind: Literal["added", "removed", "changed"]
    pointer: str
    was: Any = Field(None, description="missing where something was added")
    now: Any = Field(None, description="missing where something was removed")


class Visited(ResponseModel):
    """One visit to a state that asks, runs a tool, waits, or calls other jobs."""

    visit: int
    turn: int | None
    outcome: str | None = Field(description="of a turn; of a tool or a call `ok` or `error`")
    cause: str | None = Field(description="of the turn's last attempt; of a tool the kind of its error")
    action: str | None
    given: Any = Field(description="a tool's arguments, a call's inputs, what a wait shows")
    output: Any = Field(description="a turn's output, a tool's result, a signal's payload")
    attempts: int | None
    tokens: int | None
    ms: float | None
    carried: bool


class PairOfVisits(ResponseModel):
    """The `nth` visit of a state in both jobs; null on the side of a job that made none.

    `differs` names what is not the same; tokens and time hardly ever are, and do not count.
    """

    kind: Literal["turn", "tool", "wait", "call"]
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
    """Two jobs, visit by visit. `same`: both went the same way to the same end."""

    job: Ran
    other: Ran
    same: bool
    input: list[Change]
    result: list[Change]
    visits: list[PairOfVisits]


class Interval(ResponseModel):
    """What was seen of `count` observations, and between what the true value lies 95 times in 100.

    `clear`: zero lies outside, which for a difference says that it is more than chance.
    """

    value: float
    low: float | None
    high: float | None
    count: int
    clear: bool


class OutcomeCount(ResponseModel):
    outcome: Outcome
    cause: str | None
    attempts: int


class Measured(ResponseModel):
    """`rates` are `succeeded` (of jobs), `first_pass_format`, `semantic_pass` and `validity`; `per_job` are means of
    `tokens`, `cost` and `engine_ms`. Null where there is nothing to tell of."""

    rates: dict[str, Interval | None]
    per_job: dict[str, Interval | None]


class Arm(Measured):
    jobs: dict[str, int] = Field(description="by status")
    failures: dict[str, int]
    attempts: int
    outcomes: list[OutcomeCount]
    currency: str | None


class Pairs(ResponseModel):
    """Inputs by which arm succeeded with them. `p`: how likely chance alone splits the others so unevenly."""

    inputs: int
    both: int
    only_first: int
    only_second: int
    neither: int
    p: float | None


class Difference(Measured):
    """The second arm less the first; means are of inputs that both have come to rest with, each beside itself."""

    pairs: Pairs


class ExperimentRun(ResponseModel):
    sample: int
    arm: str
    job: UUID
    status: JobStatus
    failure: Failure | None
    attempts: int
    tokens: int


class FieldAgreement(ResponseModel):
    """One field of one place, in all jobs that came there. `empty` is of required fields alone."""

    where: str
    pointer: str
    jobs: int
    agreement: float = Field(description="the share of the most frequent value")
    distinct: int
    missing: int
    common: Any
    required: bool
    empty: float | None


class ExperimentHead(ResponseModel):
    id: UUID
    kind: ExperimentKind
    name: str
    workflow: str
    version: int
    variant: str | None
    samples: int
    principal: str
    share: float | None = Field(description="of a shadow: of the live jobs")
    created_at: datetime
    stopped_at: datetime | None


class Experiment(ExperimentHead):
    """An experiment as it stands. Jobs that are not at rest (ended, or waiting for somebody) are only counted."""

    jobs: int
    at_rest: int
    arms: dict[str, Arm]
    changes: dict[str, dict[str, Any]] = Field(description="what each arm changes in the document")
    difference: Difference | None = None
    runs: list[ExperimentRun]
    fields: list[FieldAgreement] | None = None


class ListedExperiment(ExperimentHead):
    changes: dict[str, dict[str, Any]]


class Experiments(ResponseModel):
    """Newest first."""

    experiments: list[ListedExperiment]
