"""Whether a process that has ended is started again, as a table and as properties."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepladder.cli.restarts import (
    FIRST_S,
    HOPELESS,
    LONGEST_S,
    MOST_QUICK,
    QUICK_S,
    Again,
    GiveUp,
    ended_by,
    next_start,
)

codes = st.integers(-64, 255).filter(lambda code: code != HOPELESS)
quick_lives = st.floats(0, QUICK_S, exclude_max=True)


@given(st.lists(st.tuples(codes, quick_lives), min_size=MOST_QUICK + 1, max_size=MOST_QUICK + 1))
def test_quick_ends_in_a_row_are_followed_by_longer_and_longer_pauses_and_then_by_none(
    ends: list[tuple[int, float]],
) -> None:
    quick, pauses = 0, []
    for code, lived_s in ends[:-1]:
        follows = next_start(code, lived_s, quick)
        assert isinstance(follows, Again)
        quick = follows.quick
        pauses.append(follows.after_s)
    assert pauses == sorted(pauses)
    assert pauses[0] == FIRST_S
    assert pauses[-1] <= LONGEST_S
    assert isinstance(next_start(*ends[-1], quick), GiveUp)


@given(codes, st.floats(QUICK_S, 1e9), st.integers(0, MOST_QUICK))
def test_who_has_lived_long_is_started_again_as_if_for_the_first_time(code: int, lived_s: float, quick: int) -> None:
    assert next_start(code, lived_s, quick) == Again(FIRST_S, 0)


@given(st.floats(0, 1e9), st.integers(0, MOST_QUICK))
def test_bad_input_is_as_bad_the_next_time(lived_s: float, quick: int) -> None:
    assert isinstance(next_start(HOPELESS, lived_s, quick), GiveUp)


@pytest.mark.parametrize(("code", "words"), [(-9, "was killed by signal 9"), (0, "ended with code 0")])
def test_an_end_is_told_in_words(code: int, words: str) -> None:
    assert ended_by(code) == words
