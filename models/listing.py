"""Which jobs are listed, newest first: the filters, and pages that stay right while rows arrive."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stepladder.models.rows import json_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from uuid import UUID

    from stepladder.schemas.job import Failure, JobStatus
    from stepladder.schemas.outcomes import Outcome

Scalar = str | int | float | bool


@dataclass(frozen=True, slots=True)
class JobFilter:
    """What a job must be; of several words in one field, any will do.

    ``outcome`` means that an attempt of the job had it. ``created_after`` is included, ``created_before`` is not.
    ``metadata`` maps a key to the values that will do; no value stands for none.
    """

    status: tuple[JobStatus, ...] = ()
    workflow: tuple[str, ...] = ()
    outcome: tuple[Outcome, ...] = ()
    failure: tuple[Failure, ...] = ()
    created_after: datetime | None = None
    created_before: datetime | None = None
    metadata: Mapping[str, tuple[Scalar, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Place:
    """A job's place in the list. What comes after it does so for good: a newer job never moves an older one."""

    created_at: datetime
    job_id: UUID


OVERVIEW = """
    job_id AS id, workflow, version, status, state, waiting_for, failure, failure_detail, input, result, turn_count,
    attempts, tokens, metadata, created_at, started_at, finished_at, replay_of, priority, principal, token_budget,
    deadline_at, event_count
"""


def page(wanted: JobFilter, limit: int, after: Place | None) -> tuple[str, dict[str, Any]]:
    """The statement and its parameters for up to ``limit`` rows of ``job_overview`` behind a place."""
    conditions: list[str] = []
    parameters: dict[str, Any] = {"limit": limit}
    for column, words in (("status", wanted.status), ("workflow", wanted.workflow), ("failure", wanted.failure)):
        if words:
            conditions.append(f"{column} = ANY(%({column})s::text[])")
            parameters[column] = [str(word) for word in words]
    if wanted.status and not any(status.final for status in wanted.status):
        conditions.append("finished_at IS NULL")  # by which the index of those few is found
    if wanted.outcome:
        conditions.append(
            "EXISTS (SELECT FROM attempts WHERE attempts.job_id = job_overview.job_id"
            " AND attempts.outcome = ANY(%(outcome)s::text[]))"
        )
        parameters["outcome"] = [str(word) for word in wanted.outcome]
    for nth, (key, values) in enumerate(wanted.metadata.items()):
        names = [f"metadata_{nth}_{n}" for n in range(len(values))]
        conditions.append(" OR ".join(f"metadata @> %({name})s::jsonb" for name in names) or "false")
        parameters |= {name: json_text({key: value}) for name, value in zip(names, values, strict=True)}
    if wanted.created_after is not None:
        conditions.append("created_at >= %(created_after)s")
        parameters["created_after"] = wanted.created_after
    if wanted.created_before is not None:
        conditions.append("created_at < %(created_before)s")
        parameters["created_before"] = wanted.created_before
    if after is not None:
        conditions.append("(created_at, job_id) < (%(after_at)s::timestamptz, %(after_id)s::uuid)")
        parameters |= {"after_at": after.created_at, "after_id": after.job_id}
    where = " AND ".join(f"({condition})" for condition in conditions) or "true"
    statement = (
        f"SELECT {OVERVIEW} FROM job_overview WHERE {where}"  # noqa: S608 -- made of the words above alone
        " ORDER BY created_at DESC, job_id DESC LIMIT %(limit)s"
    )
    return statement, parameters
