"""Child jobs in the store: started under their parent's fencing token, read, and cancelled with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stepladder.schemas.event import EventKind
from stepladder.schemas.job import Failure, JobStatus
from stepladder.schemas.jsontext import json_text
from stepladder.schemas.responses import ChildJob
from stepladder.workflows.job import Child

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from stepladder.models.database import Database
    from stepladder.models.records import Claim
    from stepladder.models.store import Store
    from stepladder.schemas.jsontypes import Json

MOST = 1000
"""Orphans cancelled by one sweep, and children shown of one job."""


@dataclass(frozen=True, slots=True)
class NewChild:
    """A child to start. It inherits principal, scopes, priority and metadata from its parent."""

    id: UUID
    lineage: UUID
    index: int
    input: Json
    token_budget: int | None
    deadline_at: datetime | None
    created_at: datetime


# The parent's row is locked while the statement runs, as in ARRIVED: its next worker sees all of these children or
# none. The version's row is locked before it, as in SUBMIT: a child of a workflow that is paused is held.
# Existing children are skipped. ``notified_at`` is long past, since they have not been announced yet.
START_CHILDREN = """
WITH wanted AS (
    SELECT paused_at FROM workflows WHERE name = %(workflow)s AND version = %(version)s FOR SHARE
), held AS (
    SELECT id, principal, scopes, priority, metadata, depth, experiment FROM jobs
    WHERE id = %(job)s AND fence = %(fence)s AND EXISTS (SELECT FROM wanted)
    FOR SHARE
), child AS (
    INSERT INTO jobs (
        id, lineage, parent, parent_visit, parent_index, depth, workflow, version, status, input, metadata, principal,
        scopes, priority, token_budget, event_count, wake_at, notified_at, held_at, deadline_at, created_at, experiment
    )
    SELECT
        new.id, new.lineage, held.id, %(visit)s, new.index, held.depth + 1, %(workflow)s, %(version)s, %(status)s,
        new.input::json, held.metadata, held.principal, held.scopes, held.priority, new.token_budget, 1, now(),
        'epoch', (SELECT now() FROM wanted WHERE paused_at IS NOT NULL), new.deadline_at, new.created_at,
        held.experiment
    FROM held, json_to_recordset(%(children)s::json) AS new(
        id uuid, lineage uuid, index int, input text, token_budget bigint, deadline_at timestamptz,
        created_at timestamptz
    )
    WHERE NOT EXISTS (SELECT FROM jobs WHERE jobs.id = new.id)
    ON CONFLICT DO NOTHING
    RETURNING id
), event AS (
    INSERT INTO events (job_id, ordinal, kind, data)
    SELECT id, 1, %(kind)s, json_build_object('parent', %(job)s::uuid, 'index', new.index)
    FROM child JOIN json_to_recordset(%(children)s::json) AS new(id uuid, index int) USING (id)
)
SELECT held.id AS parent, child.id FROM held LEFT JOIN child ON true
"""

CHILDREN_OF = """
SELECT id, parent_index AS index, status, result, failure, failure_detail, cancel_requested FROM jobs
WHERE parent = %(job)s AND parent_visit = %(visit)s ORDER BY parent_index
"""

RECORDS = """
SELECT
    id, parent_visit AS visit, parent_index AS index, workflow, version,
    CASE WHEN COALESCE(paused_at, held_at) IS NOT NULL AND finished_at IS NULL THEN 'paused' ELSE status END AS status,
    state, waiting_for, failure, tokens
FROM jobs WHERE parent = %(job)s ORDER BY parent_visit, parent_index LIMIT %(most)s
"""

LIVE_CHILDREN = """
SELECT id FROM jobs WHERE parent = %(job)s AND finished_at IS NULL ORDER BY parent_visit, parent_index
"""

_CANCEL = """
UPDATE jobs SET cancel_requested = true, paused_at = NULL, held_at = NULL, wake_at = LEAST(wake_at, now())
FROM child WHERE jobs.id = child.id
RETURNING jobs.id
"""

# Every statement locks rows in the same order.
CANCEL_CHILDREN = f"""
WITH child AS (
    SELECT id FROM jobs
    WHERE parent = %(job)s AND finished_at IS NULL AND NOT cancel_requested
    ORDER BY id FOR NO KEY UPDATE
)
{_CANCEL}
"""  # noqa: S608 -- a constant

CANCEL_ORPHANS = f"""
WITH child AS (
    SELECT child.id FROM jobs AS child JOIN jobs AS parent ON parent.id = child.parent
    WHERE child.parent IS NOT NULL AND child.finished_at IS NULL AND NOT child.cancel_requested
        AND parent.finished_at IS NOT NULL
    ORDER BY child.id LIMIT %(most)s
    FOR NO KEY UPDATE OF child SKIP LOCKED
)
{_CANCEL}
"""  # noqa: S608 -- a constant


async def start_children(
    store: Store, claim: Claim, visit: int, workflow: str, version: int, children: Sequence[NewChild]
) -> list[UUID] | None:
    """Writes the children of a call, but for existing ones, and returns the new ones to notify.

    None if another worker has the parent; then nothing is written. Raises ``UnreachableError`` if the database breaks.
    """
    rows = await store.database.rows(
        START_CHILDREN,
        {
            "job": claim.job.id,
            "fence": claim.fence,
            "visit": visit,
            "workflow": workflow,
            "version": version,
            "status": JobStatus.QUEUED,
            "kind": EventKind.JOB_CREATED,
            "children": json_text([_row(child) for child in children]),
        },
    )
    return [row["id"] for row in rows if row["id"] is not None] if rows else None


def _row(child: NewChild) -> dict[str, object]:
    return {
        "id": str(child.id),
        "lineage": str(child.lineage),
        "index": child.index,
        "input": json_text(child.input),
        "token_budget": child.token_budget,
        "deadline_at": None if child.deadline_at is None else child.deadline_at.isoformat(),
        "created_at": child.created_at.isoformat(),
    }


async def children_of(store: Store, job_id: UUID, visit: int) -> tuple[Child, ...]:
    """The children that a call has started, by index, with their status."""
    rows = await store.database.rows(CHILDREN_OF, {"job": job_id, "visit": visit})
    return tuple(Child(**_words(row)) for row in rows)


def _words(row: Mapping[str, Any]) -> dict[str, Any]:
    failure = row["failure"]
    return {**row, "status": JobStatus(row["status"]), "failure": None if failure is None else Failure(failure)}


async def read_children(database: Database, job_id: UUID) -> tuple[ChildJob, ...]:
    """All jobs that a job has called, up to 1,000, in the order of its calls."""
    rows = await database.rows(RECORDS, {"job": job_id, "most": MOST})
    return tuple(ChildJob.model_validate(row) for row in rows)


async def live_children(store: Store, job_id: UUID) -> tuple[UUID, ...]:
    """The children of a job that have not ended."""
    rows = await store.database.rows(LIVE_CHILDREN, {"job": job_id})
    return tuple(row["id"] for row in rows)


async def cancel_children(store: Store, job_id: UUID) -> list[UUID]:
    """Requests cancellation of all live children of a job; returns those not asked before, to notify."""
    rows = await store.database.rows(CANCEL_CHILDREN, {"job": job_id})
    return [row["id"] for row in rows]


async def cancel_orphans(store: Store) -> int:
    """Requests cancellation of children whose parent ended but whose worker died before it cancelled them."""
    return len(await store.database.rows(CANCEL_ORPHANS, {"most": MOST}))
