"""What goes with age, and what never does."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from stepladder.judge.revalidate import Unjudged
from stepladder.models.ids import uuid7
from stepladder.models.records import Receipt
from stepladder.models.retention import BATCH, Ages, Removed, due, hold, release, retain
from stepladder.queries.answers import memories
from stepladder.queries.reads import Reads
from stepladder.schemas.answer import Received
from stepladder.schemas.errors import GoneError
from stepladder.tasks.housekeeping import remove_old, repeat
from stepladder.testing import eventually

from .test_views import RIGHT

if TYPE_CHECKING:
    from stepladder.models.database import Database
    from stepladder.workflows.job import Job

    from .conftest import Bench

AT_ONCE = Ages(timedelta(0), timedelta(0))


async def ended(bench: Bench, days_ago: float = 0) -> Job:
    """A job that ended so long ago, with one answer."""
    job, claim, attempt = await bench.asked()
    assert await bench.answer(claim, attempt, Received(200, b"raw"))
    claim = await bench.judge(claim, attempt, RIGHT)
    assert await bench.commit(claim, bench.finished(claim))
    async with await bench.connect() as connection:
        past = "UPDATE jobs SET finished_at = now() - make_interval(secs => %s) WHERE id = %s"
        await connection.execute(past, (days_ago * 86400, job.id))
    return job


async def test_old_bytes_and_history_are_removed_and_nothing_else(bench: Bench, database: Database) -> None:
    old, new, live = await ended(bench, 31), await ended(bench, 29), await bench.submit()
    before = await bench.dump()
    reads = Reads(database)
    was = await reads.turns(old.id)
    ages = Ages.of_days(30, 30)
    expected = Removed(raw_jobs=1, attempts=1, event_jobs=1, events=2)
    assert await due(database, ages) == expected
    assert await bench.dump() == before
    assert await retain(database, ages) == expected
    assert await retain(database, ages) == Removed()
    after = await bench.dump()
    assert {table for table in before if before[table] != after[table]} == {"jobs", "attempts", "events"}

    [turn], [past] = await reads.turns(old.id), was
    [attempt], [earlier] = turn.attempts, past.attempts
    assert (attempt.content_bytes, attempt.outcome, attempt.rungs, attempt.usage) == (
        None, earlier.outcome, earlier.rungs, earlier.usage,
    )  # fmt: skip
    assert turn.output == past.output
    assert await reads.events(old.id) == ()
    job = await reads.overview(old.id)
    assert job is not None
    assert (job.attempts, job.event_count) == (1, 2)
    assert None not in (job.raw_gone_at, job.events_gone_at)
    with pytest.raises(GoneError, match="retention removed"):
        await reads.raw(attempt.id)

    for other in (new, live):
        kept = await reads.overview(other.id)
        assert kept is not None
        assert (kept.raw_gone_at, kept.events_gone_at) == (None, None)
        assert await reads.events(other.id) != ()
    [[attempt]] = [turn.attempts for turn in await reads.turns(new.id)]
    assert (await reads.raw(attempt.id), attempt.content_bytes) == (b"raw", RIGHT.completion.content)


async def test_each_kind_has_its_own_age_and_none_keeps_forever(bench: Bench, database: Database) -> None:
    await ended(bench, 10)
    assert await retain(database, Ages()) == Removed()
    assert await retain(database, Ages.of_days(None, 5)) == Removed(event_jobs=1, events=2)
    assert await retain(database, Ages.of_days(11, 5)) == Removed()
    assert await retain(database, Ages.of_days(0, None)) == Removed(raw_jobs=1, attempts=1)


async def test_a_held_job_keeps_everything_until_its_release(bench: Bench, database: Database) -> None:
    job = await ended(bench, 10)
    assert await hold(database, job.id, "ann\0") is Receipt.ACCEPTED
    assert await hold(database, job.id, "bob") is Receipt.DUPLICATE
    assert await hold(database, uuid7(), "bob") is await release(database, uuid7()) is Receipt.UNKNOWN
    shown = await Reads(database).overview(job.id)
    assert shown is not None
    assert (shown.hold_by, shown.hold_at is None) == ("ann\ufffd", False)
    assert await retain(database, AT_ONCE) == Removed()
    assert await release(database, job.id) is Receipt.ACCEPTED
    assert await release(database, job.id) is Receipt.DUPLICATE
    assert (await retain(database, AT_ONCE)).attempts == 1


async def test_a_locked_row_is_skipped(bench: Bench, database: Database) -> None:
    job = await ended(bench)
    async with await bench.connect() as connection, connection.transaction():
        await connection.execute("SELECT FROM jobs WHERE id = %s FOR NO KEY UPDATE", (job.id,))
        assert await retain(database, AT_ONCE) == Removed()
    assert (await retain(database, AT_ONCE)).raw_jobs == 1


async def test_two_processes_remove_several_batches_once(bench: Bench, database: Database) -> None:
    first = await ended(bench)
    async with await bench.connect() as connection:
        await connection.execute(
            "INSERT INTO jobs SELECT (json_populate_record(jobs, json_build_object('id', gen_random_uuid()))).*"
            " FROM jobs, generate_series(1, %s) WHERE id = %s",
            (2 * BATCH, first.id),
        )
    assert (await retain(database, AT_ONCE, within_s=0)).more
    both = await asyncio.gather(retain(database, AT_ONCE), retain(database, AT_ONCE))
    left = await retain(database, AT_ONCE)  # what the two had locked before each other
    assert sum(one.raw_jobs for one in (*both, left)) == 2 * BATCH + 1
    assert sum(one.attempts for one in (*both, left)) == 1


@pytest.mark.parametrize(
    "change",
    [
        "raw = NULL, content = NULL, outcome = 'semantic'",
        "raw = NULL, content = 'x'",
        "raw = 'x', content = NULL",
        "errors = '[ ]', raw = NULL, content = NULL",
        "prompt_tokens = 0, raw = NULL, content = NULL",
    ],
)
async def test_retention_cannot_change_a_verdict(bench: Bench, change: str) -> None:
    await ended(bench)
    async with await bench.connect() as connection:
        for word in ("on", "off"):
            await connection.execute("SELECT set_config('stepladder.retention', %s, false)", (word,))
            with pytest.raises(psycopg.errors.RestrictViolation):
                await connection.execute(f"UPDATE attempts SET {change}".encode())  # noqa: S608 -- words of ours
        with pytest.raises(psycopg.errors.RestrictViolation):  # nor its bytes in anybody else's
            await connection.execute("UPDATE attempts SET raw = NULL, content = NULL")


async def test_a_removed_answer_is_reported_as_gone(bench: Bench, database: Database) -> None:
    job = await ended(bench)
    await retain(database, AT_ONCE)
    [memory] = await memories(database, [job.id], answers=True)
    assert [(answer.arrival, answer.why) for answer in memory.answers] == [(None, Unjudged.GONE)]


async def test_a_worker_removes_what_is_old(bench: Bench, database: Database) -> None:
    first = await ended(bench)
    working = asyncio.create_task(repeat(lambda: remove_old(database, AT_ONCE), 0.01, "retention"))

    async def gone(job: Job) -> bool:
        found: Any = await Reads(database).overview(job.id)
        return found.raw_gone_at is not None and found.events_gone_at is not None

    await eventually(lambda: gone(first))
    second = await ended(bench)
    await eventually(lambda: gone(second))
    working.cancel()
    await asyncio.wait((working,))
