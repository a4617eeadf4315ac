"""The read service: what became of a job, for every face that shows it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stepladder.models.listing import OVERVIEW, page
from stepladder.models.load import decode_raw, violations_of, wait_of
from stepladder.schemas.answer import Usage
from stepladder.schemas.event import Event, EventKind
from stepladder.schemas.job import Failure, JobStatus
from stepladder.schemas.outcomes import Outcome, Rungs, RungState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime
    from uuid import UUID

    from stepladder.models.database import Database
    from stepladder.models.listing import JobFilter, Place
    from stepladder.schemas.answer import Violation
    from stepladder.schemas.jsontypes import Json, JsonObject
    from stepladder.workflows.job import Wait


@dataclass(frozen=True, slots=True)
class Overview:
    """A job at a glance. ``event_count`` is the ordinal of the last event in its history."""

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
    priority: int
    principal: str
    token_budget: int | None
    deadline_at: datetime | None
    event_count: int


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a job has come."""

    event_count: int
    final: bool


@dataclass(frozen=True, slots=True)
class Published:
    """A published version of a workflow, without its document. New jobs are not given a ``retired`` one by default."""

    name: str
    version: int
    hash: str
    retired: bool
    created_at: datetime


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
        found = await self.overviews([job_id])
        return found[0] if found else None

    async def overviews(self, job_ids: Iterable[UUID]) -> tuple[Overview, ...]:
        """Those of the jobs that exist, in the order in which they are asked for."""
        ids = list(job_ids)
        rows = {row["id"]: row for row in await self._database.rows(_OVERVIEWS, {"jobs": ids})}
        return tuple(_overview(rows[job_id]) for job_id in ids if job_id in rows)

    async def jobs(self, wanted: JobFilter, limit: int, after: Place | None = None) -> tuple[Overview, ...]:
        """Up to ``limit`` jobs that pass the filter, newest first, from behind a place on."""
        return tuple(_overview(row) for row in await self._database.rows(*page(wanted, limit, after)))

    async def progress(self, job_ids: Iterable[UUID]) -> dict[UUID, Progress]:
        """Of many jobs at once; those that do not exist are missing."""
        rows = await self._database.rows(_PROGRESS, {"jobs": list(job_ids)})
        return {row["id"]: Progress(row["event_count"], row["final"]) for row in rows}

    async def open_wait(self, job_id: UUID) -> Wait | None:
        """The wait that a job is in, or None."""
        row = await self._database.row(_OPEN_WAIT, {"job": job_id})
        return None if row is None else wait_of(row)

    async def raw(self, attempt_id: UUID) -> bytes | None:
        """The body as it came. Empty while nothing has come yet; None if there is no such attempt."""
        row = await self._database.row(_RAW, {"attempt": attempt_id})
        if row is None or row["raw"] is None:
            return None if row is None else b""
        return await asyncio.to_thread(decode_raw, row["raw"], row["raw_encoding"])

    async def workflows(self) -> tuple[Published, ...]:
        """Every version that is published, by name and version."""
        return tuple(Published(**row) for row in await self._database.rows(_WORKFLOWS, {}))

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

    async def events(self, job_id: UUID, after: int = 0, limit: int | None = None) -> tuple[EventRecord, ...]:
        """The history from the event behind ordinal ``after`` on, up to ``limit`` lines of it."""
        rows = await self._database.rows(_EVENTS, {"job": job_id, "after": after, "limit": limit})
        return tuple(
            EventRecord(
                Event(row["ordinal"], EventKind(row["kind"]), row["turn"], row["attempt"], row["data"]), row["at"]
            )
            for row in rows
        )


def _overview(row: dict[str, Any]) -> Overview:
    failure = row["failure"]
    words = {"status": JobStatus(row["status"]), "failure": None if failure is None else Failure(failure)}
    return Overview(**row | words)


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


_OVERVIEWS = f"""
SELECT {OVERVIEW} FROM job_overview WHERE job_id = ANY(%(jobs)s)
"""  # noqa: S608 -- a constant

_PROGRESS = """
SELECT id, event_count, finished_at IS NOT NULL AS final FROM jobs WHERE id = ANY(%(jobs)s)
"""

_OPEN_WAIT = """
SELECT visit, state, signal, wait_id, show, frozen, until, payload, signal_id, action, carried, opened_at, closed_at
FROM waits WHERE job_id = %(job)s AND closed_at IS NULL ORDER BY visit DESC LIMIT 1
"""

_RAW = """
SELECT raw, raw_encoding FROM attempts WHERE id = %(attempt)s
"""

_WORKFLOWS = """
SELECT name, version, hash, retired, created_at FROM workflows ORDER BY name, version
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
WHERE job_id = %(job)s AND ordinal > %(after)s ORDER BY ordinal LIMIT %(limit)s
"""
