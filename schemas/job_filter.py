"""Which jobs are meant: what they must match, and a place in their list."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from uuid import UUID

    from stepladder.schemas.job import Failure, JobStatus
    from stepladder.schemas.outcomes import Outcome

Scalar = str | int | float | bool


@dataclass(frozen=True, slots=True)
class JobFilter:
    """What a job must match; any of several values in one field matches.

    ``outcome``, ``cause``, ``rule`` and ``search`` apply to an attempt of the job, all to the same one. ``rule`` is the
    id of a rule, or a keyword of a schema, that its answer broke; an observed rule counts. ``search`` is a
    text, ignoring case, in the answer or in the reason of an error; without another filter on attempts, also in
    ``failure_detail``. ``created_after`` is included, ``created_before`` is not.
    ``parent`` is the job that called it, ``replay_of`` the one that it was made from.
    ``metadata`` maps a key to the accepted values; without values nothing matches.
    ``among`` restricts the jobs, if known.
    """

    status: tuple[JobStatus, ...] = ()
    workflow: tuple[str, ...] = ()
    outcome: tuple[Outcome, ...] = ()
    failure: tuple[Failure, ...] = ()
    created_after: datetime | None = None
    created_before: datetime | None = None
    parent: UUID | None = None
    metadata: Mapping[str, tuple[Scalar, ...]] = field(default_factory=dict)
    cause: tuple[str, ...] = ()
    rule: tuple[str, ...] = ()
    state: tuple[str, ...] = ()
    principal: tuple[str, ...] = ()
    replay_of: tuple[UUID, ...] = ()
    search: str | None = None
    among: tuple[UUID, ...] | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """A job's place in the list. The order is stable: a newer job never moves an older one."""

    created_at: datetime
    job_id: UUID
