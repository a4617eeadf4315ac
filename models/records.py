"""What the store reads and writes, apart from the machine's own types."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from uuid import UUID

    from stepladder.schemas.answer import Arrival
    from stepladder.schemas.jsontypes import Json, JsonObject
    from stepladder.workflows.events import Settled
    from stepladder.workflows.job import Attempt, Job, Signal


@dataclass(frozen=True, slots=True)
class WorkflowRow:
    """A published workflow. ``document`` is as it was given to ``publish``."""

    name: str
    version: int
    hash: str
    document: Json
    created_at: datetime
    retired: bool = False
    paused_at: datetime | None = None
    paused_by: str | None = None


class Publication(StrEnum):
    """What became of a document that was to be published."""

    PUBLISHED = "published"
    ALREADY_PUBLISHED = "already_published"
    DEFINITION_CHANGED = "definition_changed"
    """Another definition has this name and version. Nothing was written."""


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to be written, with its metadata outside the machine.

    ``variant`` is the hash of the changed document that it runs by, ``bulk`` its order of replays, and ``created`` the
    data of its first event. For an ``experiment`` it runs one ``sample`` by one ``arm``.
    """

    job: Job
    workflow: str
    version: int
    priority: int = 0
    metadata: JsonObject = field(default_factory=dict)
    replay_of: UUID | None = None
    variant: str | None = None
    bulk: UUID | None = None
    created: JsonObject = field(default_factory=dict)
    experiment: UUID | None = None
    arm: str | None = None
    sample: int | None = None


@dataclass(frozen=True, slots=True)
class SubmissionKey:
    """A principal's own name for a submission. ``fingerprint`` is the hash of what is asked for under it."""

    principal: str
    key: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Submitted:
    """The jobs of a submission, in its order; those in ``paused`` with their workflow.

    ``again`` says that an earlier submission under the same key wrote them.
    """

    job_ids: tuple[UUID, ...]
    again: bool = False
    paused: frozenset[UUID] = frozenset()


@dataclass(frozen=True, slots=True)
class KeyTaken:
    """Something else was submitted under the key. Nothing was written."""


@dataclass(frozen=True, slots=True)
class Retired:
    """A version that was asked for is retired. Nothing was written."""

    workflow: str
    version: int


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a request that is about to leave is stamped with: its id, the model as sent, and who answers there."""

    request_id: str
    model: str | None = None
    engine_version: str | None = None
    grammar_backend: str | None = None


@dataclass(frozen=True, slots=True)
class PendingAttempt:
    """The open turn's last attempt, which has no verdict yet.

    With an ``arrival`` the answer was stored before its worker was lost: judge it, never ask again. Without one it
    is unknown whether an answer came: the attempt is abandoned.
    """

    attempt: Attempt
    request_id: str
    arrival: Arrival | None


@dataclass(frozen=True, slots=True)
class Claim:
    """A job leased by one worker, for ``lease_s`` seconds from ``claimed_at`` or from the last heartbeat.

    ``claimed_at`` is the database's time, and ``fence`` the fencing token. ``asked_at`` is when the worker asked for
    the lease, and ``read_at`` when it read ``claimed_at``, by its event loop's clock. ``known_signals`` counts all
    signals that the job had received when ``signals``, those not yet taken, were read; ``cancel_requested`` was read
    with them. A commit that releases the job compares both with what has come since, so that no wake-up is lost.
    ``taken_over`` says that a worker lost the job since the machine's last step. ``settled`` is the settlement of the
    job's open call, and ``parent`` the job that called this one. ``variant`` is the hash of the changed document that
    it runs by.
    """

    job: Job
    workflow: str
    version: int
    owner: str
    fence: int
    lease_s: float
    claimed_at: datetime
    known_signals: int = 0
    signals: tuple[Signal, ...] = ()
    cancel_requested: bool = False
    pending: PendingAttempt | None = None
    taken_over: bool = False
    settled: Settled | None = None
    parent: UUID | None = None
    variant: str | None = None
    asked_at: float = 0.0
    read_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Inbox:
    """The signals of a job that are not yet taken, and how many it has received in all (at least; see ``Claim``)."""

    known_signals: int
    signals: tuple[Signal, ...]


class LeaseStatus(StrEnum):
    """What a heartbeat finds of a lease."""

    HELD = "held"
    CANCELLING = "cancelling"
    """The lease is held, and the job's cancellation was requested."""
    LOST = "lost"
    """The lease ended, and another worker may have the job: stop, and write nothing more."""


class Settling(StrEnum):
    """What became of a settlement."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    """The same settlement was recorded before."""
    CONTRADICTED = "contradicted"
    """A different settlement was recorded before. Nothing was written."""
    NOT_ASKED = "not_asked"
    """The job does not wait for settlement, or not of the named call. Nothing was written."""


class Receipt(StrEnum):
    """What became of a signal, or of a request to cancel, pause or unpause."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    FINAL = "final"
    """The job has ended, or is about to by request. Nothing was written."""
    UNKNOWN = "unknown"
    """There is no such job."""

    @classmethod
    def of(cls, row: Mapping[str, Any] | None) -> Receipt:
        """From a row of ``done``, ``already`` and ``known``, as far as the statement has them."""
        match row:
            case {"done": True}:
                return cls.ACCEPTED
            case {"already": True}:
                return cls.DUPLICATE
            case {"known": True}:
                return cls.FINAL
            case _:
                return cls.UNKNOWN
