"""Experiments: variants on the same inputs, the live jobs that shadows follow, and their results."""

# ruff: noqa: S608 -- statements are put together from constants

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stepladder.experiments.agreement import RESULT, Seen, fields
from stepladder.experiments.report import Run, report
from stepladder.models.attempt_counts import COUNTS
from stepladder.models.rows import plain
from stepladder.schemas.experiment import Experiment, ExperimentHead, ExperimentKind, ExperimentRun
from stepladder.schemas.job import Failure, JobStatus
from stepladder.schemas.jsontext import json_text

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from stepladder.models.attempt_counts import Row
    from stepladder.models.database import Connection, Database
    from stepladder.schemas.jsontypes import Json

MAX_RUNS = 1000
"""Of one report; only a shadow can have more."""


@dataclass(frozen=True, slots=True)
class LiveJob:
    """A finished job that a shadow may repeat."""

    id: UUID
    input: Json
    finished_at: datetime


async def keep_experiment(database: Database, head: ExperimentHead) -> bool:
    """Writes it before its jobs, which refer to it. False if this version already has a shadow."""
    row = {name: getattr(head, name) for name in type(head).model_fields}
    scopes = None if head.scopes is None else sorted(head.scopes)
    columns = {"kind": head.kind.value, "arms": json_text(head.changes), "scopes": scopes}
    words = {"name": plain(head.name), "principal": plain(head.principal)}
    return bool(await database.write(_KEEP, row | columns | words))


async def drop_experiment(database: Database, experiment_id: UUID) -> None:
    """Deletes one whose jobs were not written."""
    await database.write("DELETE FROM experiments WHERE id = %(id)s", {"id": experiment_id})


async def find_experiment(database: Database, experiment_id: UUID) -> ExperimentHead | None:
    return await _first(database, "WHERE id = %(id)s", id=experiment_id)


async def experiment_of(database: Database, job_id: UUID) -> ExperimentHead | None:
    """The one that a job belongs to."""
    return await _first(database, "WHERE id = (SELECT experiment FROM jobs WHERE jobs.id = %(job)s)", job=job_id)


async def open_shadow(database: Database, workflow: str, version: int) -> ExperimentHead | None:
    """The open shadow of a version."""
    where = f"WHERE {_OPEN} AND workflow = %(workflow)s AND version = %(version)s"
    return await _first(database, where, workflow=workflow, version=version)


async def open_shadows(database: Database) -> list[ExperimentHead]:
    rows = await database.rows(f"{_SELECT} WHERE {_OPEN} ORDER BY created_at LIMIT 100", {})
    return [ExperimentHead(**row) for row in rows]


async def list_experiments(database: Database, limit: int) -> list[ExperimentHead]:
    """Newest first."""
    rows = await database.rows(f"{_SELECT} ORDER BY created_at DESC, id DESC LIMIT %(limit)s", {"limit": limit})
    return [ExperimentHead(**row) for row in rows]


async def at_rest(database: Database, experiment_id: UUID) -> tuple[int, int]:
    """How many of its jobs have ended or wait for a person, and how many there are."""
    row = await database.row(_AT_REST, {"experiment": experiment_id})
    return (0, 0) if row is None else (row["at_rest"], row["jobs"])


async def read_experiment(database: Database, head: ExperimentHead) -> Experiment:
    """The report on its jobs, by sample and variant; for a shadow, the newest jobs and their live ones."""
    jobs = await database.rows(_JOBS, {"experiment": head.id, "most": MAX_RUNS})
    judged: defaultdict[UUID, list[Row]] = defaultdict(list)
    for row in await database.rows(_JUDGED, {"jobs": [row["job"] for row in jobs]}):
        judged[row.pop("job_id")].append(row)
    runs = [_run(row, judged[row["job"]]) for row in jobs]
    found = report(runs)
    more: dict[str, Any] = {"runs": [ExperimentRun.model_validate(run) for run in runs]}
    if head.kind is ExperimentKind.STABILITY:
        turns = await database.rows(_TURNS, {"experiment": head.id})
        seen = [Seen(_place(row), row["output"], row["schema"]) for row in turns]
        seen += [Seen(RESULT, row["result"]) for row in jobs if row["result"] is not None]
        more["fields"] = fields(seen)
    return Experiment(**{name: getattr(part, name) for part in (head, found) for name in part.model_fields_set}, **more)


async def hold_shadow(connection: Connection, experiment_id: UUID) -> bool:
    """Locks its row until the transaction ends; False if another worker has it, or it was stopped."""
    return await (await connection.execute(_HOLD, {"id": experiment_id})).fetchone() is not None


async def live_jobs(connection: Connection, experiment_id: UUID, limit: int, settled_s: float) -> list[LiveJob]:
    """Jobs that ended since its last look, and at least ``settled_s`` seconds ago, so that no commit is missed.

    Jobs of experiments, replays and changed documents are not live ones.
    """
    parameters = {"id": experiment_id, "limit": limit, "settled_s": settled_s}
    return [LiveJob(**row) for row in await (await connection.execute(_LIVE, parameters)).fetchall()]


async def note_look(connection: Connection, experiment_id: UUID, last: LiveJob, shadowed: int) -> None:
    """Records how far a locked shadow has looked."""
    parameters = {"id": experiment_id, "at": last.finished_at, "job": last.id, "shadowed": shadowed}
    await connection.execute(_LOOKED, parameters)


async def stop_shadow(database: Database, experiment_id: UUID) -> None:
    """Starts no more shadow jobs; existing ones continue."""
    await database.write(_STOP, {"id": experiment_id})


async def _first(database: Database, where: str, **parameters: Any) -> ExperimentHead | None:
    row = await database.row(f"{_SELECT} {where}", parameters)
    return None if row is None else ExperimentHead(**row)


def _run(row: Row, judged: list[Row]) -> Run:
    columns = {name: row[name] for name in ("job", "arm", "sample", "tokens", "currency")}
    failure = None if row["failure"] is None else Failure(row["failure"])
    cost = None if row["cost"] is None else float(row["cost"])
    return Run(**columns, status=JobStatus(row["status"]), failure=failure, cost=cost, judged=judged)


def _place(row: Row) -> str:
    return str(row["state"]) if row["nth"] == 1 else f"{row['state']} ({row['nth']})"


_OPEN = "kind = 'shadow' AND stopped_at IS NULL"

_SELECT = """
SELECT
    id, kind, name, workflow, version, variant, arms AS changes, samples, principal, created_at, scopes, share,
    stopped_at
FROM experiments
"""

_KEEP = f"""
INSERT INTO experiments (
    id, kind, name, workflow, version, variant, arms, samples, principal, scopes, share, created_at, after_at, after_id
)
VALUES (
    %(id)s, %(kind)s, %(name)s, %(workflow)s, %(version)s, %(variant)s, %(arms)s::json, %(samples)s, %(principal)s,
    %(scopes)s::text[], %(share)s::float8, %(created_at)s, %(created_at)s, %(id)s
)
ON CONFLICT (workflow, version) WHERE {_OPEN} DO NOTHING
"""

# Jobs that these called belong to the experiment too, and to no variant. A shadow's newest pair is sample 1.
_JOBS = """
WITH run AS (
    SELECT id, replay_of, arm, COALESCE(sample, row_number() OVER (ORDER BY created_at DESC, id DESC))::int AS sample
    FROM jobs WHERE experiment = %(experiment)s AND arm IS NOT NULL
    ORDER BY created_at DESC, id DESC LIMIT %(most)s
), beside AS (
    SELECT id, arm, sample FROM run
    UNION ALL
    SELECT replay_of, 'a', sample FROM run WHERE replay_of IS NOT NULL
)
SELECT beside.id AS job, arm, sample, status, failure, tokens, cost, currency, result
FROM beside JOIN job_overview ON job_id = beside.id
ORDER BY sample, arm
"""

_JUDGED = f"""
SELECT job_id, outcome, cause, {COUNTS}, COALESCE(sum(duration_ms), 0) AS engine_ms
FROM judged_attempts WHERE job_id = ANY(%(jobs)s::uuid[])
GROUP BY job_id, outcome, cause
"""

_AT_REST = """
SELECT count(*) FILTER (WHERE finished_at IS NOT NULL OR status = 'waiting') AS at_rest, count(*) AS jobs
FROM jobs WHERE experiment = %(experiment)s AND arm IS NOT NULL
"""

_TURNS = """
SELECT
    turns.state, turns.output, output_schemas.schema,
    row_number() OVER (PARTITION BY turns.job_id, turns.state ORDER BY turns.ordinal) AS nth
FROM turns JOIN jobs ON jobs.id = turns.job_id LEFT JOIN output_schemas ON output_schemas.hash = turns.schema_hash
WHERE jobs.experiment = %(experiment)s AND turns.outcome = 'valid'
ORDER BY turns.job_id, turns.ordinal
"""

# FOR UPDATE would block the shadow jobs that are written meanwhile, which refer to its key.
_HOLD = f"""
SELECT id FROM experiments WHERE id = %(id)s AND {_OPEN} FOR NO KEY UPDATE SKIP LOCKED
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
