"""Each promise names tests that are there, and none is without."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guarantees.md").read_text()
PROMISES = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| promise")]


@pytest.mark.parametrize("line", PROMISES)
def test_a_promise_is_shown_by_tests_that_are_there(line: str) -> None:
    named = re.findall(r"`(tests/[^`]+)`", line)
    assert named
    for name in named:
        file, _, test = name.partition("::")
        tree = ast.parse((ROOT / file).read_text())
        names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
        assert not test or test in names, name
