"""Experiments: what is run beside each other, and what came of their jobs."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stepladder.experiments.agreement import RESULT, Seen
from stepladder.experiments.arms import Run
from stepladder.models.rows import plain
from stepladder.schemas.experiment import ExperimentKind
from stepladder.schemas.jsontext import json_text
from stepladder.schemas.outcomes import Outcome, RungState

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from stepladder.models.database import Database
    from stepladder.models.reads import Reads
    from stepladder.schemas.jsontypes import JsonObject
    from stepladder.schemas.responses import Job

PASSED = RungState.PASSED
MOST_RUNS = 1000
"""Of one report; only a shadow can have more."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """``arms`` are what each changes, by name. ``samples`` are the inputs, or how often one job is run.

    A shadow runs its second arm beside a ``share`` of live jobs, until ``stopped_at``; they are its first arm.
    """

    id: UUID
    kind: ExperimentKind
    name: str
    workflow: str
    version: int
    variant: str | None
    arms: JsonObject
    samples: int
    principal: str
    created_at: datetime
    scopes: frozenset[str] | None = None
    share: float | None = None
    stopped_at: datetime | None = None


async def keep_experiment(database: Database, experiment: Experiment) -> bool:
    """Writes it before its jobs, which point to it. False for a second shadow of one version at once."""
    row = {name: getattr(experiment, name) for name in experiment.__slots__ if name != "stopped_at"}
    scopes = None if experiment.scopes is None else sorted(experiment.scopes)
    more = {"kind": experiment.kind.value, "arms": json_text(experiment.arms), "scopes": scopes}
    words = {"name": plain(experiment.name), "principal": plain(experiment.principal)}
    return bool(await database.write(_KEEP, row | more | words))


async def drop_experiment(database: Database, experiment_id: UUID) -> None:
    """Takes one back whose jobs were not written."""
    await database.write(_DROP, {"id": experiment_id})


async def find_experiment(database: Database, experiment_id: UUID) -> Experiment | None:
    row = await database.row(f"{_SELECT} WHERE id = %(id)s", {"id": experiment_id})
    return None if row is None else _experiment(row)


async def experiment_of(database: Database, job_id: UUID) -> Experiment | None:
    """The one that a job is of."""
    where = "WHERE id = (SELECT experiment FROM jobs WHERE jobs.id = %(job)s)"
    row = await database.row(f"{_SELECT} {where}", {"job": job_id})
    return None if row is None else _experiment(row)


async def list_experiments(database: Database, limit: int) -> tuple[Experiment, ...]:
    """Newest first."""
    rows = await database.rows(f"{_SELECT} ORDER BY created_at DESC, id DESC LIMIT %(limit)s", {"limit": limit})
    return tuple(_experiment(row) for row in rows)


async def at_rest(database: Database, experiment_id: UUID) -> tuple[int, int]:
    """How many of its jobs come no further by themselves, and how many there are."""
    row = await database.row(_AT_REST, {"experiment": experiment_id})
    return (0, 0) if row is None else (row["at_rest"], row["jobs"])


async def runs(database: Database, reads: Reads, experiment_id: UUID) -> tuple[Run, ...]:
    """The jobs of an experiment as they stand, by sample and arm: of a shadow the newest, and the live ones beside."""
    jobs = await database.rows(_JOBS, {"experiment": experiment_id, "most": MOST_RUNS})
    attempts: defaultdict[UUID, list[dict[str, Any]]] = defaultdict(list)
    for row in await database.rows(_ATTEMPTS, {"jobs": [row["id"] for row in jobs]}):
        attempts[row["job_id"]].append(row)
    overviews = {job.id: job for job in await reads.overviews([row["id"] for row in jobs])}
    return tuple(_run(row, overviews[row["id"]], attempts[row["id"]]) for row in jobs if row["id"] in overviews)


async def outputs(database: Database, reads: Reads, experiment_id: UUID) -> tuple[tuple[Seen, ...], ...]:
    """Of each job of an experiment what its accepted turns gave, and its result, if it succeeded."""
    jobs = await database.rows(_JOBS, {"experiment": experiment_id, "most": MOST_RUNS})
    schemas = {row["hash"]: row["schema"] for row in await database.rows(_SCHEMAS, {"experiment": experiment_id})}
    turns: defaultdict[UUID, list[dict[str, Any]]] = defaultdict(list)
    for row in await database.rows(_TURNS, {"experiment": experiment_id}):
        turns[row["job_id"]].append(row)
    found = []
    for job in await reads.overviews([row["id"] for row in jobs]):
        seen, visits = [], Counter[str]()
        for turn in turns[job.id]:
            visits[turn["state"]] += 1
            nth = visits[turn["state"]]
            where = turn["state"] if nth == 1 else f"{turn['state']} ({nth})"
            seen.append(Seen(where, turn["output"], schemas.get(turn["schema_hash"])))
        if job.result is not None:
            seen.append(Seen(RESULT, job.result))
        found.append(tuple(seen))
    return tuple(found)


def _experiment(row: dict[str, Any]) -> Experiment:
    scopes = None if row["scopes"] is None else frozenset(row["scopes"])
    return Experiment(**row | {"kind": ExperimentKind(row["kind"]), "scopes": scopes})


def _run(row: dict[str, Any], job: Job, attempts: list[dict[str, Any]]) -> Run:
    answers = [one for one in attempts if one["outcome"] != Outcome.TRANSPORT]
    firsts: dict[int, dict[str, Any]] = {}
    for one in answers:
        firsts.setdefault(one["turn"], one)
    in_format = [one for one in answers if one["rung_schema"] == PASSED]
    return Run(
        job=str(job.id),
        arm=row["arm"],
        sample=row["sample"],
        status=job.status,
        failure=job.failure,
        attempts=len(attempts),
        answers=len(answers),
        usable=sum(one["outcome"] == Outcome.VALID for one in answers),
        first_answers=len(firsts),
        first_in_format=sum(one["rung_schema"] == PASSED for one in firsts.values()),
        in_format=len(in_format),
        semantic=sum(one["rung_semantic"] == PASSED for one in in_format),
        tokens=job.tokens,
        engine_ms=sum(one["duration_ms"] or 0.0 for one in attempts),
        cost=job.cost,
        currency=job.currency,
        outcomes=Counter((one["outcome"], one["cause"]) for one in attempts),
    )


_KEEP = """
INSERT INTO experiments (
    id, kind, name, workflow, version, variant, arms, samples, principal, scopes, share, created_at, after_at, after_id
)
VALUES (
    %(id)s, %(kind)s, %(name)s, %(workflow)s, %(version)s, %(variant)s, %(arms)s::json, %(samples)s, %(principal)s,
    %(scopes)s::text[], %(share)s::float8, %(created_at)s, %(created_at)s, %(id)s
)
ON CONFLICT (workflow, version) WHERE kind = 'shadow' AND stopped_at IS NULL DO NOTHING
"""

_DROP = """
DELETE FROM experiments WHERE id = %(id)s
"""

_SELECT = """
SELECT id, kind, name, workflow, version, variant, arms, samples, principal, created_at, scopes, share, stopped_at
FROM experiments
"""

# Jobs that these called are of the experiment as well, and by no arm. Of a shadow's pairs the newest is sample 1.
_JOBS = """
WITH run AS (
    SELECT id, replay_of, arm, COALESCE(sample, row_number() OVER (ORDER BY created_at DESC, id DESC))::int AS sample
    FROM jobs WHERE experiment = %(experiment)s AND arm IS NOT NULL
    ORDER BY created_at DESC, id DESC LIMIT %(most)s
)
SELECT id, arm, sample FROM run
UNION ALL
SELECT replay_of, 'a', sample FROM run WHERE replay_of IS NOT NULL
ORDER BY sample, arm
"""

_AT_REST = """
SELECT count(*) FILTER (WHERE finished_at IS NOT NULL OR status = 'waiting') AS at_rest, count(*) AS jobs
FROM jobs WHERE experiment = %(experiment)s AND arm IS NOT NULL
"""

_ATTEMPTS = """
SELECT
    attempts.job_id, attempts.turn, attempts.outcome, attempts.cause, attempts.rung_schema, attempts.rung_semantic,
    attempts.duration_ms
FROM attempts
WHERE attempts.job_id = ANY(%(jobs)s::uuid[]) AND attempts.outcome IS NOT NULL
ORDER BY attempts.job_id, attempts.turn, attempts.ordinal
"""

_TURNS = """
SELECT turns.job_id, turns.state, turns.output, turns.schema_hash
FROM turns JOIN jobs ON jobs.id = turns.job_id
WHERE jobs.experiment = %(experiment)s AND turns.outcome = 'valid'
ORDER BY turns.job_id, turns.ordinal
"""

_SCHEMAS = """
SELECT hash, schema FROM output_schemas WHERE hash IN (
    SELECT turns.schema_hash FROM turns JOIN jobs ON jobs.id = turns.job_id WHERE jobs.experiment = %(experiment)s
)
"""
