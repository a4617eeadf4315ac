"""The read service: what became of a job, for every face that shows it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stepladder.models.children import read_children
from stepladder.models.listing import OVERVIEW, Place, candidates, page
from stepladder.models.load import decode_raw, degraded_of, tool_call_of, violations_of, wait_of
from stepladder.models.rare import narrowed
from stepladder.models.records import Unsettled
from stepladder.models.request import SentRequest, read_request
from stepladder.models.search import CHUNK, LOOKED_AT
from stepladder.models.shares import engines_used
from stepladder.models.stats import read_stats
from stepladder.models.variants import replays_of
from stepladder.schemas.answer import Usage
from stepladder.schemas.errors import GoneError
from stepladder.schemas.event import Event, EventKind
from stepladder.schemas.job import SETTLEMENT, Failure, JobStatus
from stepladder.schemas.outcomes import Outcome, Rungs, RungState
from stepladder.workflows.step import Settled

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime
    from decimal import Decimal
    from uuid import UUID

    from stepladder.models.children import ChildRecord
    from stepladder.models.database import Database
    from stepladder.models.listing import JobFilter
    from stepladder.models.shares import EngineUse
    from stepladder.schemas.answer import Violation
    from stepladder.schemas.degraded import Degraded
    from stepladder.schemas.jsontypes import Json, JsonObject
    from stepladder.schemas.stats import WorkflowStats
    from stepladder.workflows.job import Wait


@dataclass(frozen=True, slots=True)
class Overview:
    """A job at a glance. ``event_count`` is the ordinal of the last event in its history.

    ``degraded`` is by state what was kept of its last turn, where that was given up: no output, and no result. A job
    whose workflow is paused keeps its own ``status`` meanwhile. ``variant`` is the hash of the changed document that a
    fork runs by, and ``bulk`` the order of many replays that it is of.

    ``cost`` is of all its attempts, in ``currency``; None unless the price of each is known, in one currency.
    ``hold_at`` keeps retention from the job; ``raw_gone_at`` and ``events_gone_at`` say when it took something away.
    """

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
    parent: UUID | None
    priority: int
    principal: str
    token_budget: int | None
    deadline_at: datetime | None
    event_count: int
    cancel_requested: bool
    workflow_paused: bool
    degraded: Mapping[str, Degraded] | None
    variant: str | None = None
    bulk: UUID | None = None
    hold_at: datetime | None = None
    hold_by: str | None = None
    raw_gone_at: datetime | None = None
    events_gone_at: datetime | None = None
    cost: float | None = None
    currency: str | None = None


@dataclass(frozen=True, slots=True)
class JobPage:
    """Jobs, newest first, and the place to go on behind, if there is more.

    A search ends a page after so many jobs, found or not; ``looked_back_to`` is when the last of them was made.
    """

    jobs: tuple[Overview, ...]
    following: Place | None
    looked_back_to: datetime | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a job has come."""

    event_count: int
    final: bool


@dataclass(frozen=True, slots=True)
class Published:
    """A published version of a workflow, without its document. Of a ``retired`` one no new jobs are made, and with the
    jobs of one that is paused nobody goes on."""

    name: str
    version: int
    hash: str
    retired: bool
    created_at: datetime
    paused_at: datetime | None = None
    paused_by: str | None = None


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
    cost: float | None = None
    arrived_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """One visit to a state that asks, with all its attempts."""

    ordinal: int
    state: str
    question: str
    outcome: Outcome | None
    action: str | None
    output: Json
    degraded: Degraded | None
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

    async def engines(self) -> list[EngineUse]:
        """The engines whose requests are bounded, while there are workers."""
        return await engines_used(self._database)

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
        wanted = await narrowed(self._database, wanted)
        return tuple(_overview(row) for row in await self._database.rows(*page(wanted, limit, after)))

    async def page(self, wanted: JobFilter, limit: int, after: Place | None = None) -> JobPage:
        """The same with the place behind which the next page begins. It is the one that looks for a text."""
        if wanted.search is not None:
            return await self._search(wanted, limit, after)
        found = await self.jobs(wanted, limit + 1, after)
        jobs = found[:limit]
        return JobPage(jobs, Place(jobs[-1].created_at, jobs[-1].id) if len(found) > limit else None)

    async def _search(self, wanted: JobFilter, limit: int, after: Place | None) -> JobPage:
        wanted = await narrowed(self._database, wanted)
        jobs: list[UUID] = []
        place, more = after, True
        for _ in range(LOOKED_AT // CHUNK):
            rows = await self._database.rows(*candidates(wanted, CHUNK, place))
            for row in rows:
                place = Place(row["created_at"], row["id"])
                jobs += [row["id"]] if row["hit"] else []
                if len(jobs) == limit:
                    return JobPage(await self.overviews(jobs), place, place.created_at)
            if not (more := len(rows) == CHUNK):
                break
        return JobPage(await self.overviews(jobs), place if more else None, place.created_at if place else None)

    async def progress(self, job_ids: Iterable[UUID]) -> dict[UUID, Progress]:
        """Of many jobs at once; those that do not exist are missing."""
        rows = await self._database.rows(_PROGRESS, {"jobs": list(job_ids)})
        return {row["id"]: Progress(row["event_count"], row["final"]) for row in rows}

    async def open_wait(self, job_id: UUID) -> Wait | None:
        """The wait that a job is in, or None."""
        row = await self._database.row(_OPEN_WAIT, {"job": job_id})
        return None if row is None else wait_of(row)

    async def unsettled(self, job_id: UUID) -> Unsettled | None:
        """The call that a job waits for a person to settle, or None."""
        row = await self._database.row(_UNSETTLED, {"job": job_id, "waiting_for": SETTLEMENT})
        if row is None:
            return None
        said = None if row["done"] is None else Settled(row["done"], row["said"], row["by"])
        return Unsettled(tool_call_of(row), said)

    async def awaited(self, job_id: UUID) -> Wait | Unsettled | None:
        """What a job waits for: the wait that it is in, or the call that a person has to settle."""
        return await self.unsettled(job_id) or await self.open_wait(job_id)

    async def children(self, job_id: UUID) -> tuple[ChildRecord, ...]:
        """The jobs that a job has called, up to 1,000, in the order of its calls."""
        return await read_children(self._database, job_id)

    async def replays(self, job_id: UUID) -> tuple[UUID, ...]:
        """The jobs that were made from this one, oldest first."""
        return await replays_of(self._database, job_id)

    async def raw(self, attempt_id: UUID) -> bytes | None:
        """The body as it came. Empty while nothing has come yet; None if there is no such attempt.

        Raises ``GoneError`` where retention took it away.
        """
        row = await self._database.row(_RAW, {"attempt": attempt_id})
        if row is None:
            return None
        if row["raw"] is None:
            if row["arrived_at"] is not None:
                message = f"the answer of attempt {attempt_id} went by retention; its verdict stands"
                raise GoneError(message, remedy="hold jobs whose bytes are to stay: stepladder hold JOB")
            return b""
        return await asyncio.to_thread(decode_raw, row["raw"], row["raw_encoding"])

    async def request(self, attempt_id: UUID) -> SentRequest | None:
        """The request as it was sent, built again from what is stored. None if there is no such attempt."""
        return await read_request(self._database, attempt_id)

    async def workflows(self) -> tuple[Published, ...]:
        """Every version that is published, by name and version."""
        return tuple(Published(**row) for row in await self._database.rows(_WORKFLOWS, {}))

    async def stats(
        self, since: datetime, workflow: str | None = None, wanted: JobFilter | None = None
    ) -> tuple[WorkflowStats, ...]:
        """Of each workflow that had anything to do since then, or of the one that is named, by name; with a filter, of
        the jobs that pass it.
        """
        return await read_stats(self._database, since, workflow, wanted)

    async def turns(self, job_id: UUID) -> tuple[TurnRecord, ...]:
        """In order, an open turn included. Empty for a job that does not exist."""
        turns = await self._database.rows(_TURNS, {"job": job_id})
        attempts = await self._database.rows(_ATTEMPTS, {"job": job_id})
        return tuple(
            TurnRecord(
                **{**turn, "outcome": _outcome(turn["outcome"]), "degraded": degraded_of(turn["degraded"])},
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
    kept = None if row["degraded"] is None else {state: degraded_of(one) for state, one in row["degraded"].items()}
    return Overview(**row | words | {"degraded": kept, "cost": _number(row["cost"])})


def _number(amount: Decimal | None) -> float | None:
    return None if amount is None else float(amount)


def _outcome(word: str | None) -> Outcome | None:
    return None if word is None else Outcome(word)


def _attempt(row: Mapping[str, Any]) -> AttemptRecord:
    outcome = _outcome(row["outcome"])
    plain = {
        name: row[name]
        for name in AttemptRecord.__dataclass_fields__
        if name not in ("outcome", "rungs", "errors", "observed", "usage", "cost")
    }
    climbed = (row["rung_termination"], row["rung_parse"], row["rung_schema"], row["rung_semantic"])
    return AttemptRecord(
        **plain,
        outcome=outcome,
        rungs=None if outcome is None else Rungs(*(RungState(word) for word in climbed)),
        errors=violations_of(row["errors"] or ()),
        observed=violations_of(row["observed"] or ()),
        usage=None if row["prompt_tokens"] is None else Usage(row["prompt_tokens"], row["completion_tokens"]),
        cost=_number(row["cost"]),
    )


_OVERVIEWS = f"""
SELECT {OVERVIEW} FROM job_overview WHERE job_id = ANY(%(jobs)s)
"""  # noqa: S608 -- a constant

_PROGRESS = """
SELECT id, event_count, finished_at IS NOT NULL AS final FROM jobs WHERE id = ANY(%(jobs)s)
"""

_OPEN_WAIT = """
SELECT
    visit, state, signal, wait_id, show, frozen, by_other, scopes, until, payload, signal_id, action, carried,
    opened_at, closed_at
FROM waits WHERE job_id = %(job)s AND closed_at IS NULL ORDER BY visit DESC LIMIT 1
"""

_UNSETTLED = """
SELECT
    visit, tool_calls.state, tool, effect, arguments, key, runs, failed, lost, tool_calls.result, error, carried,
    opened_at, closed_at, done, settlements.result AS said, by
FROM jobs
    JOIN tool_calls ON tool_calls.job_id = jobs.id AND tool_calls.closed_at IS NULL
    LEFT JOIN settlements USING (job_id, visit)
WHERE jobs.id = %(job)s AND jobs.status = 'waiting' AND jobs.waiting_for = %(waiting_for)s
"""

_RAW = """
SELECT raw, raw_encoding, arrived_at FROM attempts WHERE id = %(attempt)s
"""

_WORKFLOWS = """
SELECT name, version, hash, retired, created_at, paused_at, paused_by FROM workflows ORDER BY name, version
"""

_TURNS = """
SELECT
    turn AS ordinal, state, question, outcome, action, output, degraded, carried, started_at, finished_at
FROM turn_outcomes WHERE job_id = %(job)s ORDER BY turn
"""

_ATTEMPTS = """
SELECT
    attempt_id AS id, turn, attempt AS ordinal, note, max_completion_tokens, sampling, schema_hash, request_id, model,
    engine_version, grammar_backend, started_at, http_status, ttft_ms, tpot_ms, duration_ms, outcome, cause,
    rung_termination, rung_parse, rung_schema, rung_semantic, errors, observed, finish_reason, prompt_tokens,
    completion_tokens, content, cost, arrived_at
FROM attempt_outcomes WHERE job_id = %(job)s ORDER BY turn, attempt
"""

_EVENTS = """
SELECT ordinal, kind, turn, attempt, data, at FROM events
WHERE job_id = %(job)s AND ordinal > %(after)s ORDER BY ordinal LIMIT %(limit)s
"""
