"""The read service: what became of a job, for every face that shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stepladder.models.load import violations_of
from stepladder.schemas.answer import Usage
from stepladder.schemas.event import Event, EventKind
from stepladder.schemas.job import Failure, JobStatus
from stepladder.schemas.outcomes import Outcome, Rungs, RungState

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from uuid import UUID

    from stepladder.models.database import Database
    from stepladder.schemas.answer import Violation
    from stepladder.schemas.jsontypes import Json, JsonObject


@dataclass(frozen=True, slots=True)
class Overview:
    """A job at a glance."""

    id: UUID
    workflow: str
    version: int
    status: JobStatus
    state: str | None
    waiting_for: str | None
    failure: Failure | None
    failure_detail: str | None
    input: Json
    result: Json
    turn_count: int
    attempts: int
    tokens: int
    metadata: JsonObject
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    replay_of: UUID | None


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One request of a turn; times in milliseconds. In flight, it has no ``outcome``, ``rungs`` and ``usage``."""

    id: UUID
    ordinal: int
    note: str
    max_completion_tokens: int
    sampling: JsonObject
    schema_hash: str
    request_id: str
    model: str | None
    engine_version: str | None
    grammar_backend: str | None
    started_at: datetime
    http_status: int | None
    ttft_ms: float | None
    tpot_ms: float | None
    duration_ms: float | None
    outcome: Outcome | None
    cause: str | None
    rungs: Rungs | None
    errors: tuple[Violation, ...]
    observed: tuple[Violation, ...]
    finish_reason: str | None
    usage: Usage | None
    content: bytes | None


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """One visit to a state that asks, with all its attempts."""

    ordinal: int
    state: str
    question: str
    outcome: Outcome | None
    action: str | None
    output: Json
    carried: bool
    started_at: datetime
    finished_at: datetime | None
    attempts: tuple[AttemptRecord, ...]


@dataclass(frozen=True, slots=True)
class EventRecord:
    """One line of a job's history, and when it was written."""

    event: Event
    at: datetime


class Reads:
    """Reads from an opened ``Database``. Any method raises ``UnreachableError`` when the connection breaks."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def overview(self, job_id: UUID) -> Overview | None:
        """None if there is no such job."""
        row = await self._database.row(_OVERVIEW, {"job": job_id})
        if row is None:
            return None
        status = JobStatus(row.pop("status"))
        failure = row.pop("failure")
        return Overview(**row, status=status, failure=None if failure is None else Failure(failure))

    async def turns(self, job_id: UUID) -> tuple[TurnRecord, ...]:
        """In order, an open turn included. Empty for a job that does not exist."""
        turns = await self._database.rows(_TURNS, {"job": job_id})
        attempts = await self._database.rows(_ATTEMPTS, {"job": job_id})
        return tuple(
            TurnRecord(
                **{**turn, "outcome": _outcome(turn["outcome"])},
                attempts=tuple(_attempt(row) for row in attempts if row["turn"] == turn["ordinal"]),
            )
            for turn in turns
        )

    async def events(self, job_id: UUID, after: int = 0) -> tuple[EventRecord, ...]:
        """The history from the event behind ordinal ``after`` on."""
        rows = await self._database.rows(_EVENTS, {"job": job_id, "after": after})
        return tuple(
            EventRecord(
                Event(row["ordinal"], EventKind(row["kind"]), row["turn"], row["attempt"], row["data"]), row["at"]
            )
            for row in rows
        )


def _outcome(word: str | None) -> Outcome | None:
    return None if word is None else Outcome(word)


def _attempt(row: Mapping[str, Any]) -> AttemptRecord:
    outcome = _outcome(row["outcome"])
    plain = {
        name: row[name]
        for name in AttemptRecord.__dataclass_fields__
        if name not in ("outcome", "rungs", "errors", "observed", "usage")
    }
    climbed = (row["rung_termination"], row["rung_parse"], row["rung_schema"], row["rung_semantic"])
    return AttemptRecord(
        **plain,
        outcome=outcome,
        rungs=None if outcome is None else Rungs(*(RungState(word) for word in climbed)),
        errors=violations_of(row["errors"] or ()),
        observed=violations_of(row["observed"] or ()),
        usage=None if row["prompt_tokens"] is None else Usage(row["prompt_tokens"], row["completion_tokens"]),
    )


_OVERVIEW = """
SELECT
    job_id AS id, workflow, version, status, state, waiting_for, failure, failure_detail, input, result, turn_count,
    attempts, tokens, metadata, created_at, started_at, finished_at, replay_of
FROM job_overview WHERE job_id = %(job)s
"""

_TURNS = """
SELECT
    turn AS ordinal, state, question, outcome, action, output, carried, started_at, finished_at
FROM turn_outcomes WHERE job_id = %(job)s ORDER BY turn
"""

_ATTEMPTS = """
SELECT
    attempt_id AS id, turn, attempt AS ordinal, note, max_completion_tokens, sampling, schema_hash, request_id, model,
    engine_version, grammar_backend, started_at, http_status, ttft_ms, tpot_ms, duration_ms, outcome, cause,
    rung_termination, rung_parse, rung_schema, rung_semantic, errors, observed, finish_reason, prompt_tokens,
    completion_tokens, content
FROM attempt_outcomes WHERE job_id = %(job)s ORDER BY turn, attempt
"""

_EVENTS = """
SELECT ordinal, kind, turn, attempt, data, at FROM events
WHERE job_id = %(job)s AND ordinal > %(after)s ORDER BY ordinal
"""
