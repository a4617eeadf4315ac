from __future__ import annotations

import io
from typing import TYPE_CHECKING

from stepladder.cli import judge

if TYPE_CHECKING:
    import pytest


def test_lines_are_numbered_and_one_too_long_is_skipped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(judge, "LONGEST_LINE", 8)
    text = b"\xef\xbb\xbfone\n\n  \r\n12345678\n1234567\n" + b"x" * (1 << 21) + b"\nsix\n123456789\nlast"
    assert list(judge.numbered_lines(io.BytesIO(text))) == [
        (1, b"one\n"),
        (4, b"12345678\n"),
        (5, b"1234567\n"),
        (6, None),
        (7, b"six\n"),
        (8, None),
        (9, b"last"),
    ]
