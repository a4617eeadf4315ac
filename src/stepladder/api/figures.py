"""The shapes of statistics, as the specification shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import ConfigDict, Field

from stepladder.api.shapes import Shape
from stepladder.schemas.outcomes import Outcome

STATS_EXAMPLE: dict[str, Any] = {
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


class JobCounts(Shape):
    """Jobs that ended since then, and those that have not ended now."""

    succeeded: int
    failed: int
    cancelled: int
    live: int


class Rates(Shape):
    """From 0 to 1; null where there is nothing to take a share of."""

    validity: float | None = Field(description="of the answers that arrived, those that were accepted")
    truncation: float | None = Field(description="of the answers that arrived, those that were cut off")
    zero_token: float | None = Field(description="of the answers that arrived, those with nothing in them")
    transport: float | None = Field(description="of all attempts, those of which no complete answer arrived")
    first_pass_format: float | None = Field(description="of the first answers of turns, those that kept to the schema")
    semantic_pass: float | None = Field(description="of the answers that kept to the schema, those that broke no rule")


class TurnsByAttempts(Shape):
    attempts: int
    turns: int
    accepted: int


class OutcomeShare(Shape):
    """Attempts with one outcome and cause, and where their tokens went."""

    outcome: Outcome
    cause: str | None
    attempts: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None


class ObservedRule(Shape):
    """A rule of severity `observe`, and how many attempts broke it."""

    rule: str
    attempts: int


class WorkflowStats(Shape):
    """One workflow, all its versions together. A usable output is the answer of a turn that was accepted.

    Tokens and cost are of all attempts, retries included; cost is null unless the price of each is known, in one
    currency.
    """

    model_config = ConfigDict(json_schema_extra={"example": STATS_EXAMPLE})

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


class Stats(Shape):
    since: datetime
    workflows: list[WorkflowStats]
