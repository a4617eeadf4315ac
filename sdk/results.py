"""What the client gives back: the API's answers, typed and frozen. Fields that a newer server adds are left out."""

# ruff: noqa: TC001, TC003 -- pydantic reads the annotations at run time

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any, TypeVar

from pydantic import TypeAdapter

from stepladder.schemas.answer import Usage, Violation
from stepladder.schemas.event import EventKind
from stepladder.schemas.job import Failure, JobStatus
from stepladder.schemas.outcomes import Outcome, Rungs

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OpenWait:
    """The wait that a job is in: what it shows, and the ``wait_id`` by which a signal can name it."""

    signal: str
    state: str
    wait_id: str
    show: Any
    frozen: Mapping[str, Any]
    opened_at: datetime
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """A job as it stood when it was asked for. ``wait`` is there where one job alone was."""

    id: str
    workflow: str
    version: int
    status: JobStatus
    created_at: datetime
    state: str | None = None
    waiting_for: str | None = None
    failure: Failure | None = None
    failure_detail: str | None = None
    input: Any = None
    result: Any = None
    degraded: Any = None
    turn_count: int = 0
    attempts: int = 0
    tokens: int = 0
    priority: int = 0
    metadata: Mapping[str, Any] = field(default_factory=dict)
    started_at: datetime | None = None
    finished_at: datetime | None = None
    deadline_at: datetime | None = None
    token_budget: int | None = None
    replay_of: str | None = None
    principal: str | None = None
    event_count: int = 0
    wait: OpenWait | None = None


@dataclass(frozen=True, slots=True)
class Engine:
    model: str | None = None
    version: str | None = None
    backend: str | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request to the engine; times in milliseconds. In flight it has no ``outcome``, ``rungs`` and ``usage``."""

    id: str
    ordinal: int
    max_completion_tokens: int
    sampling: Mapping[str, Any]
    schema_hash: str
    request_id: str
    outcome: Outcome | None = None
    cause: str | None = None
    rungs: Rungs | None = None
    errors: tuple[Violation, ...] = ()
    finish_reason: str | None = None
    http_status: int | None = None
    usage: Usage | None = None
    ttft_ms: float | None = None
    tpot_ms: float | None = None
    duration_ms: float | None = None
    engine: Engine = field(default_factory=Engine)
    content: str | None = None
    started_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """One visit to a state that asks the model."""

    ordinal: int
    state: str
    outcome: Outcome | None = None
    action: str | None = None
    output: Any = None
    carried: bool = False
    question: str = ""
    attempts: tuple[Attempt, ...] = ()
    started_at: datetime | None = None
    finished_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a job's history. ``kind`` is plain text where a newer server knows more kinds than this client."""

    ordinal: int
    kind: EventKind | str
    at: datetime
    turn: int | None = None
    attempt: int | None = None
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Signalled:
    """``accepted``, or ``duplicate`` where a signal under this key was there already."""

    status: str
    signal_id: str


@dataclass(frozen=True, slots=True)
class Warning:  # noqa: A001 -- the document's word; it lives in this module alone
    """What may be worth a second look in a document."""

    pointer: str
    reason: str
    code: str = ""
    remedy: str = ""
    line: int | None = None
    column: int | None = None


@dataclass(frozen=True, slots=True)
class Published:
    """A published version of a workflow."""

    name: str
    version: int
    hash: str
    created_at: datetime
    retired: bool = False
    warnings: tuple[Warning, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    jobs: tuple[Job, ...]
    next_cursor: str | None = None


@lru_cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def parsed(kind: type[T], value: Any) -> T:
    """The value in its type. Raises ``ValueError`` for what is no answer of this API."""
    hashable: Any = kind
    found: T = _adapter(hashable).validate_python(value)
    return found
