"""The read service: what became of a job, for the API, the command line, the dashboard and tests."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stepladder.experiments.jobdiff import History, job_diff
from stepladder.models.child_jobs import read_children
from stepladder.models.hot import VISITS
from stepladder.models.load import decode_raw, settled_of
from stepladder.models.shares import engines_used
from stepladder.models.variants import replays_of
from stepladder.queries.listing import OVERVIEW, candidates, page
from stepladder.queries.rare import narrowed
from stepladder.queries.request import SentRequest, read_request
from stepladder.queries.search import CHUNK, LOOKED_AT
from stepladder.queries.stats import read_stats
from stepladder.schemas.errors import GoneError
from stepladder.schemas.history import (
    Attempt,
    CallVisit,
    Event,
    ReceivedSignal,
    Timeline,
    ToolVisit,
    TurnVisit,
    WaitVisit,
)
from stepladder.schemas.job import SETTLEMENT
from stepladder.schemas.job_filter import Place
from stepladder.schemas.published import WorkflowVersion
from stepladder.schemas.responses import Job, OpenSettlement, OpenWait
from stepladder.workflows.visits import ChildCall, SignalWait, ToolCall, visit_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime
    from uuid import UUID

    from stepladder.models.database import Database
    from stepladder.models.shares import EngineUse
    from stepladder.schemas.diff import JobDiff
    from stepladder.schemas.job_filter import JobFilter
    from stepladder.schemas.responses import ChildJob
    from stepladder.schemas.stats import WorkflowStats


@dataclass(frozen=True, slots=True)
class FoundJobs:
    """Jobs, newest first, and the place to continue after, if there is more.

    A search reads a limited number of jobs per page, matching or not; ``looked_back_to`` is when the last was created.
    """

    jobs: tuple[Job, ...]
    following: Place | None
    looked_back_to: datetime | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a job has come."""

    event_count: int
    final: bool


class Reads:
    """Reads from an opened ``Database``. Any method raises ``UnreachableError`` when the connection breaks."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def engines(self) -> list[EngineUse]:
        """The engines whose requests are bounded, while there are workers."""
        return await engines_used(self._database)

    async def job(self, job_id: UUID) -> Job | None:
        """A job with its open wait or settlement, its children and its replays; None if there is no such job."""
        job = await self.overview(job_id)
        if job is None:
            return None
        settlement = await self.unsettled(job_id) if job.waiting_for == SETTLEMENT else None
        wait = await self.open_wait(job_id) if job.waiting_for is not None and settlement is None else None
        found = {
            "wait": None if wait is None else _open_wait(wait),
            "settlement": settlement,
            "children": await self.children(job_id),
            "replays": await self.replays(job_id),
        }
        return job.model_copy(update=found)

    async def overview(self, job_id: UUID) -> Job | None:
        """The job alone; None if there is no such job."""
        found = await self.overviews([job_id])
        return found[0] if found else None

    async def overviews(self, job_ids: Iterable[UUID]) -> tuple[Job, ...]:
        """Those of the jobs that exist, in the order of ``job_ids``."""
        ids = list(job_ids)
        rows = {row["id"]: row for row in await self._database.rows(_OVERVIEWS, {"jobs": ids})}
        return tuple(Job.model_validate(rows[job_id]) for job_id in ids if job_id in rows)

    async def jobs(self, wanted: JobFilter, limit: int, after: Place | None = None) -> tuple[Job, ...]:
        """Up to ``limit`` jobs that pass the filter, newest first, after a place."""
        wanted = await narrowed(self._database, wanted)
        return tuple(Job.model_validate(row) for row in await self._database.rows(*page(wanted, limit, after)))

    async def page(self, wanted: JobFilter, limit: int, after: Place | None = None) -> FoundJobs:
        """The same with the place where the next page begins. This is the method that searches for a text."""
        if wanted.search is not None:
            return await self._search(wanted, limit, after)
        found = await self.jobs(wanted, limit + 1, after)
        jobs = found[:limit]
        return FoundJobs(jobs, Place(jobs[-1].created_at, jobs[-1].id) if len(found) > limit else None)

    async def _search(self, wanted: JobFilter, limit: int, after: Place | None) -> FoundJobs:
        wanted = await narrowed(self._database, wanted)
        jobs: list[UUID] = []
        place, more = after, True
        for _ in range(LOOKED_AT // CHUNK):
            rows = await self._database.rows(*candidates(wanted, CHUNK, place))
            for row in rows:
                place = Place(row["created_at"], row["id"])
                jobs += [row["id"]] if row["hit"] else []
                if len(jobs) == limit:
                    return FoundJobs(await self.overviews(jobs), place, place.created_at)
            if not (more := len(rows) == CHUNK):
                break
        return FoundJobs(await self.overviews(jobs), place if more else None, place.created_at if place else None)

    async def progress(self, job_ids: Iterable[UUID]) -> dict[UUID, Progress]:
        """Of many jobs at once; those that do not exist are missing."""
        rows = await self._database.rows(_PROGRESS, {"jobs": list(job_ids)})
        return {row["id"]: Progress(row["event_count"], row["final"]) for row in rows}

    async def open_wait(self, job_id: UUID) -> SignalWait | None:
        """The wait that a job is in, as the machine remembers it; None if it is in none."""
        row = await self._database.row(_OPEN_WAIT, {"job": job_id})
        visit = None if row is None else visit_of(row)
        return visit if isinstance(visit, SignalWait) else None

    async def unsettled(self, job_id: UUID) -> OpenSettlement | None:
        """The call that a job waits for a person to settle, or None."""
        row = await self._database.row(_UNSETTLED, {"job": job_id, "waiting_for": SETTLEMENT})
        if row is None:
            return None
        call, said = visit_of(row), settled_of(row)
        found = {name: getattr(call, name) for name in ("state", "tool", "arguments", "key", "opened_at")}
        found |= {"reason": call.error, "said": said, "route": f"/v1/jobs/{job_id}/settle"}
        return OpenSettlement.model_validate(found)

    async def children(self, job_id: UUID) -> tuple[ChildJob, ...]:
        """The jobs that a job has called, up to 1,000, in the order of its calls."""
        return await read_children(self._database, job_id)

    async def replays(self, job_id: UUID) -> tuple[UUID, ...]:
        """The jobs that were made from this one, oldest first."""
        return await replays_of(self._database, job_id)

    async def raw(self, attempt_id: UUID) -> bytes | None:
        """The body as received. Empty before anything has arrived; None if there is no such attempt.

        Raises ``GoneError`` if retention removed it.
        """
        row = await self._database.row(_RAW, {"attempt": attempt_id})
        if row is None:
            return None
        if row["raw"] is None:
            if row["arrived_at"] is not None:
                message = f"retention removed the answer of attempt {attempt_id}; its verdict is kept"
                raise GoneError(message, remedy="exempt jobs whose bytes you need from retention: stepladder hold JOB")
            return b""
        return await asyncio.to_thread(decode_raw, row["raw"], row["raw_encoding"])

    async def request(self, attempt_id: UUID) -> SentRequest | None:
        """The request as it was sent, rebuilt from what is stored. None if there is no such attempt."""
        return await read_request(self._database, attempt_id)

    async def workflows(self) -> tuple[WorkflowVersion, ...]:
        """Every published version, by name and number."""
        return tuple(WorkflowVersion.model_validate(row) for row in await self._database.rows(_WORKFLOWS, {}))

    async def stats(
        self, since: datetime, workflow: str | None = None, wanted: JobFilter | None = None
    ) -> tuple[WorkflowStats, ...]:
        """Of each workflow that was active since then, or of the one that is named, by name; with a filter, of the
        jobs that pass it.
        """
        return await read_stats(self._database, since, workflow, wanted)

    async def diff(self, job: Job, other: Job) -> JobDiff:
        """What changed in the ``other`` job, visit by visit."""
        was, now = [History(one, await self.turns(one.id), await self.timeline(one.id)) for one in (job, other)]
        return job_diff(was, now)

    async def turns(self, job_id: UUID) -> tuple[TurnVisit, ...]:
        """In order, an open turn included. Empty for a job that does not exist."""
        turns = await self._database.rows(_TURNS, {"job": job_id})
        attempts: dict[int, list[Attempt]] = {}
        for row in await self._database.rows(_ATTEMPTS, {"job": job_id}):
            attempts.setdefault(row["turn"], []).append(_attempt(row))
        return tuple(TurnVisit.model_validate(turn | {"attempts": attempts.get(turn["ordinal"], [])}) for turn in turns)

    async def events(self, job_id: UUID, after: int = 0, limit: int | None = None) -> tuple[Event, ...]:
        """The history after the event with ordinal ``after``, up to ``limit`` lines of it."""
        rows = await self._database.rows(_EVENTS, {"job": job_id, "after": after, "limit": limit})
        return tuple(Event.model_validate(row) for row in rows)

    async def timeline(self, job_id: UUID) -> Timeline:
        """What happened between a job's turns. Empty for a job that does not exist."""
        turns = await self._database.rows(_TURN_VISITS, {"job": job_id})
        visits = [visit_of(row) for row in await self._database.rows(VISITS, {"job": job_id})]
        signals = await self._database.rows(_SIGNALS, {"job": job_id})
        return Timeline(
            turns={row["ordinal"]: row["visit"] for row in turns},
            tools=tuple(ToolVisit.model_validate(visit) for visit in visits if isinstance(visit, ToolCall)),
            waits=tuple(WaitVisit.model_validate(visit) for visit in visits if isinstance(visit, SignalWait)),
            calls=tuple(CallVisit.model_validate(visit) for visit in visits if isinstance(visit, ChildCall)),
            signals=tuple(ReceivedSignal.model_validate(row) for row in signals),
        )


def _open_wait(wait: SignalWait) -> OpenWait:
    return OpenWait(
        signal=wait.signal,
        state=wait.state,
        wait_id=wait.wait_id,
        show=wait.show,
        frozen=dict(wait.frozen),
        by="other" if wait.by_other else "anyone",
        scopes=wait.scopes,
        opened_at=wait.opened_at,
        until=wait.until,
    )


def _attempt(row: Mapping[str, Any]) -> Attempt:
    rungs = {name: row[f"rung_{name}"] for name in ("termination", "parse", "schema", "semantic")}
    usage = {name: row[name] for name in ("prompt_tokens", "completion_tokens")}
    content: bytes | None = row["content"]
    found = {
        "rungs": None if row["outcome"] is None else rungs,
        "errors": row["errors"] or (),
        "observed": row["observed"] or (),
        "usage": None if row["prompt_tokens"] is None else usage,
        "engine": {"model": row["model"], "version": row["engine_version"], "backend": row["grammar_backend"]},
        "content": None if content is None else content.decode("utf-8", "replace"),
        "content_bytes": content,
    }
    return Attempt.model_validate({**row, **found})


_OVERVIEWS = f"""
SELECT {OVERVIEW} FROM job_overview WHERE job_id = ANY(%(jobs)s)
"""  # noqa: S608 -- a constant

_PROGRESS = """
SELECT id, event_count, finished_at IS NOT NULL AS final FROM jobs WHERE id = ANY(%(jobs)s)
"""

_UNSETTLED = """
SELECT
    visit, kind, visits.state, visits.status, key, error_kind, body, carried, opened_at, closed_at, done,
    settlements.result AS said, by
FROM jobs
    JOIN visits ON visits.job_id = jobs.id AND visits.status = 'settlement'
    LEFT JOIN settlements USING (job_id, visit)
WHERE jobs.id = %(job)s AND jobs.status = 'waiting' AND jobs.waiting_for = %(waiting_for)s
"""

_OPEN_WAIT = """
SELECT visit, kind, state, status, key, error_kind, body, carried, opened_at, closed_at
FROM visits WHERE job_id = %(job)s AND status = 'waiting' ORDER BY visit DESC LIMIT 1
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

_TURN_VISITS = """
SELECT ordinal, visit FROM turns WHERE job_id = %(job)s
"""

_SIGNALS = """
SELECT id, name, payload, by, received_at, taken_at FROM signals
WHERE job_id = %(job)s ORDER BY received_at, id
"""
