"""The page of outcomes is what the code says, now."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

from stepladder.schemas.outcomes import CAUSES, Outcome

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "outcomes.md").read_text(encoding="utf-8")


def test_the_page_is_what_its_maker_makes_of_the_code() -> None:
    made = runpy.run_path(str(ROOT / "scripts" / "outcomes.py"))["page"]()
    assert made == PAGE, "run scripts/outcomes, and look at what has changed"


def test_every_outcome_and_every_cause_stands_on_it_with_what_follows() -> None:
    [table] = re.findall(r"## An example of each\n(.*?)\n## ", PAGE, re.DOTALL)
    rows = [re.split(r" (?<!\\)\| ", line.strip("| ")) for line in table.splitlines() if line.startswith("| `")]
    shown = {(row[0].strip("`"), row[1].strip("` ")) for row in rows}
    assert {outcome for outcome, _ in shown} == set(Outcome)
    assert {(outcome, cause) for outcome, causes in CAUSES.items() for cause in causes} <= shown
    for row in rows:
        assert row[4].startswith(
            ("asked again", "the same request again", "the turn fails at once", "the machine takes the next transition")
        )
