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
from stepladder.schemas.degraded import Loss
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
class ToolError:
    """What became of a tool's run."""

    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class Said:
    """What a person said of a call, until a worker takes it up."""

    done: bool
    result: Any
    by: str


@dataclass(frozen=True, slots=True)
class OpenSettlement:
    """The call of an irreversible tool that may have taken effect. ``reason`` is why nobody knows, ``key`` is its
    idempotency key, and ``opened_at`` is when it was begun."""

    state: str
    tool: str
    arguments: Mapping[str, Any]
    key: str
    opened_at: datetime
    reason: ToolError | None = None
    said: Said | None = None


@dataclass(frozen=True, slots=True)
class Degraded:
    """What was kept of the answer of an attempt when its turn was given up: no output, with all that is lost of it."""

    value: Any
    lost: tuple[Loss, ...]
    attempt: int
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Misfit:
    """A turn whose output was taken over from another job, and breaks the schema of its state now."""

    turn: int
    pointer: str
    reason: str


@dataclass(frozen=True, slots=True)
class Job:
    """A job as it stood when it was asked for. ``wait``, ``settlement`` and ``replays`` are there where one job alone
    was, and ``misfits`` where it was made as a replay just now.

    ``degraded`` is by state what was kept of its last turn, where that was given up. ``variant`` is the hash of the
    changed document that a fork runs by, and ``replays`` are the jobs that were made from this one, oldest first.
    """

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
    degraded: Mapping[str, Degraded] | None = None
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
    parent: str | None = None
    principal: str | None = None
    event_count: int = 0
    cancel_requested: bool = False
    workflow_paused: bool = False
    wait: OpenWait | None = None
    settlement: OpenSettlement | None = None
    variant: str | None = None
    replays: tuple[str, ...] = ()
    misfits: tuple[Misfit, ...] = ()


@dataclass(frozen=True, slots=True)
class JudgedAgain:
    """One stored answer with the verdict that it got, and the one that it would get now.

    ``now`` is None where it could not be judged again, for the reason ``unjudged``: ``broken_off``, ``gone`` or
    ``no_state``. The errors are there where the verdict ``changed``.
    """

    id: str
    turn: int
    attempt: int
    state: str
    was: Outcome
    now: Outcome | None
    was_cause: str | None
    now_cause: str | None
    changed: bool
    unjudged: str | None = None
    was_errors: tuple[Violation, ...] = ()
    now_errors: tuple[Violation, ...] = ()


@dataclass(frozen=True, slots=True)
class Revalidated:
    """All answers of a job, oldest first, and how many verdicts are others now."""

    attempts: tuple[JudgedAgain, ...]
    changed: int


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
    degraded: Degraded | None = None
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
