"""Jobs as the machine left them, many at once, with the bytes of their answers: to judge again, or to replay."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stepladder.judge.revalidate import Answer, Unjudged
from stepladder.models import hot
from stepladder.models.load import arrival_of, attempt_of, job_of
from stepladder.queries import listing
from stepladder.queries.rare import narrowed
from stepladder.schemas.job_filter import Place
from stepladder.schemas.outcomes import Cause
from stepladder.workflows.job import Turn

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from uuid import UUID

    from stepladder.models.database import Database
    from stepladder.schemas.job_filter import JobFilter
    from stepladder.schemas.jsontypes import JsonObject
    from stepladder.workflows.job import Job

PAGE = 200
"""Jobs that are read at once."""


@dataclass(frozen=True, slots=True)
class Memory:
    """A job, its metadata outside the machine, and its judged answers, oldest first."""

    job: Job
    workflow: str
    version: int
    variant: str | None
    metadata: JsonObject
    priority: int
    answers: tuple[Answer, ...] = ()


async def memories(database: Database, job_ids: Sequence[UUID], *, answers: bool = False) -> tuple[Memory, ...]:
    """Those of the jobs that exist, in the order in which they are asked for; of one that runs, as it was committed.

    The bytes of their answers are read where ``answers`` says so.
    """
    parameters = {"jobs": list(job_ids)}
    async with database.connection() as connection, connection.transaction(), connection.pipeline():
        await connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursors = [await connection.execute(statement, parameters) for statement in _READ]
        last = await connection.execute(_ANSWERS if answers else _NONE, parameters)
        rows, *parts = [await cursor.fetchall() for cursor in (*cursors, last)]
    jobs = {row["id"]: row for row in rows}
    grouped = [_by_job(part) for part in parts]
    found = [job_id for job_id in dict.fromkeys(job_ids) if job_id in jobs]
    return await asyncio.to_thread(lambda: tuple(_memory(jobs[one], [of[one] for of in grouped]) for one in found))


async def pages(database: Database, wanted: JobFilter, size: int = PAGE) -> AsyncIterator[tuple[UUID, ...]]:
    """The jobs that pass a filter, newest first, some at a time. Jobs that arrive meanwhile are not among them."""
    after: Place | None = None
    wanted = await narrowed(database, wanted)
    while True:
        rows = await places(database, wanted, size, after)
        if rows:
            yield tuple(place.job_id for place in rows)
        if len(rows) < size:
            return
        after = rows[-1]


async def count(database: Database, wanted: JobFilter) -> int:
    """How many jobs pass a filter now."""
    statement, parameters = listing.places(wanted, 2**31 - 1, None)
    row = await database.row(f"SELECT count(*) AS jobs FROM ({statement}) AS page", parameters)  # noqa: S608 -- as there
    return 0 if row is None else int(row["jobs"])


async def places(database: Database, wanted: JobFilter, limit: int, after: Place | None) -> list[Place]:
    """As ``Reads.jobs``, but for their places alone."""
    rows = await database.rows(*listing.places(wanted, limit, after))
    return [Place(row["created_at"], row["id"]) for row in rows]


def _by_job(rows: Sequence[dict[str, Any]]) -> defaultdict[UUID, list[dict[str, Any]]]:
    grouped: defaultdict[UUID, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        grouped[row["job_id"]].append(row)
    return grouped


def _memory(row: dict[str, Any], parts: Sequence[list[dict[str, Any]]]) -> Memory:
    turns, visits, messages, attempts = parts
    job = job_of(
        row,
        turns=turns,
        attempts=[],
        visits=visits,
        messages=messages,
    )
    outputs = {visit.ordinal: visit.output for visit in job.visits if isinstance(visit, Turn)}
    return Memory(
        job=job,
        workflow=row["workflow"],
        version=row["version"],
        variant=row["variant"],
        metadata=row["metadata"],
        priority=row["priority"],
        answers=tuple(_answer(attempt, outputs[attempt["turn"]]) for attempt in attempts),
    )


def _answer(row: dict[str, Any], output: Any) -> Answer:
    attempt = attempt_of(row, output)
    if row["arrived_at"] is None or _is_broken_off(row):
        return Answer(row["id"], row["turn"], attempt, None, Unjudged.BROKEN_OFF)
    if row["lost_cause"] is None and row["raw"] is None:
        return Answer(row["id"], row["turn"], attempt, None, Unjudged.GONE)
    return Answer(row["id"], row["turn"], attempt, arrival_of(row))


def _is_broken_off(row: dict[str, Any]) -> bool:
    """Whether an answer came, and the job was cancelled before it was judged."""
    told = row["cause"] == Cause.ABORTED and row["lost_cause"] is None
    return told and row["finish_reason"] is None and row["content_hash"] is None


def _of_many(statement: str) -> str:
    """A statement that reads one job's rows, for many jobs."""
    one = statement.replace("%(job)s", "wanted.job_id")
    return f"SELECT * FROM unnest(%(jobs)s::uuid[]) AS wanted(job_id), LATERAL ({one}) AS of_one"  # noqa: S608 -- ours


_JOBS = """
SELECT * FROM jobs WHERE id = ANY(%(jobs)s)
"""

_READ = (_JOBS, *(_of_many(statement) for statement in (hot.TURNS, hot.VISITS, hot.MESSAGES)))

_ANSWERS = _of_many("""
SELECT
    id, turn, ordinal, history_from, history_to, note, max_completion_tokens, sampling, http_status, streamed, raw,
    raw_encoding, retry_after_s, lost_cause, lost_detail, arrived_at, NULL::bytea AS content, content_hash,
    finish_reason, outcome, cause, rung_termination, rung_parse, rung_schema, rung_semantic, errors, observed,
    schema_known_bad, prompt_tokens, completion_tokens
FROM attempts WHERE job_id = %(job)s AND outcome IS NOT NULL ORDER BY turn, ordinal
""")

_NONE = "SELECT NULL::uuid AS job_id WHERE %(jobs)s::uuid[] IS NULL"
