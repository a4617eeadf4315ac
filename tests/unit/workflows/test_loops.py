from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepladder.schemas.job import Failure, JobStatus
from stepladder.schemas.outcomes import Outcome
from stepladder.schemas.tool import Effect
from stepladder.workflows.job import Turn
from stepladder.workflows.loops import find_circle
from stepladder.workflows.machine import LoopLimits
from stepladder.workflows.transition import Ask, Finished
from stepladder.workflows.visits import SignalWait, ToolCall, ToolError, VisitStatus
from support.machines import NOW, document, play, the

if TYPE_CHECKING:
    from stepladder.workflows.visits import Visit
    from support.machines import Play

ID = UUID(int=1)


def visits(*happened: tuple[str, Any]) -> list[Visit]:
    """A path: a capital letter is a turn and its output, ``ok`` a result, ``bad`` an error, ``sig`` a payload."""
    path: list[Visit] = []
    closed: dict[str, Any] = {"closed_at": NOW, "status": VisitStatus.CLOSED}
    for number, (name, value) in enumerate(happened, 1):
        if name.isupper():
            turn = 1 + sum(isinstance(visit, Turn) for visit in path)
            path.append(Turn(number, name, NOW, turn, "?", "", outcome=Outcome.VALID, output=value, **closed))
        elif name == "sig":
            path.append(SignalWait(number, "pause", NOW, "s", ID, None, payload=value, signal_id=ID, **closed))
        else:
            answer = {"error": ToolError("E", value)} if name == "bad" else {"result": value}
            path.append(ToolCall(number, "act", NOW, "t", Effect.READ, {}, "k", **answer, **closed))
    return path


def found(*happened: tuple[str, Any], repeats: int = 2, stale: int = 5) -> tuple[str, tuple[int, ...]] | None:
    circle = find_circle(visits(*happened), LoopLimits(repeats, stale))
    return None if circle is None else (circle.strength, circle.turns)


A1, A2, B1, B2 = ("A", {"n": 1}), ("A", {"n": 2}), ("B", {"n": 1}), ("B", {"n": 2})
R1, R2, S1, S2, E1 = ("ok", 1), ("ok", 2), ("sig", {"action": "x"}), ("sig", {"action": "y"}), ("bad", "1")


@pytest.mark.parametrize(
    ("path", "circle"),
    [
        ([], None),
        ([A1], None),
        ([A1, A1], None),
        ([A1, A1, A1], ("repeats", (1, 2, 3))),
        ([A1, A2], None),
        ([A1, B1], None),
        ([A1, A2, A2, A2], ("repeats", (2, 3, 4))),
        ([A1, R1, A1], None),  # the result is new to the second visit
        ([A1, R1, A1, R1, A1], None),
        ([A1, R1, A1, R1, A1, R1, A1], ("repeats", (2, 3, 4))),
        ([A1, R1, A1, R1, A1, R2, A1], None),
        ([A1, R1, A2, R1, A1], None),
        ([A1, S1, A1, S1, A1, S1, A1], ("repeats", (2, 3, 4))),
        ([A1, S1, A1, S1, A1, S2, A1], None),
        ([A1, E1, A1, E1, A1, E1, A1], ("repeats", (2, 3, 4))),
        ([A1, R1, A1, R1, A1, E1, A1], None),
        ([A1, R1, R1, A1, R1, A1, R1, R1, A1], ("fingerprint", (2, 3, 4))),
        ([S1, A1, R1, A1, R1, A1, R1, A2, R2], None),  # read three times on the way to a goal
        ([A1, R1, B1, R2] * 3 + [A1], ("repeats", (3, 5, 7))),
    ],
)
def test_a_visit_that_repeats_itself_twice_is_a_circle(path: list[Any], circle: Any) -> None:
    assert found(*path) == circle


def test_as_many_repeats_are_allowed_as_the_author_says() -> None:
    assert found(*[A1] * 2, repeats=1) == ("repeats", (1, 2))
    assert found(*[A1] * 4, repeats=4) is None
    assert found(*[A1] * 5, repeats=4) == ("repeats", (1, 2, 3, 4, 5))


def test_a_fingerprint_finds_a_circle_over_two_states() -> None:
    """Neither state repeats itself: each saw another answer of the other's in between."""
    assert found(A1, B1, A2, B2, stale=100) is None
    assert found(A1, B1, A2, B2, A1, B1, stale=100, repeats=1) == ("fingerprint", (2, 6))
    assert found(A1, B1, A2, B2, A1, B1, stale=100) is None
    assert found(*[A1, B1, A2, B2] * 2, A1, B1, stale=100) == ("fingerprint", (2, 6, 10))


def test_turns_that_bring_nothing_new_are_stale() -> None:
    """Four outputs in ever other orders: no visit is as the one before, and yet nothing is new."""
    path = [A1, A2, ("A", {"n": 3}), A1, ("A", {"n": 3}), A2, A1, A2]
    assert found(*path, repeats=100, stale=5) == ("stale", (4, 5, 6, 7, 8))
    assert found(*path, repeats=100, stale=6) is None
    assert found(*path[:3], R1, *path[3:], repeats=100) is None


@given(st.integers(2, 30))
def test_a_tool_whose_result_changes_is_progress(count: int) -> None:
    path = [A1]
    for number in range(count):
        path += [("ok", {"page": number}), A1]
    assert found(*path) is None


@given(st.integers(2, 30))
def test_an_output_that_changes_is_progress(count: int) -> None:
    assert found(*[("A", {"page": number}) for number in range(count)]) is None


@given(st.lists(st.sampled_from([A1, A2, B1, B2, R1, R2, S1, S2, E1]), max_size=12), st.integers(1, 3))
def test_a_path_that_repeats_itself_is_found_in_the_end(path: list[Any], repeats: int) -> None:
    if not any(name.isupper() for name, _ in path):
        path = [*path, A1]
    while not path[-1][0].isupper():
        path = [path[-1], *path[:-1]]
    assert found(*path * (repeats + 2), repeats=repeats) is not None


def test_turns_that_failed_or_are_open_say_nothing() -> None:
    failed = Turn(1, "A", NOW, 1, "?", "", outcome=Outcome.SEMANTIC, closed_at=NOW, status=VisitStatus.CLOSED)
    opened = Turn(3, "A", NOW, 3, "?", "")
    assert find_circle([failed, failed, opened], LoopLimits(2, 1)) is None


# In a job -------------------------------------------------------------------------------------------------------------


def going(state: str = "", head: str = "") -> Play:
    states = f"one: {{ask: Hi, output: {{type: object}}, next: one{state}}}\ndone: {{end: succeeded}}"
    return play(document(states.replace("next: one", "next: one, on_failure: {refused: done}"), head))


def test_a_loop_ends_the_job_or_goes_where_the_state_sends_it() -> None:
    game = going().begun()
    game.says({"n": 1})
    game.says({"n": 1})
    the(Finished, game.says({"n": 1}))
    assert (game.job.status, game.job.failure) == (JobStatus.FAILED, Failure.LOOP)
    assert "turns 1, 2, 3" in (game.job.failure_detail or "")
    routed = play(
        document("one: {ask: Hi, output: {}, next: one, on_failure: {loop: done}}\ndone: {end: succeeded}")
    ).begun()
    for _ in range(3):
        routed.says({})
    assert routed.job.status is JobStatus.SUCCEEDED
    assert routed.path() == [("always", "one"), ("always", "one"), ("loop", "done")]


@pytest.mark.parametrize(("state", "head"), [(", loop: 'off'", ""), ("", "limits: {loop: 'off'}")])
def test_loops_may_be_switched_off(state: str, head: str) -> None:
    game = going(state, head).begun()
    for _ in range(20):
        the(Ask, game.says({}))


def test_the_limits_are_the_documents() -> None:
    game = going(head="limits: {loop: {repeats: 4}}").begun()
    for _ in range(4):
        the(Ask, game.says({}))
    the(Finished, game.says({}))
