"""A job as the machine remembers it: where it is, which way it came, and what is open."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from stepladder.schemas.job import JobStatus

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from stepladder.schemas.answer import Verdict
    from stepladder.schemas.job import Failure
    from stepladder.schemas.jsontypes import Json, JsonObject
    from stepladder.schemas.outcomes import Outcome
    from stepladder.schemas.tool import Effect


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
class Turn:
    """One visit to a state that asks the model. ``question`` is the last user message without any note."""

    visit: int
    ordinal: int
    state: str
    question: str
    opened_at: datetime
    schema_hash: str
    attempts: tuple[Attempt, ...] = ()
    outcome: Outcome | None = None
    action: str | None = None
    output: Json = None
    closed_at: datetime | None = None
    carried: bool = False

    @property
    def accepted(self) -> bool:
        return self.closed_at is not None and self.outcome is not None and self.outcome.value == "valid"


@dataclass(frozen=True, slots=True)
class ToolError:
    """Why a tool gave no result: a word to route on, and a text for people."""

    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One visit to a state that runs a tool. The row exists, with its key, before the tool runs."""

    visit: int
    state: str
    tool: str
    effect: Effect
    arguments: JsonObject
    key: str
    opened_at: datetime
    result: Json = None
    error: ToolError | None = None
    closed_at: datetime | None = None
    carried: bool = False


@dataclass(frozen=True, slots=True)
class Wait:
    """One visit to a state that waits for a signal.

    ``frozen`` maps the state of an irreversible tool that an edge leads to, to ``{"tool", "arguments"}`` as they will
    run; a wait that has any takes no early signal, and its signal names ``wait_id``. ``until`` None waits for ever.
    """

    visit: int
    state: str
    signal: str
    wait_id: UUID
    show: Json
    opened_at: datetime
    until: datetime | None = None
    frozen: JsonObject = field(default_factory=dict)
    payload: Json = None
    signal_id: UUID | None = None
    action: str | None = None
    closed_at: datetime | None = None
    carried: bool = False


Visit: TypeAlias = Turn | ToolCall | Wait


@dataclass(frozen=True, slots=True)
class Signal:
    """A signal that arrived for the job and has not been taken."""

    id: UUID
    name: str
    payload: Json
    received_at: datetime


@dataclass(frozen=True, slots=True)
class Job:
    """The machine's memory. ``visits`` are oldest first, and only the last one may be open (``closed_at`` None).

    ``lineage`` is the first job of a line of replays: keys of side effects derive from it.
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
    scopes: frozenset[str] | None = None
    failure: Failure | None = None
    failure_detail: str | None = None
    result: Json = None
    waiting_for: str | None = None

    @property
    def turn_count(self) -> int:
        return sum(isinstance(visit, Turn) for visit in self.visits)

    @property
    def open(self) -> Visit | None:
        """The visit that the job is in the middle of."""
        return self.visits[-1] if self.visits and self.visits[-1].closed_at is None else None
