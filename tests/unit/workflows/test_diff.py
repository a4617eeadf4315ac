"""Two jobs side by side: which visit stands beside which."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stepladder.workflows.diff import JobDifference, Ran, Visited, VisitKind, pairs

RAN = Ran("a", "bill", 1, None, "succeeded", None, 1, 1, 10, None, None, 1.0)


def turns(states: str, **fields: Any) -> list[Visited]:
    return [
        Visited(VisitKind.TURN, state, place, turn=place, outcome="valid", attempts=1, **fields)
        for place, state in enumerate(states, 1)
    ]


def laid(was: str, now: str) -> str:
    """The states in order; small where only the first has it, with a dot where only the second has."""
    found = ""
    for pair in pairs(turns(was), turns(now)):
        found += pair.state if pair.was and pair.now else pair.state.lower() if pair.was else f".{pair.state}"
    return found


def test_one_turn_more_does_not_shift_the_rest() -> None:
    assert laid("ABC", "AXBC") == "A.XBC"
    assert laid("AXBC", "ABC") == "AxBC"
    assert laid("ABC", "XYABC") == ".X.YABC"
    assert laid("ABAC", "ABABAC") == "ABA.B.AC"


def test_a_state_that_has_become_another_kind_is_not_the_same_visit() -> None:
    tool = Visited(VisitKind.TOOL, "A", 1)
    [first, second] = pairs(turns("A"), [tool])
    assert {first.differs, second.differs} == {("visit",)}


def test_what_differs_is_named_and_tokens_and_time_are_not() -> None:
    [one] = turns("A", output={"n": 1})
    [same] = pairs([one], [replace(one, tokens=99, ms=5.0)])
    assert same.differs == ()
    [other] = pairs([one], [replace(one, outcome="semantic", cause="rule", attempts=3, output=None)])
    assert other.differs == ("outcome", "cause", "attempts", "output")
    [carried] = pairs([one], [replace(one, attempts=0, carried=True)])
    assert carried.differs == ()


def test_two_jobs_are_the_same_by_their_way_and_their_end() -> None:
    way = pairs(turns("AB"), turns("AB"))
    assert JobDifference(RAN, replace(RAN, id="b", tokens=5), (), (), way).same
    assert not JobDifference(RAN, replace(RAN, status="failed"), (), (), way).same
    assert not JobDifference(RAN, RAN, (), (), pairs(turns("A"), turns("AB"))).same


@given(st.text("ABC", max_size=8), st.text("ABC", max_size=8))
def test_every_visit_stands_in_exactly_one_pair(was: str, now: str) -> None:
    found = pairs(turns(was), turns(now))
    assert sorted(pair.was.visit for pair in found if pair.was) == list(range(1, len(was) + 1))
    assert sorted(pair.now.visit for pair in found if pair.now) == list(range(1, len(now) + 1))
    firsts = [pair.was.visit for pair in found if pair.was]
    assert firsts == sorted(firsts)
