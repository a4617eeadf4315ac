"""What the variants of an experiment came to, and how certain their difference is."""

from __future__ import annotations

from typing import Any

import pytest

from stepladder.experiments.report import Run, report
from stepladder.models.ids import uuid7
from stepladder.schemas.job import JobStatus
from stepladder.schemas.stats import RATES

COLUMNS = dict.fromkeys([column for parts in RATES.values() for column in parts], 0)


def counted(outcome: str = "valid", cause: str | None = None, **counts: int) -> dict[str, Any]:
    return COLUMNS | {"outcome": outcome, "cause": cause, "engine_ms": 0.0} | counts


def run(arm: str, sample: int, status: JobStatus = JobStatus.SUCCEEDED, **fields: Any) -> Run:
    return Run(uuid7(), arm, sample, status, **fields)


def beside(*fields: tuple[dict[str, Any], dict[str, Any]]) -> Any:
    pairs = [(run("a", n, **first), run("b", n, **second)) for n, (first, second) in enumerate(fields, 1)]
    return report([one for pair in pairs for one in pair])


def test_rates_are_of_all_answers_of_a_variant() -> None:
    answers: dict[str, Any] = {"attempts": 3, "answers": 2, "usable": 1, "first_answers": 1, "answers_in_format": 2}
    answers["answers_semantic_valid"] = 1
    first, second = counted(**answers), counted(**answers, first_answers_in_format=1)
    found = beside(({"judged": [first]}, {}), ({"judged": [second]}, {}))
    rates = found.arms["a"].rates
    assert {name: (rate.value, rate.count) for name, rate in rates.items()} == {
        "succeeded": (1.0, 2),
        "first_pass_format": (0.5, 2),
        "semantic_pass": (0.5, 4),
        "validity": (0.5, 4),
    }
    assert [rate for name, rate in found.arms["b"].rates.items() if name != "succeeded"] == [None] * 3
    assert found.difference.rates["validity"] is None


def test_the_means_of_each_input_are_paired() -> None:
    """Each variant varies far more than they differ."""
    found = beside(*(({"tokens": base}, {"tokens": base + 10 + base % 3}) for base in (10, 100, 1000, 5000)))
    difference = found.difference.per_job["tokens"]
    assert (difference.value, difference.count, difference.clear) == (pytest.approx(11.25), 4, True)
    first, second = (found.arms[name].per_job["tokens"] for name in ("a", "b"))
    assert second.low < first.value < second.high


def test_jobs_that_are_not_at_rest_are_only_counted() -> None:
    found = beside(({"tokens": 10}, {"tokens": 30}), ({"tokens": 999}, {"status": JobStatus.RUNNING, "tokens": 1}))
    assert (found.jobs, found.at_rest) == (4, 3)
    assert found.difference.per_job["tokens"].value == 20
    assert found.arms["b"].per_job["tokens"].count == 1
    assert found.arms["b"].jobs == {"succeeded": 1, "running": 1}


def test_a_waiting_job_is_at_rest_and_neither_succeeded_nor_failed() -> None:
    found = beside(({"status": JobStatus.WAITING, "tokens": 5}, {"status": JobStatus.WAITING, "tokens": 7}))
    assert found.arms["a"].rates["succeeded"] is None
    assert found.difference.per_job["tokens"].value == 2
    assert (found.difference.pairs.inputs, found.difference.pairs.p) == (0, None)


def test_inputs_are_counted_by_which_variant_succeeded() -> None:
    lost = {"status": JobStatus.FAILED, "failure": "loop"}
    found = beside(({}, {}), *[({}, lost)] * 5, (lost, lost))
    assert found.difference.pairs.as_json() == {
        "inputs": 7, "both": 1, "only_first": 5, "only_second": 0, "neither": 1, "p": 0.0625,
    }  # fmt: skip
    assert found.arms["b"].failures == {"loop": 6}


def test_a_cost_needs_every_price_in_one_currency() -> None:
    priced = {"tokens": 10, "cost": 0.5, "currency": "EUR"}
    assert beside((priced, priced | {"cost": 0.75})).difference.per_job["cost"].value == 0.25
    assert beside((priced, {"tokens": 0})).difference.per_job["cost"].value == -0.5
    for other in ({"tokens": 10}, priced | {"currency": "USD"}):
        assert beside((priced, other)).difference.per_job["cost"] is None


def test_one_variant_alone_has_no_difference() -> None:
    judged = [counted("semantic", "sum", attempts=2), counted(attempts=1)]
    found = report([run("a", 1, judged=judged)])
    assert "difference" not in found.model_fields_set
    assert [(one.outcome, one.cause, one.attempts) for one in found.arms["a"].outcomes] == [
        ("semantic", "sum", 2),
        ("valid", None, 1),
    ]
