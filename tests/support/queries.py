"""The queries of the page of ready ones, as they stand there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "sql.md"


@dataclass(frozen=True, slots=True)
class Query:
    """``title`` is the sentence before it."""

    title: str
    text: str


def queries() -> list[Query]:
    found = re.findall(r"\n\n((?:[^\n]+\n)+)\n```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return [Query(" ".join(before.split()), text.strip()) for before, text in found]
