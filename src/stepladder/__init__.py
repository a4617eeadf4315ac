"""Stepladder: durable multi-turn agents as explicit state machines over a self-hosted engine."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

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
    ToolRetry,
    Wait,
    WaitSpec,
    Workflow,
)
from stepladder.schemas.errors import BadInputError, EffectUnknownError, StepladderError, UnreachableError
from stepladder.schemas.finding import BadDocumentError
from stepladder.schemas.job import Failure, JobStatus
from stepladder.schemas.outcomes import Outcome
from stepladder.sdk.kit import rule, tool

if TYPE_CHECKING:
    from stepladder.sdk.aclient import AsyncClient
    from stepladder.sdk.client import Client
    from stepladder.sdk.problems import (
        ConflictError,
        DeniedError,
        NotFoundError,
        ProblemError,
        RejectedError,
        UnavailableError,
        WaitTimeoutError,
    )

__all__ = [
    "Ask",
    "AsyncClient",
    "BadDocumentError",
    "BadInputError",
    "Call",
    "Chosen",
    "Client",
    "ConflictError",
    "DeniedError",
    "EffectUnknownError",
    "End",
    "Failure",
    "JobStatus",
    "Limits",
    "Loop",
    "NotFoundError",
    "Outcome",
    "ProblemError",
    "RejectedError",
    "Retry",
    "RuleSpec",
    "Sampling",
    "StepladderError",
    "ToolRetry",
    "UnavailableError",
    "UnreachableError",
    "Wait",
    "WaitSpec",
    "WaitTimeoutError",
    "Workflow",
    "rule",
    "tool",
]

_PROBLEMS = "stepladder.sdk.problems"
_LATER = {
    "AsyncClient": "stepladder.sdk.aclient",
    "Client": "stepladder.sdk.client",
    "ConflictError": _PROBLEMS,
    "DeniedError": _PROBLEMS,
    "NotFoundError": _PROBLEMS,
    "ProblemError": _PROBLEMS,
    "RejectedError": _PROBLEMS,
    "UnavailableError": _PROBLEMS,
    "WaitTimeoutError": _PROBLEMS,
}


def __getattr__(name: str) -> Any:
    """Clients, and httpx with them, are imported on first use."""
    module = _LATER.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(module), name)
    return found
