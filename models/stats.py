"""What became of a workflow's attempts, turns and jobs since a moment: rates, and what a usable output took."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stepladder.models import measures
from stepladder.models.listing import like
from stepladder.models.tally import named
from stepladder.schemas.job import JobStatus
from stepladder.schemas.outcomes import Cause, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from stepladder.models.database import Database
    from stepladder.models.listing import JobFilter

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Share:
    """Attempts with one outcome and cause, and where their tokens went. ``cost`` is None where it is not known."""

    outcome: Outcome
    cause: str | None
    attempts: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None


@dataclass(frozen=True, slots=True)
class Rates:
    """From 0 to 1, and None where there is nothing to take a share of.

    ``validity`` and ``truncation`` are shares of the answers that arrived, and so is ``zero_token``: those that were
    complete with nothing in them (outcome ``empty``, cause ``no_content``). ``transport`` is the share of all attempts
    of which no complete answer arrived. ``first_pass_format``: of the first answers of turns, those that kept to the
    schema. ``semantic_pass``: of the answers that kept to the schema, those that broke no rule.
    """

    validity: float | None
    truncation: float | None
    zero_token: float | None
    transport: float | None
    first_pass_format: float | None
    semantic_pass: float | None


@dataclass(frozen=True, slots=True)
class Took:
    """How many turns came to their end after so many attempts."""

    attempts: int
    turns: int
    accepted: int


@dataclass(frozen=True, slots=True)
class ObservedRule:
    """A rule of severity ``observe``, and how many attempts broke it."""

    rule: str
    attempts: int


@dataclass(frozen=True, slots=True)
class Jobs:
    """Jobs that ended since then, and those that have not ended now."""

    succeeded: int
    failed: int
    cancelled: int
    live: int


@dataclass(frozen=True, slots=True)
class WorkflowStats:
    """One workflow, all its versions together. A usable output is the answer of a turn that was accepted.

    Tokens and cost are of all attempts, retries included. ``cost`` is None unless the price of each attempt is known,
    in one ``currency``.
    """

    workflow: str
    jobs: Jobs
    attempts: int
    answers: int
    usable: int
    rates: Rates
    attempts_per_turn: tuple[Took, ...]
    outcomes: tuple[Share, ...]
    observed: tuple[ObservedRule, ...]
    prompt_tokens: int
    completion_tokens: int
    tokens_per_usable: float | None
    cost: float | None
    cost_per_usable: float | None
    currency: str | None


async def read_stats(
    database: Database, since: datetime, workflow: str | None = None, wanted: JobFilter | None = None
) -> tuple[WorkflowStats, ...]:
    """Of each workflow that had anything to do since then, or of the one that is named, by name.

    With a filter, of the jobs that pass it. Raises ``UnreachableError`` when the database breaks.
    """
    span = {"since": since, "edge": None, "workflow": workflow, "experiments": False}
    conditions, parameters = ([], {}) if wanted is None else like(wanted)
    such = " AND ".join(f"({one})" for one in (measures.OF_WORKFLOW, *conditions))

    async def rows(statement: str) -> list[Row]:
        return await database.rows(statement.replace(measures.OF_WORKFLOW, such), span | parameters)

    judged, closed = await rows(measures.JUDGED), await rows(measures.CLOSED)
    observed = named(await rows(measures.OBSERVED))
    ended, live = await rows(measures.ENDED), await rows(_LIVE)
    kinds = [_by_workflow(rows) for rows in (judged, closed, observed, ended, live)]
    names = sorted({name for kind in kinds for name in kind})
    return tuple(_stats(name, *(kind[name] for kind in kinds)) for name in names)


def _by_workflow(rows: Iterable[Row]) -> defaultdict[str, list[Row]]:
    found: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row["workflow"]].append(row)
    return found


def _stats(
    workflow: str, judged: list[Row], closed: list[Row], observed: list[Row], ended: list[Row], live: list[Row]
) -> WorkflowStats:
    attempts = sum(row["attempts"] for row in judged)
    answers = _count(judged, lambda row: row["outcome"] != Outcome.TRANSPORT)
    usable = _count(judged, lambda row: row["outcome"] == Outcome.VALID)
    prompt, completion = (sum(row[name] for row in judged) for name in ("prompt_tokens", "completion_tokens"))
    cost = _cost(judged)
    currencies = {row["currency"] for row in judged if row["currency"] is not None}
    return WorkflowStats(
        workflow=workflow,
        jobs=_jobs(ended, live),
        attempts=attempts,
        answers=answers,
        usable=usable,
        rates=_rates(judged, attempts, answers, usable),
        attempts_per_turn=_attempts_per_turn(closed),
        outcomes=_shares(judged),
        observed=tuple(
            ObservedRule(row["rule"], row["attempts"])
            for row in sorted(observed, key=lambda row: (-row["attempts"], row["rule"]))
        ),
        prompt_tokens=prompt,
        completion_tokens=completion,
        tokens_per_usable=_ratio(prompt + completion, usable),
        cost=cost,
        cost_per_usable=None if cost is None else _ratio(cost, usable),
        currency=currencies.pop() if len(currencies) == 1 else None,
    )


def _rates(judged: list[Row], attempts: int, answers: int, usable: int) -> Rates:
    def total(name: str) -> int:
        return sum(row[name] for row in judged)

    truncated = _count(judged, lambda row: row["outcome"] == Outcome.TRUNCATION)
    nothing = _count(judged, lambda row: (row["outcome"], row["cause"]) == (Outcome.EMPTY, Cause.NO_CONTENT))
    return Rates(
        validity=_ratio(usable, answers),
        truncation=_ratio(truncated, answers),
        zero_token=_ratio(nothing, answers),
        transport=_ratio(attempts - answers, attempts),
        first_pass_format=_ratio(total("first_answers_in_format"), total("first_answers")),
        semantic_pass=_ratio(total("answers_semantic_valid"), total("answers_in_format")),
    )


def _attempts_per_turn(closed: list[Row]) -> tuple[Took, ...]:
    turns: Counter[int] = Counter()
    accepted: Counter[int] = Counter()
    for row in closed:
        turns[row["attempts"]] += row["turns"]
        accepted[row["attempts"]] += row["turns"] if row["outcome"] == Outcome.VALID else 0
    return tuple(Took(attempts, turns[attempts], accepted[attempts]) for attempts in sorted(turns))


def _shares(judged: list[Row]) -> tuple[Share, ...]:
    kinds: defaultdict[tuple[Outcome, str], list[Row]] = defaultdict(list)
    for row in judged:
        kinds[Outcome(row["outcome"]), row["cause"]].append(row)
    order = list(Outcome)
    return tuple(
        Share(
            outcome=outcome,
            cause=cause or None,
            attempts=sum(row["attempts"] for row in rows),
            prompt_tokens=sum(row["prompt_tokens"] for row in rows),
            completion_tokens=sum(row["completion_tokens"] for row in rows),
            cost=_cost(rows),
        )
        for (outcome, cause), rows in sorted(kinds.items(), key=lambda item: (order.index(item[0][0]), item[0][1]))
    )


def _cost(rows: list[Row]) -> float | None:
    """Of all the rows, or None where a price is missing, or there are several currencies."""
    spent = [row for row in rows if row["prompt_tokens"] + row["completion_tokens"] > 0]
    priced = {row["currency"] for row in spent}
    return None if len(priced) != 1 or None in priced else float(sum(row["cost"] for row in spent))


def _jobs(ended: list[Row], live: list[Row]) -> Jobs:
    counts: Counter[str] = Counter()
    for row in ended:
        counts[row["status"]] += row["jobs"]
    alive = sum(row["jobs"] for row in live)
    return Jobs(counts[JobStatus.SUCCEEDED], counts[JobStatus.FAILED], counts[JobStatus.CANCELLED], alive)


def _count(rows: list[Row], condition: Callable[[Row], bool]) -> int:
    return sum(row["attempts"] for row in rows if condition(row))


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


_LIVE = """
SELECT workflow, count(*) AS jobs FROM jobs
WHERE finished_at IS NULL AND experiment IS NULL AND (%(workflow)s::text IS NULL OR jobs.workflow = %(workflow)s)
GROUP BY 1
"""
