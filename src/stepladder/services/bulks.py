"""Many replays: estimated, ordered, and started by workers, a limited number at once."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import psycopg

from stepladder.models import bulks
from stepladder.models.records import Submitted
from stepladder.queries.answers import count, memories, pages, places
from stepladder.queries.where import filter_of
from stepladder.schemas.actor import Actor
from stepladder.schemas.finding import BadDocumentError
from stepladder.schemas.job_filter import Place
from stepladder.schemas.replay import BulkEstimate, BulkReplay
from stepladder.services.replays import Prepared, Wanted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

    from stepladder.models.database import Database
    from stepladder.models.store import Store
    from stepladder.queries.answers import Memory
    from stepladder.schemas.job_filter import JobFilter
    from stepladder.schemas.jsontypes import JsonObject
    from stepladder.services.replays import Replays

PRIORITY = -10
"""Lower than that of new jobs."""
CONCURRENCY = 10
BATCH = 50
"""Replays that are written at once, so that one order does not delay the others."""


def before(wanted: JobFilter, at: datetime) -> JobFilter:
    """The filter without jobs created from ``at`` on: an order does not replay its own replays."""
    until = at if wanted.created_before is None else min(at, wanted.created_before)
    return replace(wanted, created_before=until)


async def estimate(database: Database, replays: Replays, jobs: JobFilter, wanted: Wanted, actor: Actor) -> BulkEstimate:
    """What an order would do, from every job that matches the filter. Writes nothing. Raises as ``Replays`` does."""
    now = await database.now()
    refused, ready, turns, tokens = Counter[str](), 0, 0, 0
    cost: float | None = 0.0
    currency: str | None = None
    async for page in pages(database, before(jobs, now)):
        asked: list[tuple[UUID, int]] = []
        for memory in await memories(database, page):
            prepared = await _prepared(replays, memory, wanted, actor, now)
            if isinstance(prepared, str):
                refused[prepared] += 1
            else:
                asked.append((memory.job.id, prepared.from_turn))
        usage = await bulks.usage_of(database, [job for job, _ in asked], [turn for _, turn in asked])
        ready += len(asked)
        turns += max(usage["turns"], len(asked))
        tokens += usage["tokens"]
        unknown = cost is None or (usage["cost"] is None and usage["tokens"])
        cost = None if unknown else (cost or 0.0) + (usage["cost"] or 0.0)
        currency = currency or usage["currency"]
    used = {"turns": turns, "tokens": tokens}
    return BulkEstimate(
        mode=wanted.mode, dry_run=True, jobs=ready, cost=cost, currency=currency, refused=refused, **used
    )


async def total(database: Database, jobs: JobFilter) -> int:
    return await count(database, before(jobs, await database.now()))


async def order(
    database: Database,
    where: JsonObject,
    wanted: Wanted,
    actor: Actor,
    key: str | None,
    *,
    concurrency: int = CONCURRENCY,
    priority: int = PRIORITY,
) -> tuple[BulkReplay, bool] | None:
    """Writes an order of replays for workers to start. True: an earlier one has the same key.

    None if the key is taken by an order of other replays. Raises ``WhereError``.
    """
    bulk = BulkReplay(
        id=bulks.bulk_id(actor.name, key),
        mode=wanted.mode,
        state="running",
        where=dict(where),
        set=dict(wanted.changes),
        concurrency=concurrency,
        priority=priority,
        principal=actor.name,
        total=await total(database, filter_of(where)),
        jobs={},
        refused={},
        handed_out=0,
        created_at=await database.now(),
        stopped_at=None,
        scopes=actor.scopes,
    )
    if await bulks.order_bulk(database, bulk):
        return bulk, False
    found = await bulks.find_bulk(database, bulk.id)
    return (found, True) if found is not None and bulks.is_same_order(found, bulk) else None


async def hand_out(store: Store, replays: Replays) -> list[UUID]:
    """Writes the next replays of every order, as its concurrency allows; the caller notifies them.

    Any worker may call it, however often: an order replays each job once. Raises ``UnreachableError``.
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
        busy = sum(bulk.jobs.get(status, 0) for status in bulks.BUSY)
        room = min(bulk.concurrency - busy, BATCH)
        if room <= 0:
            return []
        after = None if bulk.after_at is None or bulk.after_id is None else Place(bulk.after_at, bulk.after_id)
        found = await places(store.database, before(filter_of(bulk.where), bulk.created_at), room, after)
        refused = Counter(bulk.refused)
        due = await _write(store, replays, bulk, [place.job_id for place in found], refused)
        last = found[-1] if found else None
        await bulks.note_progress(connection, bulk, last, refused, done=len(found) < room)
        return due


async def _write(
    store: Store, replays: Replays, bulk: BulkReplay, jobs: Sequence[UUID], refused: Counter[str]
) -> list[UUID]:
    wanted = Wanted(bulk.mode, changes=bulk.set)
    actor, now = Actor(bulk.principal, bulk.scopes), await store.database.now()
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
        except psycopg.errors.UniqueViolation:  # a lost worker wrote this one
            continue
        if isinstance(written, Submitted):
            due.append(new.job.id)
    return due


async def _prepared(replays: Replays, memory: Memory, wanted: Wanted, actor: Actor, now: datetime) -> Prepared | str:
    """The new job, or the reason why there is none."""
    try:
        prepared = await replays.of_memory(memory, wanted, actor, now)
    except BadDocumentError:
        return "this process lacks the tools or rules of their workflow"
    if isinstance(prepared, Prepared):
        return prepared
    return prepared.reason.replace(f"job {memory.job.id}", "it")
