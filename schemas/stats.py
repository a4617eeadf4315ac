"""Statistics of attempts, turns and jobs, as the API answers them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, Field

from stepladder.schemas.outcomes import Outcome
from stepladder.schemas.shape import ResponseModel, Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

EXAMPLE: dict[str, Any] = {
    "workflow": "usage-bill",
    "jobs": {"succeeded": 1, "failed": 0, "cancelled": 0, "live": 1},
    "attempts": 4,
    "answers": 4,
    "usable": 3,
    "rates": {
        "validity": 0.75, "truncation": 0.0, "zero_token": 0.0, "transport": 0.0, "first_pass_format": 1.0,
        "semantic_pass": 0.75,
    },
    "attempts_per_turn": [
        {"attempts": 1, "turns": 2, "accepted": 2}, {"attempts": 2, "turns": 1, "accepted": 1},
    ],
    "outcomes": [
        {
            "outcome": "valid", "cause": None, "attempts": 3, "prompt_tokens": 300, "completion_tokens": 60,
            "cost": 0.000081,
        },
        {
            "outcome": "semantic", "cause": "arithmetic", "attempts": 1, "prompt_tokens": 100, "completion_tokens": 20,
            "cost": 0.000027,
        },
    ],
    "observed": [],
    "prompt_tokens": 400,
    "completion_tokens": 80,
    "tokens_per_usable": 160.0,
    "cost": 0.000108,
    "cost_per_usable": 0.000036,
    "currency": "EUR",
}  # fmt: skip

RATES: Mapping[str, tuple[str, str]] = {
    "validity": ("usable", "answers"),
    "truncation": ("truncated", "answers"),
    "zero_token": ("zero_token", "answers"),
    "transport": ("lost", "attempts"),
    "first_pass_format": ("first_answers_in_format", "first_answers"),
    "semantic_pass": ("answers_semantic_valid", "answers_in_format"),
}
"""Each rate as part and whole, by the columns of ``models.counts.COUNTS``."""


class Rates(ResponseModel):
    """From 0 to 1; null if the denominator is 0."""

    validity: float | None = Field(description="of the answers that arrived, those that were accepted")
    truncation: float | None = Field(description="of the answers that arrived, those that were cut off")
    zero_token: float | None = Field(description="of the answers that arrived, those with no content")
    transport: float | None = Field(description="of all attempts, those without a complete answer")
    first_pass_format: float | None = Field(description="of the first answers of turns, those that match the schema")
    semantic_pass: float | None = Field(description="of the answers that match the schema, those that break no rule")

    @classmethod
    def of(cls, counts: Iterable[Mapping[str, Any]]) -> Rates:
        """The rates of rows of counts, added up."""
        rows = list(counts)
        return cls(**{name: ratio(total(rows, part), total(rows, whole)) for name, (part, whole) in RATES.items()})


class JobCounts(ResponseModel):
    """Jobs that ended in the period, and those that are live now."""

    succeeded: int
    failed: int
    cancelled: int
    live: int


class TurnsByAttempts(ResponseModel):
    """How many turns were closed after each number of attempts."""

    attempts: int
    turns: int
    accepted: int


class OutcomeShare(ResponseModel):
    """Attempts with one outcome and cause, and their tokens. The cost is null unless every price is known."""

    outcome: Outcome
    cause: Text | None
    attempts: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None


class ObservedRule(ResponseModel):
    """A rule of severity `observe`, and how many attempts broke it."""

    rule: Text
    attempts: int


class WorkflowStats(ResponseModel):
    """One workflow, all its versions together. A usable output is the answer of a turn that was accepted.

    Tokens and cost are of all attempts, retries included; cost is null unless the price of each is known, in one
    currency.
    """

    model_config = ConfigDict(json_schema_extra={"example": EXAMPLE})

    workflow: str
    jobs: JobCounts
    attempts: int
    answers: int
    usable: int
    rates: Rates
    attempts_per_turn: list[TurnsByAttempts]
    outcomes: list[OutcomeShare]
    observed: list[ObservedRule]
    prompt_tokens: int
    completion_tokens: int
    tokens_per_usable: float | None
    cost: float | None
    cost_per_usable: float | None
    currency: str | None


class Stats(ResponseModel):
    """The statistics of each workflow that did anything in the period."""

    since: datetime
    workflows: list[WorkflowStats]


def total(rows: Iterable[Mapping[str, Any]], name: str) -> int:
    return sum(row[name] for row in rows)


def ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None
