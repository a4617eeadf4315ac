"""What is counted of jobs, turns and attempts: one statement a kind, for metrics, statistics, trends and experiments.

Each statement takes ``since`` (null: from the beginning), ``edge`` (rows before it come apart, as ``settled``) and
``workflow`` (null: all of them). Its columns are labels, ``settled``, and numbers, in this order. Attempts and turns of
experiments are not counted; their jobs are if ``experiments`` is true.
"""

# ruff: noqa: S608 -- statements are put together from constants

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stepladder.models.attempt_counts import COUNTS
from stepladder.models.hot import DUE
from stepladder.models.shares import engines_used

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from stepladder.models.attempt_counts import Row
    from stepladder.models.database import Database
    from stepladder.models.shares import EngineUse

SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0)
"""Bounds between the buckets of durations; bucket 0 is below the first of them."""

SETTLED_AFTER_S = 60.0
"""A row is committed at most this long after the time that it bears, whichever clock set it."""

OF_WORKFLOW = "(%(workflow)s::text IS NULL OR jobs.workflow = %(workflow)s)"
"""The condition on jobs in each statement, for which ``stats`` substitutes a longer one."""

JUDGED = f"""
SELECT
    workflow, outcome, COALESCE(cause, '') AS cause, COALESCE(model, '') AS model, currency,
    judged_at < %(edge)s::timestamptz AS settled, {COUNTS},
    COALESCE(sum(prompt_tokens), 0)::bigint AS prompt_tokens,
    COALESCE(sum(completion_tokens), 0)::bigint AS completion_tokens,
    COALESCE(sum(cost), 0) AS cost
FROM judged_attempts JOIN jobs ON jobs.id = job_id
WHERE judged_at >= COALESCE(%(since)s::timestamptz, '-infinity') AND {OF_WORKFLOW} AND jobs.experiment IS NULL
GROUP BY 1, 2, 3, 4, 5, 6
"""

CLOSED = f"""
SELECT
    workflow, COALESCE(outcome, '') AS outcome, attempts, closed_at < %(edge)s::timestamptz AS settled,
    count(*) AS turns
FROM closed_turns JOIN jobs ON jobs.id = job_id
WHERE closed_at >= COALESCE(%(since)s::timestamptz, '-infinity') AND {OF_WORKFLOW} AND jobs.experiment IS NULL
GROUP BY 1, 2, 3, 4
"""

# A pattern, since PostgreSQL's JSON functions reject some escapes. No bare quote occurs inside a JSON string, so that
# it finds the field alone. The rule's id is JSON.
OBSERVED = rf"""
SELECT workflow, broken.rule[1] AS rule, judged_at < %(edge)s::timestamptz AS settled, count(*) AS attempts
FROM judged_attempts JOIN jobs ON jobs.id = job_id
    CROSS JOIN LATERAL regexp_matches(observed::text, '"source": *("(?:[^"\\]|\\.)*")', 'g') AS broken(rule)
WHERE judged_at >= COALESCE(%(since)s::timestamptz, '-infinity') AND {OF_WORKFLOW} AND jobs.experiment IS NULL
GROUP BY 1, 2, 3
"""

TIMED = f"""
SELECT
    workflow, timed.measure, width_bucket(timed.seconds, %(bounds)s::float8[]) AS bucket,
    judged_at < %(edge)s::timestamptz AS settled, count(*) AS attempts, sum(timed.seconds) AS seconds
FROM judged_attempts JOIN jobs ON jobs.id = job_id
    CROSS JOIN LATERAL (VALUES ('ttft', ttft_ms / 1000), ('duration', duration_ms / 1000)) AS timed(measure, seconds)
WHERE judged_at >= COALESCE(%(since)s::timestamptz, '-infinity') AND {OF_WORKFLOW} AND jobs.experiment IS NULL
    AND timed.seconds IS NOT NULL
GROUP BY 1, 2, 3, 4
"""

ENDED = f"""
SELECT
    workflow, status, COALESCE(failure, '') AS failure, finished_at < %(edge)s::timestamptz AS settled, count(*) AS jobs
FROM jobs
WHERE finished_at >= COALESCE(%(since)s::timestamptz, '-infinity') AND {OF_WORKFLOW}
    AND (%(experiments)s OR experiment IS NULL)
GROUP BY 1, 2, 3, 4
"""


@dataclass(frozen=True, slots=True)
class Tally:
    """``live`` counts jobs that have not ended by status, and ``leased`` those that a worker has by workflow and
    principal. ``due`` jobs wait for a worker, the first of them for ``age_s``.
    """

    judged: Sequence[Row]
    closed: Sequence[Row]
    observed: Sequence[Row]
    timed: Sequence[Row]
    ended: Sequence[Row]
    live: Mapping[str, int]
    leased: Sequence[Row]
    engines: Sequence[EngineUse]
    due: int
    age_s: float

    @property
    def in_hand(self) -> int:
        return sum(row["jobs"] for row in self.leased)


class Tallies:
    """Counts since the first job. Keeps what is settled, so that each reading costs only what is new.

    One reading at a time. The first one counts every row, by indexes.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._since: datetime | None = None
        self._settled = [_Settled(one) for one in (JUDGED, CLOSED, OBSERVED, TIMED, ENDED)]

    async def read(self) -> Tally:
        """The counts now. Raises ``UnreachableError`` when the database breaks."""
        edge = await self._database.row(_EDGE, {"settled_after_s": SETTLED_AFTER_S})
        if edge is None:
            raise LookupError("a SELECT of one row gave none")
        span = {"since": self._since, "edge": edge["at"], "workflow": None, "experiments": True, "bounds": [*SECONDS]}
        fresh = [await self._database.rows(settled.statement, span) for settled in self._settled]
        live = await self._database.rows(_LIVE, {})
        leased = await self._database.rows(_LEASED, {})
        engines = await engines_used(self._database)
        queue = await self._database.row(_QUEUE, {}) or {"due": 0, "age_s": 0.0}
        self._since = edge["at"]
        judged, closed, observed, timed, ended = (
            settled.add(rows) for settled, rows in zip(self._settled, fresh, strict=True)
        )
        statuses = {row["status"]: row["jobs"] for row in live}
        return Tally(judged, closed, named(observed), timed, ended, statuses, leased, engines, **queue)


class _Settled:
    """The settled numbers of one statement, by their labels."""

    def __init__(self, statement: str) -> None:
        self.statement = statement
        self._numbers: dict[tuple[tuple[str, Any], ...], Counter[str]] = {}

    def add(self, rows: Iterable[Row]) -> list[Row]:
        """Keeps the settled rows. Returns the sums of all, kept before or new, one row for each set of labels."""
        fresh: dict[tuple[tuple[str, Any], ...], Counter[str]] = {}
        for row in rows:
            columns = list(row.items())
            at = list(row).index("settled")
            kept = self._numbers if row["settled"] else fresh
            kept.setdefault(tuple(columns[:at]), Counter()).update(dict(columns[at + 1 :]))
        sums: list[Row] = []
        for labels in dict.fromkeys((*self._numbers, *fresh)):
            numbers = Counter(self._numbers.get(labels))
            numbers.update(fresh.get(labels))
            sums.append({**dict(labels), **numbers})
        return sums


def named(rows: Iterable[Row]) -> list[Row]:
    """Rows of ``OBSERVED`` with each rule's id as a string."""
    return [{**row, "rule": json.loads(row["rule"])} for row in rows]


_EDGE = """
SELECT now() - make_interval(secs => %(settled_after_s)s::float8) AS at
"""

_LIVE = """
SELECT
    CASE WHEN paused_at IS NOT NULL THEN 'paused' ELSE status END AS status, count(*) AS jobs
FROM jobs WHERE finished_at IS NULL GROUP BY 1
"""

_LEASED = """
SELECT workflow, principal, count(*) AS jobs FROM jobs
WHERE lease_owner IS NOT NULL AND lease_until > now() GROUP BY workflow, principal
"""

_QUEUE = f"""
SELECT count(*) AS due, COALESCE(EXTRACT(epoch FROM now() - min(wake_at)), 0)::float8 AS age_s
FROM jobs WHERE {DUE}
"""
