"""Whether a child that has ended is started again, and the log that the children share."""

from __future__ import annotations

import io
import json

from hypothesis import given
from hypothesis import strategies as st

from stepladder.cli.output import Exit
from stepladder.cli.supervisor import (
    FIRST_DELAY_S,
    LONGEST_DELAY_S,
    MAX_QUICK,
    QUICK_S,
    GiveUp,
    JoinedLog,
    Restart,
    next_start,
)

codes = st.integers(-64, 255).filter(lambda code: code != Exit.BAD_INPUT)
quick_lives = st.floats(0, QUICK_S, exclude_max=True)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@given(st.lists(st.tuples(codes, quick_lives), min_size=MAX_QUICK + 1, max_size=MAX_QUICK + 1))
def test_pauses_after_quick_ends_grow_until_it_gives_up(ends: list[tuple[int, float]]) -> None:
    quick, pauses = 0, []
    for code, lived_s in ends[:-1]:
        following = next_start(code, lived_s, quick)
        assert isinstance(following, Restart)
        quick = following.quick
        pauses.append(following.after_s)
    assert pauses == sorted(pauses)
    assert pauses[0] == FIRST_DELAY_S
    assert pauses[-1] <= LONGEST_DELAY_S
    assert isinstance(next_start(*ends[-1], quick), GiveUp)


@given(codes, st.floats(QUICK_S, 1e9), st.integers(0, MAX_QUICK))
def test_a_long_life_resets_the_count(code: int, lived_s: float, quick: int) -> None:
    assert next_start(code, lived_s, quick) == Restart(FIRST_DELAY_S, 0)


@given(st.floats(0, 1e9), st.integers(0, MAX_QUICK))
def test_bad_input_is_never_restarted(lived_s: float, quick: int) -> None:
    assert isinstance(next_start(Exit.BAD_INPUT, lived_s, quick), GiveUp)


def test_every_line_names_its_process_and_stays_json() -> None:
    out = io.StringIO()
    log = JoinedLog(out)
    log("worker", b'{"event": "job ended", "level": "info", "tokens": 7}\n')
    log("api", "Traceback (most recent call last): \udcff\n".encode(errors="surrogateescape"))
    log("api", b"[1, 2]\n")
    log("api", b"\n")
    first, second, third = [json.loads(line) for line in out.getvalue().splitlines()]
    assert first == {"process": "worker", "event": "job ended", "level": "info", "tokens": 7}
    assert second["process"] == "api"
    assert second["event"].startswith("Traceback")
    assert third == {"process": "api", "event": "[1, 2]"}


def test_on_a_terminal_control_characters_are_escaped() -> None:
    out = Terminal()
    JoinedLog(out)("api", b'{"event": "request \\u001b]0;owned\\u0007\\nand more", "level": "info"}\n')
    line = out.getvalue()
    assert all(row.startswith("api    | ") for row in line.splitlines())
    assert len(line.splitlines()) == 2
    assert "\x1b]0" not in line
    assert "\\x1b]0;owned" in line
