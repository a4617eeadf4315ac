"""The table of legal events in ``docs/architecture.md`` is the one above the machine's code."""

from __future__ import annotations

from pathlib import Path

from stepladder.workflows.advance import ENTERED, LEGAL

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"


def table() -> str:
    """As the page has it. ``enter`` stands for the commands of ``ENTERED``."""
    lines = ["| where the job is | event | commands that may follow |", "|---|---|---|"]
    for place, events in LEGAL.items():
        for event, commands in events.items():
            entered = set(ENTERED) <= set(commands)
            words = [command.__name__ for command in commands if not (entered and command in ENTERED)]
            lines.append(f"| {place} | `{event.__name__}` | {', '.join(words + ['*enter*'] * entered)} |")
    return "\n".join(lines)


def test_the_page_has_the_table_of_the_code() -> None:
    assert table() in PAGE.read_text(), f"put this into {PAGE.name}:\n{table()}"
