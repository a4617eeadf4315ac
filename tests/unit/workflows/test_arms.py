"""What the arms of an experiment came to, and how sure their difference is."""

from __future__ import annotations

from typing import Any

import pytest

from stepladder.experiments.arms import Run, report
from stepladder.schemas.job import JobStatus


def run(arm: str, sample: int, status: JobStatus = JobStatus.SUCCEEDED, **fields: Any) -> Run:
    return Run(f"{arm}{sample}", arm, sample, status, **fields)


def beside(*fields: tuple[dict[str, Any], dict[str, Any]]) -> Any:
    pairs = [(run("a", n, **first), run("b", n, **second)) for n, (first, second) in enumerate(fields, 1)]
    return report([one for pair in pairs for one in pair])


def test_rates_are_of_all_answers_of_an_arm() -> None:
    answers = {"attempts": 3, "answers": 2, "usable": 1, "first_answers": 1, "in_format": 2, "semantic": 1}
    found = beside((answers, {}), (answers | {"first_in_format": 1}, {}))
    first, second = found["arms"]["a"]["rates"], found["arms"]["b"]["rates"]
    assert {name: (rate["value"], rate["count"]) for name, rate in first.items()} == {
        "succeeded": (1.0, 2),
        "first_pass_format": (0.5, 2),
        "semantic_pass": (0.5, 4),
        "validity": (0.5, 4),
    }
    assert {name: second[name] for name in ("first_pass_format", "semantic_pass", "validity")} == dict.fromkeys(
        ("first_pass_format", "semantic_pass", "validity")
    )
    assert found["difference"]["rates"]["validity"] is None


def test_what_each_input_takes_is_compared_with_itself() -> None:
    """By itself, each arm varies far more than the one differs from the other."""
    found = beside(*(({"tokens": base}, {"tokens": base + 10 + base % 3}) for base in (10, 100, 1000, 5000)))
    difference = found["difference"]["per_job"]["tokens"]
    assert (difference["value"], difference["count"], difference["clear"]) == (pytest.approx(11.25), 4, True)
    arms = [found["arms"][name]["per_job"]["tokens"] for name in ("a", "b")]
    assert arms[1]["low"] < arms[0]["value"] < arms[1]["high"]


def test_jobs_that_are_not_at_rest_are_only_counted() -> None:
    found = beside(({"tokens": 10}, {"tokens": 30}), ({"tokens": 999}, {"status": JobStatus.RUNNING, "tokens": 1}))
    assert (found["jobs"], found["at_rest"]) == (4, 3)
    assert found["difference"]["per_job"]["tokens"]["value"] == 20
    assert found["arms"]["b"]["per_job"]["tokens"]["count"] == 1
    assert found["arms"]["b"]["jobs"] == {"succeeded": 1, "running": 1}


def test_a_job_that_waits_is_at_rest_and_neither_succeeded_nor_failed() -> None:
    found = beside(({"status": JobStatus.WAITING, "tokens": 5}, {"status": JobStatus.WAITING, "tokens": 7}))
    assert found["arms"]["a"]["rates"]["succeeded"] is None
    assert found["difference"]["per_job"]["tokens"]["value"] == 2
    assert found["difference"]["pairs"] == {
        "inputs": 0, "both": 0, "only_first": 0, "only_second": 0, "neither": 0, "p": None,
    }  # fmt: skip


def test_inputs_are_counted_by_which_arm_succeeded() -> None:
    lost = {"status": JobStatus.FAILED, "failure": "loop"}
    found = beside(({}, {}), *[({}, lost)] * 5, (lost, lost))
    assert found["difference"]["pairs"] == {
        "inputs": 7, "both": 1, "only_first": 5, "only_second": 0, "neither": 1, "p": 0.0625,
    }  # fmt: skip
    assert found["arms"]["b"]["failures"] == {"loop": 6}


def test_a_cost_is_told_only_where_every_price_is_known_in_one_currency() -> None:
    priced = {"tokens": 10, "cost": 0.5, "currency": "EUR"}
    assert beside((priced, priced | {"cost": 0.75}))["difference"]["per_job"]["cost"]["value"] == 0.25
    assert beside((priced, {"tokens": 0}))["difference"]["per_job"]["cost"]["value"] == -0.5
    for other in ({"tokens": 10}, priced | {"currency": "USD"}):
        assert beside((priced, other))["difference"]["per_job"]["cost"] is None


def test_one_arm_alone_has_no_difference() -> None:
    found: Any = report([run("a", 1, outcomes={("semantic", "sum"): 2, ("valid", None): 1})])
    assert "difference" not in found
    assert found["arms"]["a"]["outcomes"] == [
        {"outcome": "semantic", "cause": "sum", "attempts": 2},
        {"outcome": "valid", "cause": None, "attempts": 1},
    ]
