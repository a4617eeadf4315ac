"""Every event of a history is one line of plain text."""

from __future__ import annotations

import pytest

from stepladder.schemas.event import EventKind, HistoryEvent
from stepladder.schemas.event_text import LONGEST, event_text


@pytest.mark.parametrize("kind", EventKind)
def test_every_kind_has_a_text_even_without_its_data(kind: EventKind) -> None:
    text = event_text(HistoryEvent(1, kind))
    assert text
    assert "None" not in event_text(HistoryEvent(1, kind, turn=1, attempt=2))


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (HistoryEvent(1, EventKind.JOB_CREATED), "submitted"),
        (
            HistoryEvent(1, EventKind.JOB_CREATED, data={"mode": "fork", "replay_of": "j", "from_turn": 2}),
            "fork of job j from turn 2",
        ),
        (
            HistoryEvent(1, EventKind.ATTEMPT_JUDGED, 2, 1, {"outcome": "semantic", "cause": "total"}),
            "turn 2, attempt 1: semantic (total)",
        ),
        (HistoryEvent(1, EventKind.RETRY_SCHEDULED, 2, data={"after_s": 3}), "turn 2: retrying in 3 s"),
        (HistoryEvent(1, EventKind.RETRY_SCHEDULED, data={"tool": "pay", "after_s": 3}), "tool pay: retrying in 3 s"),
        (HistoryEvent(1, EventKind.TRANSITION, data={"to": "done", "action": "always"}), "moved to state done"),
        (
            HistoryEvent(1, EventKind.TRANSITION, data={"to": "done", "action": "approve"}),
            "moved to state done on approve",
        ),
        (
            HistoryEvent(
                1, EventKind.PERMISSION_DENIED, data={"tool": "pay", "principal": "ann", "missing": ["a", "b"]}
            ),
            "tool pay denied to ann: missing a, b",
        ),
        (HistoryEvent(1, EventKind.JOB_PAUSED, data={"by": "ann", "workflow": "w"}), "paused by ann, with workflow w"),
    ],
)
def test_texts(event: HistoryEvent, text: str) -> None:
    assert event_text(event) == text


def test_long_values_are_cut() -> None:
    text = event_text(HistoryEvent(1, EventKind.TURN_FAILED, 1, data={"failure": "loop", "detail": "x" * 1000}))
    assert text == f"turn 1 failed: loop, {'x' * (LONGEST - 1)}…"
