"""Many replays: counted before, ordered, and handed out to the workers so many at once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import psycopg

from stepladder.models import bulks
from stepladder.models.answers import count, memories, pages, places
from stepladder.models.listing import Place
from stepladder.models.records import Submitted
from stepladder.models.where import filter_of
from stepladder.schemas.actor import Actor
from stepladder.schemas.finding import BadDocumentError
from stepladder.schemas.replay import Mode
from stepladder.services.replays import Prepared, Wanted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from stepladder.models.answers import Memory
    from stepladder.models.bulks import Bulk
    from stepladder.models.database import Database
    from stepladder.models.listing import JobFilter
    from stepladder.models.store import Store
    from stepladder.services.replays import Replays

PRIORITY = -10
"""New work goes before old work that is done again."""
CONCURRENCY = 10
AT_ONCE = 50
"""Replays written by one look, so that one order keeps no other waiting."""


@dataclass(slots=True)
class Estimate:
    """What a bulk would do. ``turns``, ``tokens`` and ``cost`` are what the turns that are asked again took before;
    what follows behind them nobody knows.
    """

    jobs: int = 0
    turns: int = 0
    tokens: int = 0
    cost: float | None = 0.0
    currency: str | None = None
    refused: Counter[str] = field(default_factory=Counter)


def before(wanted: JobFilter, at: datetime) -> JobFilter:
    """The filter without what is created from now on: a replay is no job to replay."""
    until = at if wanted.created_before is None else min(at, wanted.created_before)
    return replace(wanted, created_before=until)


async def estimate(database: Database, replays: Replays, jobs: JobFilter, wanted: Wanted, actor: Actor) -> Estimate:
    """Looks at every job that passes the filter. Writes nothing. Raises as ``Replays`` does."""
    found, now = Estimate(), datetime.now(UTC)
    async for page in pages(database, before(jobs, now)):
        asked: list[tuple[UUID, int]] = []
        for memory in await memories(database, page):
            prepared = await _prepared(replays, memory, wanted, actor, now)
            if isinstance(prepared, str):
                found.refused[prepared] += 1
            else:
                asked.append((memory.job.id, prepared.from_turn))
        took = await bulks.took(database, [job for job, _ in asked], [turn for _, turn in asked])
        found.jobs += len(asked)
        found.turns += max(took.turns, len(asked))
        found.tokens += took.tokens
        found.cost = (
            None if found.cost is None or (took.cost is None and took.tokens) else found.cost + (took.cost or 0)
        )
        found.currency = found.currency or took.currency
    return found


async def total(database: Database, jobs: JobFilter, at: datetime) -> int:
    return await count(database, before(jobs, at))


async def hand_out(store: Store, replays: Replays) -> list[UUID]:
    """Writes the replays that there is room for, of every order; the caller notifies them. Any worker may do so.

    Each job is replayed once by an order, whoever hands it out and however often. Raises ``UnreachableError``.
    """
    due: list[UUID] = []
    for bulk_id in await bulks.open_bulks(store.database):
        due += await _hand_out(store, replays, bulk_id)
    return due


async def _hand_out(store: Store, replays: Replays, bulk_id: UUID) -> list[UUID]:
    async with store.database.connection() as connection, connection.transaction():
        bulk = await bulks.hold_bulk(connection, bulk_id)
        if bulk is None:
            return []
        busy = sum(bulk.jobs.get(status, 0) for status in ("queued", "running", "paused"))
        room = min(bulk.concurrency - busy, AT_ONCE)
        if room <= 0:
            return []
        after = None if bulk.after_at is None or bulk.after_id is None else Place(bulk.after_at, bulk.after_id)
        found = await places(store.database, before(filter_of(bulk.where), bulk.created_at), room, after)
        refused = Counter(bulk.refused)
        due = await _write(store, replays, bulk, [place.job_id for place in found], refused)
        last = found[-1] if found else None
        await bulks.note_progress(connection, bulk, last, refused, done=len(found) < room)
        return due


async def _write(store: Store, replays: Replays, bulk: Bulk, jobs: Sequence[UUID], refused: Counter[str]) -> list[UUID]:
    wanted = Wanted(Mode(bulk.mode), changes=bulk.changes)
    actor, now = Actor(bulk.principal, bulk.scopes), datetime.now(UTC)
    due: list[UUID] = []
    for memory in await memories(store.database, jobs):
        prepared = await _prepared(replays, memory, wanted, actor, now)
        if isinstance(prepared, str):
            refused[prepared] += 1
            continue
        await replays.keep(prepared.definition, wanted.changes)
        new = replace(prepared.new, bulk=bulk.id, priority=bulk.priority)
        try:
            written = await store.submit_many([new])
        except psycopg.errors.UniqueViolation:  # a worker was lost after it had written this one
            continue
        if isinstance(written, Submitted):
            due.append(new.job.id)
    return due


async def _prepared(replays: Replays, memory: Memory, wanted: Wanted, actor: Actor, now: datetime) -> Prepared | str:
    """The new job, or in one line why there is none."""
    try:
        prepared = await replays.of_memory(memory, wanted, actor, now)
    except BadDocumentError:
        return "this process lacks the tools or rules of their workflow"
    if isinstance(prepared, Prepared):
        return prepared
    return prepared.reason.replace(f"job {memory.job.id}", "it")
