"""What came of the jobs of an experiment, and how much of the difference between its two arms is more than chance."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stepladder.experiments.intervals import mean, share, share_difference, sign_test
from stepladder.schemas.job import JobStatus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stepladder.experiments.intervals import Interval
    from stepladder.schemas.jsontypes import Json, JsonObject

RATES: Mapping[str, tuple[str, str]] = {
    "first_pass_format": ("first_in_format", "first_answers"),
    "semantic_pass": ("semantic", "in_format"),
    "validity": ("usable", "answers"),
}
"""Each rate as a share of answers, in the words of ``Run``."""
PER_JOB = ("tokens", "cost", "engine_ms")


@dataclass(frozen=True, slots=True)
class Run:
    """One job of an experiment: input number ``sample``, by one arm.

    Of its answers (attempts that were not lost on the way): those that were the first of their turn, those that kept to
    the schema, those of them that broke no rule, and those that were accepted. ``outcomes`` counts attempts by outcome
    and cause. ``engine_ms`` is what all attempts took together; ``cost`` is None unless every price is known.
    """

    job: str
    arm: str
    sample: int
    status: JobStatus
    failure: str | None = None
    attempts: int = 0
    answers: int = 0
    usable: int = 0
    first_answers: int = 0
    first_in_format: int = 0
    in_format: int = 0
    semantic: int = 0
    tokens: int = 0
    engine_ms: float = 0.0
    cost: float | None = None
    currency: str | None = None
    outcomes: Mapping[tuple[str, str | None], int] = field(default_factory=dict)

    @property
    def at_rest(self) -> bool:
        """Whether it has ended, or waits for somebody: by itself it comes no further."""
        return self.status.final or self.status is JobStatus.WAITING

    @property
    def succeeded(self) -> bool:
        return self.status is JobStatus.SUCCEEDED


def report(runs: Sequence[Run]) -> dict[str, Json]:
    """Jobs that are not at rest are only counted. ``arms`` by name, and of two of them the ``difference``."""
    names = sorted({run.arm for run in runs})
    arms = {name: [run for run in runs if run.arm == name] for name in names}
    found: dict[str, Json] = {
        "jobs": len(runs),
        "at_rest": sum(run.at_rest for run in runs),
        "arms": {name: _arm(of_arm) for name, of_arm in arms.items()},
    }
    if len(names) == 2:
        was, now = ([run for run in arms[name] if run.at_rest] for name in names)
        found["difference"] = _difference(was, now)
    return found


def _arm(runs: Sequence[Run]) -> JsonObject:
    rested = [run for run in runs if run.at_rest]
    outcomes: Counter[tuple[str, str | None]] = Counter()
    for run in rested:
        outcomes.update(run.outcomes)
    return {
        "jobs": dict(Counter(str(run.status) for run in runs)),
        "failures": dict(Counter(run.failure for run in runs if run.failure is not None)),
        "attempts": sum(run.attempts for run in rested),
        "outcomes": [
            {"outcome": outcome, "cause": cause, "attempts": times}
            for (outcome, cause), times in sorted(
                outcomes.items(), key=lambda one: (-one[1], one[0][0], one[0][1] or "")
            )
        ],
        "rates": {name: told(share(*parts)) for name, parts in _parts(rested).items()},
        "per_job": {name: told(mean(_values(rested, name))) for name in PER_JOB},
        "currency": _currency(rested),
    }


def _parts(runs: Sequence[Run]) -> dict[str, tuple[int, int]]:
    rates = {
        name: (sum(getattr(run, part) for run in runs), sum(getattr(run, whole) for run in runs))
        for name, (part, whole) in RATES.items()
    }
    ended = [run for run in runs if run.status.final]
    return {"succeeded": (sum(run.succeeded for run in ended), len(ended)), **rates}


def _difference(was: Sequence[Run], now: Sequence[Run]) -> JsonObject:
    """The second arm less the first. Means are of the inputs that both have come to rest with, each beside itself."""
    here, there = _parts(was), _parts(now)
    mates = {run.sample: run for run in now}
    both = [(run, mates[run.sample]) for run in was if run.sample in mates]
    known = _currency([one for pair in both for one in pair]) is not None
    return {
        "rates": {name: told(share_difference(here[name], there[name])) for name in here},
        "per_job": {
            name: told(mean([_value(after, name) - _value(before, name) for before, after in both]))
            for name in PER_JOB
            if name != "cost" or known
        }
        | ({} if known else {"cost": None}),
        "pairs": _pairs(both),
    }


def _pairs(both: Sequence[tuple[Run, Run]]) -> JsonObject:
    """Inputs by which arm succeeded with them; ``p`` is how likely chance alone splits the others so unevenly."""
    ended = [(was.succeeded, now.succeeded) for was, now in both if was.status.final and now.status.final]
    counts = Counter(ended)
    return {
        "inputs": len(ended),
        "both": counts[True, True],
        "only_first": counts[True, False],
        "only_second": counts[False, True],
        "neither": counts[False, False],
        "p": sign_test(counts[True, False], counts[False, True]),
    }


def _values(runs: Sequence[Run], name: str) -> list[float]:
    if name == "cost" and _currency(runs) is None:
        return []
    return [_value(run, name) for run in runs]


def _value(run: Run, name: str) -> float:
    return float(getattr(run, name) or 0)


def _currency(runs: Sequence[Run]) -> str | None:
    """The one currency in which the cost of every job is known; a job that took no tokens has none."""
    spent = [run for run in runs if run.tokens > 0]
    found = {run.currency for run in spent if run.cost is not None}
    return found.pop() if len(found) == 1 and all(run.cost is not None for run in spent) else None


def told(interval: Interval | None) -> JsonObject | None:
    """In the words of the HTTP API; ``clear`` says that zero lies outside."""
    if interval is None:
        return None
    return {
        "value": interval.value,
        "low": interval.low,
        "high": interval.high,
        "count": interval.count,
        "clear": interval.beyond_zero,
    }
