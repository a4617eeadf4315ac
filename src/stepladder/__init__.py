"""Stepladder: durable multi-turn agents as explicit state machines over a self-hosted engine."""

from stepladder.schemas.document import (
    Ask,
    Call,
    Chosen,
    End,
    Limits,
    Loop,
    Retry,
    RuleSpec,
    Sampling,
    Wait,
    WaitSpec,
    Workflow,
)
from stepladder.schemas.errors import BadInputError, StepladderError, UnreachableError
from stepladder.sdk.kit import rule, tool

__all__ = [
    "Ask",
    "BadInputError",
    "Call",
    "Chosen",
    "End",
    "Limits",
    "Loop",
    "Retry",
    "RuleSpec",
    "Sampling",
    "StepladderError",
    "UnreachableError",
    "Wait",
    "WaitSpec",
    "Workflow",
    "rule",
    "tool",
]
