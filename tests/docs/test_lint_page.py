"""The page of findings is what the code says, now."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

from stepladder.schemas.codes import CODES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "lint.md").read_text(encoding="utf-8")


def test_its_tables_are_what_their_maker_makes_of_the_code() -> None:
    made = runpy.run_path(str(ROOT / "scripts" / "lintpage.py"))["page"](PAGE)
    assert made == PAGE, "run scripts/lintpage, and look at what has changed"


def test_every_code_stands_on_it_once() -> None:
    rows = re.findall(r"^\| `([a-z_]+)` \| (?:error|warning|hint)", PAGE, re.MULTILINE)
    assert sorted(rows) == sorted(CODES)
