"""Two jobs compared: which visit is paired with which."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stepladder.experiments.jobdiff import History, Place, job_diff, pairs
from stepladder.models.ids import uuid7
from stepladder.schemas.diff import Visited
from stepladder.schemas.history import Timeline, TurnVisit
from stepladder.schemas.job import JobStatus
from stepladder.schemas.responses import Job

NOW = datetime(2026, 1, 31, tzinfo=UTC)
BLANK: dict[str, Any] = dict.fromkeys(Visited.model_fields) | {"outcome": "valid", "attempts": 1, "carried": False}


def turns(states: str, **fields: Any) -> list[Place]:
    return [("turn", state, Visited(**BLANK | {"visit": n} | fields)) for n, state in enumerate(states, 1)]


def history(states: str, **fields: Any) -> History:
    """A job with these turns."""
    named: dict[str, Any] = dict.fromkeys(Job.model_fields) | {
        "id": uuid7(),
        "workflow": "bill",
        "version": 1,
        "created_at": NOW,
    }
    named |= {"status": JobStatus.SUCCEEDED, "turn_count": 1, "attempts": 1, "tokens": 10}
    job = Job.model_construct(**named | fields)
    blank: dict[str, Any] = dict.fromkeys(TurnVisit.model_fields) | {
        "attempts": (),
        "started_at": NOW,
        "carried": False,
        "outcome": "valid",
    }
    asked = [TurnVisit.model_construct(**blank | {"ordinal": n, "state": state}) for n, state in enumerate(states, 1)]
    visits = {n: n for n in range(1, len(states) + 1)}
    return History(job, tuple(asked), Timeline(turns=visits, tools=(), waits=(), calls=(), signals=()))


def aligned(was: str, now: str) -> str:
    """The states in order: lower case where only the first has one, after a dot where only the second does."""
    found = ""
    for pair in pairs(turns(was), turns(now)):
        found += pair.state if pair.was and pair.now else pair.state.lower() if pair.was else f".{pair.state}"
    return found


def test_an_extra_turn_does_not_shift_the_rest() -> None:
    assert aligned("ABC", "AXBC") == "A.XBC"
    assert aligned("AXBC", "ABC") == "AxBC"
    assert aligned("ABC", "XYABC") == ".X.YABC"
    assert aligned("ABAC", "ABABAC") == "ABA.B.AC"


def test_a_state_of_another_kind_is_another_visit() -> None:
    [first, second] = pairs(turns("A"), [("tool", "A", Visited(**BLANK | {"visit": 1}))])
    assert first.differs == second.differs == ["visit"]


def test_differences_are_named_and_tokens_and_time_do_not_count() -> None:
    one = {"output": {"n": 1}}
    for change, differs in (
        ({"tokens": 99, "ms": 5.0}, []),
        ({"outcome": "semantic", "cause": "rule", "attempts": 3, "output": None},
         ["outcome", "cause", "attempts", "output"]),
        ({"attempts": 0, "carried": True}, []),
    ):  # fmt: skip
        [pair] = pairs(turns("A", **one), turns("A", **one | change))
        assert pair.differs == differs


def test_two_jobs_are_the_same_by_their_path_and_their_end() -> None:
    assert job_diff(history("AB"), history("AB", tokens=5)).same
    assert not job_diff(history("AB"), history("AB", status=JobStatus.FAILED)).same
    assert not job_diff(history("A"), history("AB")).same


@given(st.text("ABC", max_size=8), st.text("ABC", max_size=8))
def test_every_visit_is_in_exactly_one_pair(was: str, now: str) -> None:
    found = pairs(turns(was), turns(now))
    firsts = [pair.was.visit for pair in found if pair.was]
    assert firsts == list(range(1, len(was) + 1))
    assert sorted(pair.now.visit for pair in found if pair.now) == list(range(1, len(now) + 1))
