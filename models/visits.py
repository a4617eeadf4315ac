"""The read service, continued: the tools and jobs that a job ran, and the signals that it waited for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepladder.models.hot import CHILD_CALLS
from stepladder.models.load import child_call_of, tool_call_of, wait_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from uuid import UUID

    from stepladder.models.database import Database
    from stepladder.schemas.jsontypes import Json
    from stepladder.workflows.job import ChildCall, ToolCall, Wait


@dataclass(frozen=True, slots=True)
class SignalRecord:
    """A signal that came, and when a wait took it, if one did."""

    id: UUID
    name: str
    payload: Json
    by: str
    received_at: datetime
    taken_at: datetime | None


@dataclass(frozen=True, slots=True)
class Course:
    """What stands between a job's turns, oldest first. ``turn_visits`` gives a turn's place among all visits."""

    turn_visits: Mapping[int, int]
    calls: tuple[ToolCall, ...]
    waits: tuple[Wait, ...]
    child_calls: tuple[ChildCall, ...] = ()
    signals: tuple[SignalRecord, ...] = ()


class Visits:
    """Reads from an opened ``Database``. Any method raises ``UnreachableError`` when the connection breaks."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def course(self, job_id: UUID) -> Course:
        """Empty for a job that does not exist."""
        turns = await self._database.rows(_TURNS, {"job": job_id})
        calls = await self._database.rows(_CALLS, {"job": job_id})
        waits = await self._database.rows(_WAITS, {"job": job_id})
        child_calls = await self._database.rows(CHILD_CALLS, {"job": job_id})
        signals = await self._database.rows(_SIGNALS, {"job": job_id})
        return Course(
            {row["ordinal"]: row["visit"] for row in turns},
            tuple(tool_call_of(row) for row in calls),
            tuple(wait_of(row) for row in waits),
            tuple(child_call_of(row) for row in child_calls),
            tuple(SignalRecord(**row) for row in signals),
        )


_TURNS = """
SELECT ordinal, visit FROM turns WHERE job_id = %(job)s
"""

_SIGNALS = """
SELECT id, name, payload, by, received_at, taken_at FROM signals
WHERE job_id = %(job)s ORDER BY received_at, id
"""

_CALLS = """
SELECT visit, state, tool, effect, arguments, key, runs, failed, lost, result, error, carried, opened_at, closed_at
FROM tool_calls WHERE job_id = %(job)s ORDER BY visit
"""

_WAITS = """
SELECT
    visit, state, signal, wait_id, show, frozen, by_other, scopes, until, payload, signal_id, action, carried,
    opened_at, closed_at
FROM waits WHERE job_id = %(job)s ORDER BY visit
"""
