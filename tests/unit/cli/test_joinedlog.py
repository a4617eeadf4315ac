"""One log of several processes."""

from __future__ import annotations

import io
import json

from stepladder.cli.joinedlog import JoinedLog


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_every_line_says_whose_it_is_and_stays_json() -> None:
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


def test_on_a_terminal_the_name_stands_in_front_and_nothing_steers_it() -> None:
    out = Terminal()
    log = JoinedLog(out)
    log("api", b'{"event": "request \\u001b]0;owned\\u0007\\nand more", "level": "info"}\n')
    line = out.getvalue()
    assert all(row.startswith("api    | ") for row in line.splitlines())
    assert len(line.splitlines()) == 2
    assert "\x1b]0" not in line
    assert "\\x1b]0;owned" in line
