"""What became of attempts over time, in even steps, and which turns took longest."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepladder.schemas.outcomes import Cause, Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime, timedelta
    from uuid import UUID

    from stepladder.models.database import Database


@dataclass(frozen=True, slots=True)
class Bucket:
    """The attempts that were judged in one step of time, from ``at`` on. ``nothing`` counts the complete answers with
    nothing in them. The rates are those of ``models.stats.Rates``: from 0 to 1, None where there is nothing."""

    at: datetime
    outcomes: Mapping[Outcome, int]
    nothing: int = 0

    @property
    def attempts(self) -> int:
        return sum(self.outcomes.values())

    @property
    def answers(self) -> int:
        return self.attempts - self.outcomes.get(Outcome.TRANSPORT, 0)

    @property
    def validity(self) -> float | None:
        return _ratio(self.outcomes.get(Outcome.VALID, 0), self.answers)

    @property
    def truncation(self) -> float | None:
        return _ratio(self.outcomes.get(Outcome.TRUNCATION, 0), self.answers)

    @property
    def zero_token(self) -> float | None:
        return _ratio(self.nothing, self.answers)

    @property
    def transport(self) -> float | None:
        return _ratio(self.outcomes.get(Outcome.TRANSPORT, 0), self.attempts)


@dataclass(frozen=True, slots=True)
class SlowTurn:
    """A turn that was closed, and how long it took from its first request to its last verdict, retries included."""

    job_id: UUID
    workflow: str
    turn: int
    visit: int
    state: str
    outcome: Outcome | None
    attempts: int
    took: timedelta


def together(buckets: Sequence[Bucket], at: datetime) -> Bucket:
    """All of them as one."""
    outcomes = {outcome: sum(bucket.outcomes.get(outcome, 0) for bucket in buckets) for outcome in Outcome}
    return Bucket(at, outcomes, sum(bucket.nothing for bucket in buckets))


async def read_trend(
    database: Database, since: datetime, step: timedelta, steps: int, workflow: str | None = None
) -> tuple[Bucket, ...]:
    """``steps`` steps from ``since`` on, of all workflows or of one. Raises ``UnreachableError`` as any reading."""
    span = {"since": since, "until": since + step * steps, "step": step, "workflow": workflow}
    counts: defaultdict[datetime, dict[Outcome, int]] = defaultdict(dict)
    nothing: defaultdict[datetime, int] = defaultdict(int)
    for row in await database.rows(_TREND, span | {"no_content": Cause.NO_CONTENT, "empty": Outcome.EMPTY}):
        counts[row["at"]][Outcome(row["outcome"])] = row["attempts"]
        nothing[row["at"]] += row["nothing"]
    moments = [since + step * nth for nth in range(steps)]
    return tuple(
        Bucket(at, {outcome: counts[at].get(outcome, 0) for outcome in Outcome}, nothing[at]) for at in moments
    )


async def read_slowest(
    database: Database, since: datetime, limit: int, workflow: str | None = None
) -> tuple[SlowTurn, ...]:
    """The turns closed since then that took longest. What a replay took over was not asked, and is left out."""
    rows = await database.rows(_SLOWEST, {"since": since, "limit": limit, "workflow": workflow})
    return tuple(
        SlowTurn(**row | {"outcome": None if row["outcome"] is None else Outcome(row["outcome"])}) for row in rows
    )


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


_TREND = """
SELECT
    date_bin(%(step)s::interval, judged_at, %(since)s::timestamptz) AS at, outcome, count(*) AS attempts,
    count(*) FILTER (WHERE outcome = %(empty)s AND cause = %(no_content)s) AS nothing
FROM attempts
WHERE judged_at >= %(since)s::timestamptz AND judged_at < %(until)s::timestamptz
    AND (%(workflow)s::text IS NULL OR EXISTS (
        SELECT FROM jobs WHERE jobs.id = attempts.job_id AND jobs.workflow = %(workflow)s
    ))
GROUP BY 1, 2
"""

_SLOWEST = """
SELECT
    slow.job_id, jobs.workflow, slow.ordinal AS turn, slow.visit, slow.state, slow.outcome,
    slow.closed_at - slow.opened_at AS took,
    (SELECT count(*) FROM attempts WHERE attempts.job_id = slow.job_id AND attempts.turn = slow.ordinal)::int
        AS attempts
FROM (
    SELECT job_id, ordinal, visit, state, outcome, opened_at, closed_at FROM turns
    WHERE closed_at >= %(since)s::timestamptz AND NOT carried
        AND (%(workflow)s::text IS NULL OR EXISTS (
            SELECT FROM jobs WHERE jobs.id = turns.job_id AND jobs.workflow = %(workflow)s
        ))
    ORDER BY closed_at - opened_at DESC, job_id, ordinal LIMIT %(limit)s
) AS slow
    JOIN jobs ON jobs.id = slow.job_id
ORDER BY took DESC, slow.job_id, slow.ordinal
"""
