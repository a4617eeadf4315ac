from __future__ import annotations

from typing import Any

import pytest

from stepladder.schemas.pointer import pointer, pointer_steps, resolve, value_at

DOCUMENT = {"a/b": {"c~d": [1, [2]]}, "": 3, "0": 4, "text": "xy"}


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [("", (), DOCUMENT), ("/", ("",), 3), ("/0", ("0",), 4), ("/a~1b/c~0d/1/0", ("a/b", "c~d", 1, 0), 2)],
)
def test_a_pointer_resolves_to_a_path(text: str, path: tuple[str | int, ...], value: Any) -> None:
    assert resolve(text, DOCUMENT) == path
    assert value_at(DOCUMENT, path) == value
    assert pointer(path) == text
    assert pointer_steps(text) == [str(step) for step in path]


@pytest.mark.parametrize("text", ["a", "/missing", "/a~1b/c~0d/2", "/a~1b/c~0d/-1", "/a~1b/c~0d/\u0661", "/text/0"])
def test_a_pointer_to_nowhere_resolves_to_none(text: str) -> None:
    assert resolve(text, DOCUMENT) is None
