"""Shadows: which are open, what live jobs they have yet to look at, and how they end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepladder.models.experiments import find_experiment

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from stepladder.models.database import Connection, Database
    from stepladder.models.experiments import Experiment
    from stepladder.schemas.jsontypes import Json


@dataclass(frozen=True, slots=True)
class LiveJob:
    """A job that ended, beside which a shadow may run."""

    id: UUID
    input: Json
    finished_at: datetime


async def open_shadows(database: Database) -> tuple[UUID, ...]:
    rows = await database.rows(_OPEN, {})
    return tuple(row["id"] for row in rows)


async def open_shadow(database: Database, workflow: str, version: int) -> Experiment | None:
    """The one that runs beside the jobs of a version."""
    row = await database.row(_OPEN_OF, {"workflow": workflow, "version": version})
    return None if row is None else await find_experiment(database, row["id"])


async def hold_shadow(connection: Connection, experiment_id: UUID) -> bool:
    """Locks its row until the transaction ends; False if another has it, or it was stopped."""
    return await (await connection.execute(_HOLD, {"id": experiment_id})).fetchone() is not None


async def live_jobs(connection: Connection, experiment_id: UUID, limit: int, settled_s: float) -> list[LiveJob]:
    """Those that ended since it last looked, and at least ``settled_s`` seconds ago, so that none that is yet to be
    committed is passed over. Experiments, replays and changed documents are no live jobs.
    """
    parameters = {"id": experiment_id, "limit": limit, "settled_s": settled_s}
    rows = await (await connection.execute(_LIVE, parameters)).fetchall()
    return [LiveJob(row["id"], row["input"], row["finished_at"]) for row in rows]


async def note_look(connection: Connection, experiment_id: UUID, last: LiveJob, shadowed: int) -> None:
    """How far a shadow has looked that is held."""
    await connection.execute(
        _LOOKED, {"id": experiment_id, "at": last.finished_at, "job": last.id, "shadowed": shadowed}
    )


async def stop_shadow(database: Database, experiment_id: UUID) -> None:
    """No more shadows are begun; those that there are go on."""
    await database.write(_STOP, {"id": experiment_id})


_OPEN = """
SELECT id FROM experiments WHERE kind = 'shadow' AND stopped_at IS NULL ORDER BY created_at LIMIT 100
"""

_OPEN_OF = """
SELECT id FROM experiments
WHERE kind = 'shadow' AND stopped_at IS NULL AND workflow = %(workflow)s AND version = %(version)s
"""

# A key that others point to is not locked: the shadows that are written meanwhile do.
_HOLD = """
SELECT id FROM experiments WHERE id = %(id)s AND stopped_at IS NULL FOR NO KEY UPDATE SKIP LOCKED
"""

_LIVE = """
SELECT jobs.id, jobs.input, jobs.finished_at
FROM experiments JOIN jobs ON jobs.workflow = experiments.workflow AND jobs.version = experiments.version
WHERE experiments.id = %(id)s
    AND jobs.finished_at IS NOT NULL
    AND (jobs.finished_at, jobs.id) > (experiments.after_at, experiments.after_id)
    AND jobs.finished_at <= now() - make_interval(secs => %(settled_s)s::float8)
    AND jobs.status IN ('succeeded', 'failed')
    AND jobs.experiment IS NULL AND jobs.replay_of IS NULL AND jobs.variant IS NULL
ORDER BY jobs.finished_at, jobs.id
LIMIT %(limit)s
"""

_LOOKED = """
UPDATE experiments SET after_at = %(at)s, after_id = %(job)s, samples = samples + %(shadowed)s WHERE id = %(id)s
"""

_STOP = """
UPDATE experiments SET stopped_at = now() WHERE id = %(id)s AND stopped_at IS NULL
"""
