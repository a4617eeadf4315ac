"""Counts of what has happened since the first job, read again and again at the cost of what is new."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from stepladder.models.database import Database

SETTLED_AFTER_S = 60.0
"""A row is written within this time of the moment that it bears: older moments get no more rows."""


@dataclass(frozen=True, slots=True)
class Judged:
    """Attempts of one kind, and their tokens."""

    workflow: str
    outcome: str
    cause: str


@dataclass(frozen=True, slots=True)
class Ended:
    """Jobs that ended in one way. ``failure`` is empty where there was none."""

    workflow: str
    status: str
    failure: str


@dataclass(frozen=True, slots=True)
class Tally:
    """``live`` counts jobs that have not ended by status. ``due`` jobs wait for a worker, the first for ``age_s``."""

    attempts: Mapping[Judged, int]
    prompt_tokens: Mapping[str, int]
    completion_tokens: Mapping[str, int]
    ended: Mapping[Ended, int]
    live: Mapping[str, int]
    in_hand: int
    due: int
    age_s: float


class Tallies:
    """Keeps what is settled, and asks an opened ``Database`` for the rest. One reading at a time.

    The first reading counts every row, by an index that is as old as the rows are.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._since: datetime | None = None
        self._attempts: Counter[Judged] = Counter()
        self._prompt: Counter[str] = Counter()
        self._completion: Counter[str] = Counter()
        self._ended: Counter[Ended] = Counter()

    async def read(self) -> Tally:
        """The counts now. Raises ``UnreachableError`` when the database breaks."""
        edge = await self._database.row(_EDGE, {"settled_after_s": SETTLED_AFTER_S})
        if edge is None:
            raise LookupError("a SELECT of one row gave none")
        span = {"since": self._since, "edge": edge["at"]}
        judged = await self._database.rows(_JUDGED, span)
        ended = await self._database.rows(_ENDED, span)
        live = await self._database.rows(_LIVE, {})
        queue = await self._database.row(_QUEUE, {}) or {"due": 0, "age_s": 0.0}
        self._since = edge["at"]
        self._settle(judged, ended)
        attempts, done = Counter(self._attempts), Counter(self._ended)
        prompt, completion = Counter(self._prompt), Counter(self._completion)
        _add([row for row in judged if not row["settled"]], attempts, prompt, completion)
        done.update({_ended(row): row["n"] for row in ended if not row["settled"]})
        return Tally(
            attempts,
            prompt,
            completion,
            done,
            live={row["status"]: row["n"] for row in live},
            in_hand=sum(row["in_hand"] for row in live),
            due=queue["due"],
            age_s=queue["age_s"],
        )

    def _settle(self, judged: list[dict[str, Any]], ended: list[dict[str, Any]]) -> None:
        _add([row for row in judged if row["settled"]], self._attempts, self._prompt, self._completion)
        self._ended.update({_ended(row): row["n"] for row in ended if row["settled"]})


def _add(rows: list[dict[str, Any]], attempts: Counter[Judged], prompt: Counter[str], completion: Counter[str]) -> None:
    for row in rows:
        attempts[Judged(row["workflow"], row["outcome"], row["cause"])] += row["n"]
        prompt[row["workflow"]] += row["prompt_tokens"]
        completion[row["workflow"]] += row["completion_tokens"]


def _ended(row: Mapping[str, Any]) -> Ended:
    return Ended(row["workflow"], row["status"], row["failure"])


_EDGE = """
SELECT now() - make_interval(secs => %(settled_after_s)s::float8) AS at
"""

_JUDGED = """
SELECT
    jobs.workflow, attempts.outcome, COALESCE(attempts.cause, '') AS cause, judged_at < %(edge)s AS settled,
    count(*) AS n, COALESCE(sum(prompt_tokens), 0)::bigint AS prompt_tokens,
    COALESCE(sum(completion_tokens), 0)::bigint AS completion_tokens
FROM attempts JOIN jobs ON jobs.id = attempts.job_id
WHERE judged_at >= COALESCE(%(since)s::timestamptz, '-infinity')
GROUP BY 1, 2, 3, 4
"""

_ENDED = """
SELECT workflow, status, COALESCE(failure, '') AS failure, finished_at < %(edge)s AS settled, count(*) AS n
FROM jobs WHERE finished_at >= COALESCE(%(since)s::timestamptz, '-infinity')
GROUP BY 1, 2, 3, 4
"""

_LIVE = """
SELECT
    CASE WHEN paused_at IS NOT NULL THEN 'paused' ELSE status END AS status, count(*) AS n,
    count(*) FILTER (WHERE lease_until > now()) AS in_hand
FROM jobs WHERE finished_at IS NULL GROUP BY 1
"""

_QUEUE = """
SELECT count(*) AS due, COALESCE(EXTRACT(epoch FROM now() - min(wake_at)), 0)::float8 AS age_s
FROM jobs
WHERE wake_at <= now()
    AND paused_at IS NULL
    AND status IN ('queued', 'running', 'waiting')
    AND (lease_until IS NULL OR lease_until <= now())
"""
