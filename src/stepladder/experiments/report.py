"""The results of an experiment's jobs, and whether two variants differ by more than chance."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stepladder.experiments.intervals import mean, share, share_difference, sign_test
from stepladder.schemas.experiment import Arm, Difference, OutcomeCount, Pairs, Report
from stepladder.schemas.job import JobStatus
from stepladder.schemas.stats import RATES, total

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from stepladder.schemas.experiment import Interval
    from stepladder.schemas.job import Failure

SHOWN_RATES = ("first_pass_format", "semantic_pass", "validity")
PER_JOB = ("tokens", "cost", "engine_ms")


@dataclass(frozen=True, slots=True)
class Run:
    """One job of an experiment: input number ``sample``, run by the variant ``arm``.

    ``judged`` are its attempts, counted by outcome and cause, each with the columns of ``models.counts.COUNTS`` and
    ``engine_ms``. ``cost`` is None unless every price is known.
    """

    job: UUID
    arm: str
    sample: int
    status: JobStatus
    failure: Failure | None = None
    tokens: int = 0
    cost: float | None = None
    currency: str | None = None
    judged: Sequence[Mapping[str, Any]] = ()

    @property
    def at_rest(self) -> bool:
        """It has ended, or waits for a person."""
        return self.status.final or self.status is JobStatus.WAITING

    @property
    def succeeded(self) -> bool:
        return self.status is JobStatus.SUCCEEDED

    @property
    def attempts(self) -> int:
        return total(self.judged, "attempts")

    @property
    def engine_ms(self) -> float:
        return total(self.judged, "engine_ms")


def report(runs: Sequence[Run]) -> Report:
    """The variants by name. Jobs that are not at rest are only counted."""
    names = sorted({run.arm for run in runs})
    variants = {name: [run for run in runs if run.arm == name] for name in names}
    counted = {"jobs": len(runs), "at_rest": sum(run.at_rest for run in runs)}
    arms = {name: _arm(of_variant) for name, of_variant in variants.items()}
    if len(names) != 2:
        return Report(arms=arms, **counted)
    first, second = ([run for run in variants[name] if run.at_rest] for name in names)
    return Report(arms=arms, difference=_difference(first, second), **counted)


def _arm(runs: Sequence[Run]) -> Arm:
    rested = [run for run in runs if run.at_rest]
    outcomes: Counter[tuple[str, str | None]] = Counter()
    for row in (row for run in rested for row in run.judged):
        outcomes[row["outcome"], row["cause"]] += row["attempts"]
    ordered = sorted(outcomes.items(), key=lambda one: (-one[1], one[0][0], one[0][1] or ""))
    return Arm(
        jobs=Counter(str(run.status) for run in runs),
        failures=Counter(run.failure for run in runs if run.failure is not None),
        attempts=sum(run.attempts for run in rested),
        outcomes=[OutcomeCount(outcome=outcome, cause=cause, attempts=n) for (outcome, cause), n in ordered],
        rates={name: share(*parts) for name, parts in _parts(rested).items()},
        per_job={name: mean(_values(rested, name)) for name in PER_JOB},
        currency=_currency(rested),
    )


def _parts(runs: Sequence[Run]) -> dict[str, tuple[int, int]]:
    """Each rate as part and whole."""
    rows = [row for run in runs for row in run.judged]
    ended = [run for run in runs if run.status.final]
    rates = {name: (total(rows, RATES[name][0]), total(rows, RATES[name][1])) for name in SHOWN_RATES}
    return {"succeeded": (sum(run.succeeded for run in ended), len(ended)), **rates}


def _difference(was: Sequence[Run], now: Sequence[Run]) -> Difference:
    """Each input is paired with itself, where both variants are at rest."""
    here, there = _parts(was), _parts(now)
    others = {run.sample: run for run in now}
    both = [(run, others[run.sample]) for run in was if run.sample in others]
    per_job: dict[str, Interval | None] = {}
    for name in PER_JOB:
        known = name != "cost" or _currency([run for pair in both for run in pair]) is not None
        per_job[name] = mean([_value(after, name) - _value(before, name) for before, after in both if known])
    return Difference(
        rates={name: share_difference(here[name], there[name]) for name in here},
        per_job=per_job,
        pairs=_pairs(both),
    )


def _pairs(both: Sequence[tuple[Run, Run]]) -> Pairs:
    counts = Counter((was.succeeded, now.succeeded) for was, now in both if was.status.final and now.status.final)
    return Pairs(
        inputs=counts.total(),
        both=counts[True, True],
        only_first=counts[True, False],
        only_second=counts[False, True],
        neither=counts[False, False],
        p=sign_test(counts[True, False], counts[False, True]),
    )


def _values(runs: Sequence[Run], name: str) -> list[float]:
    return [] if name == "cost" and _currency(runs) is None else [_value(run, name) for run in runs]


def _value(run: Run, name: str) -> float:
    return float(getattr(run, name) or 0)


def _currency(runs: Sequence[Run]) -> str | None:
    """The currency in which every cost is known; a job that took no tokens has no cost."""
    spent = [run for run in runs if run.tokens > 0]
    currencies = {run.currency if run.cost is not None else None for run in spent}
    return currencies.pop() if len(currencies) == 1 else None
