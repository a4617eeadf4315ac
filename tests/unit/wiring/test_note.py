"""The note of a running ``up``: read while it is held, and never after."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from stepladder.schemas.errors import BadInputError
from stepladder.wiring.note import FILE, Note, leave_note, read_note

if TYPE_CHECKING:
    from pathlib import Path

NOTE = Note(os.getpid(), app="tools", folder="/somewhere")


def test_a_note_is_there_while_its_writer_holds_it(tmp_path: Path) -> None:
    assert read_note(tmp_path) is None
    with leave_note(tmp_path, NOTE) as write:
        assert read_note(tmp_path) == NOTE
        there = Note(NOTE.pid, url="http://127.0.0.1:8700", broker_url="redis+socket:///x")
        write(there)
        assert read_note(tmp_path) == there
        assert (tmp_path / FILE).stat().st_mode & 0o077 == 0
    assert read_note(tmp_path) is None


def test_what_a_killed_one_left_behind_counts_for_nothing(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('{"pid": 1, "broker_url": "redis+socket:///gone"}')
    assert read_note(tmp_path) is None
    with leave_note(tmp_path, NOTE):
        assert read_note(tmp_path) == NOTE


def test_of_two_one_is_told_about_the_other(tmp_path: Path) -> None:
    with leave_note(tmp_path, NOTE) as write:
        write(Note(4711, url="http://127.0.0.1:8700"))
        with (
            pytest.raises(BadInputError, match=r"http://127\.0\.0\.1:8700 \(process 4711\)"),
            leave_note(tmp_path, NOTE),
        ):
            pass
        assert read_note(tmp_path) == Note(4711, url="http://127.0.0.1:8700")


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": 1, "from": "a newer version"}'])
def test_a_note_that_cannot_be_read_is_none(tmp_path: Path, content: str) -> None:
    with leave_note(tmp_path, NOTE):
        (tmp_path / FILE).write_text(content)
        assert read_note(tmp_path) is None
