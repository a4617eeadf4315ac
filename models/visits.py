"""The read service, continued: the tools that a job ran, and the signals that it waited for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepladder.models.load import wait_of
from stepladder.schemas.tool import Effect
from stepladder.workflows.job import ToolCall, ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any
    from uuid import UUID

    from stepladder.models.database import Database
    from stepladder.workflows.job import Wait


@dataclass(frozen=True, slots=True)
class Course:
    """What stands between a job's turns, oldest first. ``turn_visits`` gives a turn's place among all visits."""

    turn_visits: Mapping[int, int]
    calls: tuple[ToolCall, ...]
    waits: tuple[Wait, ...]


class Visits:
    """Reads from an opened ``Database``. Any method raises ``UnreachableError`` when the connection breaks."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def course(self, job_id: UUID) -> Course:
        """Empty for a job that does not exist."""
        turns = await self._database.rows(_TURNS, {"job": job_id})
        calls = await self._database.rows(_CALLS, {"job": job_id})
        waits = await self._database.rows(_WAITS, {"job": job_id})
        return Course(
            {row["ordinal"]: row["visit"] for row in turns},
            tuple(_call(row) for row in calls),
            tuple(wait_of(row) for row in waits),
        )


def _call(row: Mapping[str, Any]) -> ToolCall:
    error = row["error"]
    return ToolCall(
        **{
            **row,
            "effect": Effect(row["effect"]),
            "error": None if error is None else ToolError(error["kind"], error["message"]),
        }
    )


_TURNS = """
SELECT ordinal, visit FROM turns WHERE job_id = %(job)s
"""

_CALLS = """
SELECT visit, state, tool, effect, arguments, key, result, error, carried, opened_at, closed_at
FROM tool_calls WHERE job_id = %(job)s ORDER BY visit
"""

_WAITS = """
SELECT visit, state, signal, wait_id, show, frozen, until, payload, signal_id, action, carried, opened_at, closed_at
FROM waits WHERE job_id = %(job)s ORDER BY visit
"""
