"""Experiments as the API answers them: variants of a workflow on the same inputs, and how they compare."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from pydantic import Field

from stepladder.schemas.job import Failure, JobStatus
from stepladder.schemas.outcomes import Outcome
from stepladder.schemas.shape import ResponseModel, Text


class ExperimentKind(StrEnum):
    """Two variants on the same inputs, one variant many times, or a variant shadowing a share of live jobs."""

    COMPARISON = "comparison"
    STABILITY = "stability"
    SHADOW = "shadow"


class Interval(ResponseModel):
    """An estimate from `count` observations, and the bounds that contain the true value 95 times in 100.

    Without bounds nothing is known of its certainty. `clear`: both bounds are on one side of zero, so that a difference
    is more than chance.
    """

    value: float
    low: float | None
    high: float | None
    count: int
    clear: bool


class OutcomeCount(ResponseModel):
    """Attempts with one outcome and cause."""

    outcome: Outcome
    cause: Text | None
    attempts: int


class Measured(ResponseModel):
    """`rates` are `succeeded` (of jobs), `first_pass_format`, `semantic_pass` and `validity`; `per_job` are means of
    `tokens`, `cost` and `engine_ms`. Null without anything to measure."""

    rates: dict[str, Interval | None]
    per_job: dict[str, Interval | None]


class Arm(Measured):
    """What one variant did. Only `jobs` and `failures` include jobs that still run."""

    jobs: dict[str, int] = Field(description="by status")
    failures: dict[str, int]
    attempts: int
    outcomes: list[OutcomeCount]
    currency: str | None


class Pairs(ResponseModel):
    """Inputs by which variant succeeded. `p`: how likely chance alone splits the others so unevenly."""

    inputs: int
    both: int
    only_first: int
    only_second: int
    neither: int
    p: float | None


class Difference(Measured):
    """The second variant minus the first. Means are of inputs that both have finished, paired by input."""

    pairs: Pairs


class Report(ResponseModel):
    """Jobs that are not at rest (ended, or waiting for a person) are only counted. Two variants have a `difference`."""

    jobs: int
    at_rest: int
    arms: dict[str, Arm]
    difference: Difference | None = None


class ExperimentRun(ResponseModel):
    """One job of an experiment: input number `sample`, run by the variant `arm`."""

    sample: int
    arm: str
    job: UUID
    status: JobStatus
    failure: Failure | None
    attempts: int
    tokens: int


class FieldAgreement(ResponseModel):
    """One field of a result or of a state's output, in all jobs that reached it.

    A missing field counts as a value. `empty` is only for required fields: the share of jobs where it was missing,
    null, or had no content.
    """

    where: str
    pointer: Text
    jobs: int
    agreement: float = Field(description="the share of the most frequent value")
    distinct: int
    missing: int
    common: Any
    required: bool
    empty: float | None


class ExperimentHead(ResponseModel):
    """An experiment without its jobs. `samples` are its inputs, or how often one job is run.

    A shadow runs its second variant for a `share` of live jobs until `stopped_at`; those are its first variant.
    """

    id: UUID
    kind: ExperimentKind
    name: str
    workflow: str
    version: int
    variant: str | None
    samples: int
    principal: str
    share: float | None = Field(None, description="of a shadow: of the live jobs")
    changes: dict[str, dict[str, Any]] = Field(description="what each variant changes in the document")
    created_at: datetime
    stopped_at: datetime | None = None
    scopes: frozenset[str] | None = Field(None, exclude=True)


class Experiment(ExperimentHead, Report):
    """An experiment, its jobs, and their results. `fields` apply to one variant run many times."""

    runs: list[ExperimentRun]
    fields: list[FieldAgreement] | None = None


class Experiments(ResponseModel):
    """Newest first."""

    experiments: list[ExperimentHead]
