"""The list of codes is whole: nothing emits one that is not listed, and nothing is listed that nothing emits."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

from stepladder.lint.audit.check import OBJECTIONS
from stepladder.schemas.codes import CODES, GROUPS

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]
PACKAGES = ("schemas", "workflows", "src/stepladder")
MAKERS = {"Finding": 0, "Remark": 0, "find": 0, "_find": 0, "_finding": 0, "_told": 1, "BadRule": 1, "SchemaFault": 3}
"""What makes a finding, and which of its arguments is the code."""


def emitted() -> Iterator[tuple[str, str]]:
    """Every code in the source as ``(pattern, place)``; what is only known at run time matches any word."""
    for path in (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            index = MAKERS.get(name)
            if index is None or len(node.args) <= index:
                continue
            match node.args[index]:
                case ast.Constant(value=str(code)):
                    yield (f"[a-z]+_{code}" if name == "_told" else re.escape(code)), f"{path}:{node.lineno}"
                case ast.JoinedStr(values=parts):
                    texts = (re.escape(str(p.value)) if isinstance(p, ast.Constant) else "[a-z_]+" for p in parts)
                    yield "".join(map(str, texts)), f"{path}:{node.lineno}"


def test_every_code_in_the_source_is_listed_and_every_listed_one_is_in_the_source() -> None:
    patterns = dict(emitted()) | {code: "OBJECTIONS" for code, *_ in OBJECTIONS.values()}
    unlisted = {place for pattern, place in patterns.items() if not any(re.fullmatch(pattern, code) for code in CODES)}
    assert unlisted == set()
    exact = {re.compile(pattern) for pattern in patterns if pattern != "[a-z_]+_[a-z_]+"}
    assert {code for code in CODES if not any(pattern.fullmatch(code) for pattern in exact)} == set()


def test_no_code_is_in_two_groups() -> None:
    assert sum(map(len, GROUPS.values())) == len(CODES)
