"""What became of attempts, turns and jobs since a moment: rates, costs, the trend, and the slowest turns."""

# ruff: noqa: S608 -- statements are put together from constants

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stepladder.models.attempt_counts import COUNTS
from stepladder.queries import counts
from stepladder.queries.counts import named
from stepladder.queries.listing import like
from stepladder.schemas.job import JobStatus
from stepladder.schemas.outcomes import Outcome
from stepladder.schemas.stats import (
    JobCounts,
    ObservedRule,
    OutcomeShare,
    Rates,
    TurnsByAttempts,
    WorkflowStats,
    ratio,
    total,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime, timedelta
    from uuid import UUID

    from stepladder.models.attempt_counts import Row
    from stepladder.models.database import Database
    from stepladder.schemas.job_filter import JobFilter


@dataclass(frozen=True, slots=True)
class Bucket:
    """The attempts that were judged in one step of time, from ``at`` on."""

    at: datetime
    outcomes: Mapping[Outcome, int]
    rates: Rates

    @property
    def attempts(self) -> int:
        return sum(self.outcomes.values())


@dataclass(frozen=True, slots=True)
class SlowTurn:
    """A closed turn, and how long it took from its first request to its last verdict, retries included."""

    job_id: UUID
    workflow: str
    turn: int
    visit: int
    state: str
    outcome: Outcome | None
    attempts: int
    took: timedelta


async def read_stats(
    database: Database, since: datetime, workflow: str | None = None, wanted: JobFilter | None = None
) -> tuple[WorkflowStats, ...]:
    """By name, each workflow that did anything since then, or the one that is named.

    With a filter, only of the jobs that match it. Raises ``UnreachableError`` when the database breaks.
    """
    span = {"since": since, "edge": None, "workflow": workflow, "experiments": False}
    conditions, parameters = ([], {}) if wanted is None else like(wanted)
    where = " AND ".join(f"({one})" for one in (counts.OF_WORKFLOW, *conditions))
    kinds = []
    for statement in (counts.JUDGED, counts.CLOSED, counts.OBSERVED, counts.ENDED, _LIVE):
        rows = await database.rows(statement.replace(counts.OF_WORKFLOW, where), span | parameters)
        kinds.append(_by(rows, "workflow"))
    names = sorted({name for kind in kinds for name in kind})
    return tuple(_stats(name, *(kind[name] for kind in kinds)) for name in names)


async def read_trend(
    database: Database, since: datetime, step: timedelta, steps: int, workflow: str | None = None
) -> tuple[tuple[Bucket, ...], Bucket]:
    """``steps`` buckets from ``since`` on, of all workflows or of one, and all of them as one."""
    span = {"since": since, "until": since + step * steps, "step": step, "workflow": workflow}
    rows = await database.rows(_TREND, span)
    at = _by(rows, "at")
    moments = [since + step * nth for nth in range(steps)]
    return tuple(_bucket(moment, at[moment]) for moment in moments), _bucket(since, rows)


async def read_slowest(
    database: Database, since: datetime, limit: int, workflow: str | None = None
) -> tuple[SlowTurn, ...]:
    """The turns closed since then that took longest. Turns that a replay carried over are left out."""
    rows = await database.rows(_SLOWEST, {"since": since, "limit": limit, "workflow": workflow})
    return tuple(
        SlowTurn(**row | {"outcome": None if row["outcome"] is None else Outcome(row["outcome"])}) for row in rows
    )


def _by(rows: Iterable[Row], column: str) -> defaultdict[Any, list[Row]]:
    found: defaultdict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        found[row[column]].append(row)
    return found


def _bucket(at: datetime, rows: list[Row]) -> Bucket:
    outcomes = Counter(dict.fromkeys(Outcome, 0))
    for row in rows:
        outcomes[Outcome(row["outcome"])] += row["attempts"]
    return Bucket(at, outcomes, Rates.of(rows))


def _stats(
    workflow: str, judged: list[Row], closed: list[Row], observed: list[Row], ended: list[Row], live: list[Row]
) -> WorkflowStats:
    usable = total(judged, "usable")
    prompt, completion = total(judged, "prompt_tokens"), total(judged, "completion_tokens")
    cost = _cost(judged)
    currencies = {row["currency"] for row in judged if row["currency"] is not None}
    jobs = Counter({status: total(rows, "jobs") for status, rows in _by(ended, "status").items()})
    return WorkflowStats(
        workflow=workflow,
        jobs=JobCounts(
            succeeded=jobs[JobStatus.SUCCEEDED],
            failed=jobs[JobStatus.FAILED],
            cancelled=jobs[JobStatus.CANCELLED],
            live=total(live, "jobs"),
        ),
        attempts=total(judged, "attempts"),
        answers=total(judged, "answers"),
        usable=usable,
        rates=Rates.of(judged),
        attempts_per_turn=_attempts_per_turn(closed),
        outcomes=_shares(judged),
        observed=[
            ObservedRule(rule=row["rule"], attempts=row["attempts"])
            for row in sorted(named(observed), key=lambda row: (-row["attempts"], row["rule"]))
        ],
        prompt_tokens=prompt,
        completion_tokens=completion,
        tokens_per_usable=ratio(prompt + completion, usable),
        cost=cost,
        cost_per_usable=None if cost is None else ratio(cost, usable),
        currency=currencies.pop() if len(currencies) == 1 else None,
    )


def _attempts_per_turn(closed: list[Row]) -> list[TurnsByAttempts]:
    found = []
    for attempts, rows in sorted(_by(closed, "attempts").items()):
        accepted = [row for row in rows if row["outcome"] == Outcome.VALID]
        found.append(TurnsByAttempts(attempts=attempts, turns=total(rows, "turns"), accepted=total(accepted, "turns")))
    return found


def _shares(judged: list[Row]) -> list[OutcomeShare]:
    found = []
    for outcome in Outcome:
        causes = _by((row for row in judged if row["outcome"] == outcome), "cause")
        for cause, rows in sorted(causes.items()):
            numbers = {name: total(rows, name) for name in ("attempts", "prompt_tokens", "completion_tokens")}
            found.append(OutcomeShare(outcome=outcome, cause=cause or None, cost=_cost(rows), **numbers))
    return found


def _cost(rows: list[Row]) -> float | None:
    """The cost of all rows; None if a price is missing, or there are several currencies."""
    spent = [row for row in rows if row["prompt_tokens"] + row["completion_tokens"] > 0]
    currencies = {row["currency"] for row in spent}
    return None if len(currencies) != 1 or None in currencies else float(sum(row["cost"] for row in spent))


_LIVE = f"""
SELECT workflow, count(*) AS jobs FROM jobs
WHERE finished_at IS NULL AND experiment IS NULL AND {counts.OF_WORKFLOW}
GROUP BY 1
"""

_TREND = f"""
SELECT date_bin(%(step)s::interval, judged_at, %(since)s::timestamptz) AS at, outcome, {COUNTS}
FROM judged_attempts JOIN jobs ON jobs.id = job_id
WHERE judged_at >= %(since)s::timestamptz AND judged_at < %(until)s::timestamptz AND {counts.OF_WORKFLOW}
    AND jobs.experiment IS NULL
GROUP BY 1, 2
"""

_SLOWEST = f"""
SELECT
    job_id, workflow, turn, visit, closed_turns.state, outcome, attempts::int, closed_at - opened_at AS took
FROM closed_turns JOIN jobs ON jobs.id = job_id
WHERE closed_at >= %(since)s::timestamptz AND {counts.OF_WORKFLOW}
ORDER BY took DESC, job_id, turn LIMIT %(limit)s
"""
