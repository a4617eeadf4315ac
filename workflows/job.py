"""A job as the machine sees it: its state, its visits, and what is open."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from stepladder.schemas.actor import LOCAL
from stepladder.schemas.job import JobStatus
from stepladder.workflows.visits import Visit

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from uuid import UUID

    from stepladder.schemas.actor import Actor
    from stepladder.schemas.answer import Verdict
    from stepladder.schemas.degraded import Degraded
    from stepladder.schemas.job import Failure
    from stepladder.schemas.jsontypes import Json, JsonObject
    from stepladder.schemas.outcomes import Outcome
    from stepladder.workflows.visits import ToolError


@dataclass(frozen=True, slots=True)
class Message:
    """One line of the transcript. ``turn`` is 0 for the system prompt; ``content`` is the exact text."""

    ordinal: int
    turn: int
    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request of a turn: transcript lines ``history_from`` to ``history_to``, the turn's question, and ``note``.

    ``sampling`` is as sent. ``content_hash`` is the SHA-256 of the exact completion, where one came; ``verdict`` is
    None until the answer is judged.
    """

    turn: int
    ordinal: int
    max_completion_tokens: int
    sampling: JsonObject = field(default_factory=dict)
    note: str = ""
    history_from: int = 1
    history_to: int = 0
    content_hash: str | None = None
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True)
class Turn(Visit):
    """One visit to a state that asks the model. ``question`` is the last user message without any note.

    ``degraded`` is the degraded result of a failed turn, for people and other programs: the machine never reads it.
    """

    kind: ClassVar[str] = "turn"
    root: ClassVar[str] = "turns"
    ordinal: int
    question: str
    schema_hash: str
    attempts: tuple[Attempt, ...] = ()
    outcome: Outcome | None = None
    action: str | None = None
    output: Json = None
    degraded: Degraded | None = None

    @property
    def accepted(self) -> bool:
        return self.closed_at is not None and self.outcome is not None and self.outcome.value == "valid"

    @property
    def value(self) -> Json:
        return self.output

    @property
    def succeeded(self) -> bool:
        return self.accepted


@dataclass(frozen=True, slots=True)
class Spent:
    """A call of an irreversible tool that another job of the lineage started. ``closed``: it has ended."""

    job: UUID
    closed: bool
    result: Json = None
    error: ToolError | None = None


@dataclass(frozen=True, slots=True)
class Child:
    """A job that an open ``ChildCall`` started, as it is now."""

    id: UUID
    index: int
    status: JobStatus
    result: Json = None
    failure: Failure | None = None
    failure_detail: str | None = None
    cancel_requested: bool = False


@dataclass(frozen=True, slots=True)
class Signal:
    """A signal that arrived for the job and has not been taken."""

    id: UUID
    name: str
    payload: Json
    received_at: datetime
    sender: Actor = LOCAL


@dataclass(frozen=True, slots=True)
class JobFailure:
    """A failure that ends the job unless the state has an edge for it."""

    kind: Failure
    detail: str


@dataclass(frozen=True, slots=True)
class Job:
    """The machine's memory. ``visits`` are oldest first, and only the last one may be open (``closed_at`` None).

    ``lineage`` is the first job of a line of replays: keys of side effects derive from it. ``depth`` counts the jobs
    that called this one, each by the next. ``principal`` is who submitted it, and ``scopes`` what its tools may use;
    None allows all. ``spent`` are by their keys the calls that no job of the lineage may begin again.
    ``deadline_at`` moves on by as long as the job waited. ``tokens`` are prompt and completion of every attempt.
    """

    id: UUID
    lineage: UUID
    input: Json
    created_at: datetime
    status: JobStatus = JobStatus.QUEUED
    state: str | None = None
    visits: tuple[Visit, ...] = ()
    transcript: tuple[Message, ...] = ()
    tokens: int = 0
    token_budget: int | None = None
    deadline_at: datetime | None = None
    due_at: datetime | None = None
    event_count: int = 0
    principal: str = LOCAL.name
    scopes: frozenset[str] | None = None
    failure: Failure | None = None
    failure_detail: str | None = None
    result: Json = None
    waiting_for: str | None = None
    depth: int = 0
    spent: Mapping[str, Spent] = field(default_factory=dict)

    @property
    def turn_count(self) -> int:
        return sum(isinstance(visit, Turn) for visit in self.visits)

    @property
    def turns_taken(self) -> int:
        """The turns that this job asked itself: those that it took over count for none of its limits."""
        return sum(isinstance(visit, Turn) and not visit.carried for visit in self.visits)

    def left_s(self, now: datetime) -> float | None:
        """Seconds until the deadline, negative once it has passed; None without one."""
        return None if self.deadline_at is None else (self.deadline_at - now).total_seconds()

    @property
    def open(self) -> Visit | None:
        """The visit that the job is in the middle of."""
        return self.visits[-1] if self.visits and self.visits[-1].closed_at is None else None
