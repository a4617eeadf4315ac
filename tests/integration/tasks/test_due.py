"""Which jobs the sweep rings, by the database's own clock, which these tests set back."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING

import psycopg
import pytest
import redis

from stepladder.models.due import LOST_AFTER_S, take_due
from stepladder.models.ids import uuid7
from stepladder.tasks.app import make_app
from stepladder.tasks.bell import Bell
from stepladder.tasks.sweep import sweep_once
from stepladder.workflows.job import Job

if TYPE_CHECKING:
    from pathlib import Path
    from uuid import UUID

    from stepladder.models.store import Store


@dataclass
class Yard:
    store: Store
    url: str

    async def job(self, *, priority: int = 0) -> UUID:
        job_id = uuid7()
        return await self.store.submit(Job(job_id, job_id, {}, datetime.now(UTC)), "w", 1, priority=priority)

    def age(self, seconds: float) -> None:
        """As if all that has happened had happened so much earlier."""
        columns = ", ".join(f"{name} = {name} - %(s)s" for name in ("wake_at", "rung_at", "lease_until"))
        with psycopg.connect(self.url, autocommit=True) as connection:
            statement = f"UPDATE jobs SET {columns}"  # noqa: S608 -- names of ours
            connection.execute(statement.replace("%(s)s", "make_interval(secs => %(s)s)").encode(), {"s": seconds})

    async def rings(self, *, queue_empty: bool = True) -> list[UUID]:
        return await take_due(self.store, queue_empty=queue_empty)


@pytest.fixture
async def yard(store: Store, database_url: str) -> Yard:
    await store.publish("w", 1, "hash", {"name": "w"})
    return Yard(store, database_url)


async def test_a_new_job_is_rung_by_whoever_submits_it_and_by_the_sweep_if_that_was_in_vain(yard: Yard) -> None:
    job = await yard.job()
    assert await yard.rings() == []
    yard.age(LOST_AFTER_S)
    assert await yard.rings() == [job]
    assert await yard.rings() == []
    yard.age(LOST_AFTER_S)
    assert await yard.rings() == [job]


async def test_while_messages_wait_a_job_is_rung_again_less_and_less_often(yard: Yard) -> None:
    job = await yard.job()
    rung_after = []
    for second in range(0, 1000, 10):
        if job in await yard.rings(queue_empty=False):
            rung_after.append(second)
        yard.age(10)
    assert rung_after[0] == 60
    assert len(rung_after) >= 4
    assert all(later >= 2 * earlier for earlier, later in pairwise(rung_after))


async def test_a_job_whose_worker_was_lost_is_rung_as_soon_as_its_lease_is_over(yard: Yard) -> None:
    job = await yard.job()
    claim = await yard.store.claim("worker", 3.0, job)
    assert claim is not None
    yard.age(2.0)
    assert await yard.rings() == []
    yard.age(1.1)
    assert await yard.rings(queue_empty=False) == [job]


async def test_a_job_that_was_handed_back_is_rung_at_once_and_a_resting_one_when_its_time_comes(yard: Yard) -> None:
    back, resting = await yard.job(), await yard.job()
    for job in (back, resting):
        claim = await yard.store.claim("worker", 60.0, job)
        assert claim is not None
        later = None if job == back else datetime.fromtimestamp(datetime.now(UTC).timestamp() + 30, UTC)
        assert await yard.store.release(claim, later)
    assert await yard.rings(queue_empty=False) == [back]
    yard.age(31)
    assert resting in await yard.rings(queue_empty=False)


async def test_of_several_sweeps_at_once_one_gets_each_job(yard: Yard) -> None:
    jobs = {await yard.job() for _ in range(50)}
    yard.age(LOST_AFTER_S)
    rung = [job for some in await asyncio.gather(*(yard.rings() for _ in range(5))) for job in some]
    assert len(rung) == 50
    assert set(rung) == jobs


async def test_a_sweep_that_cannot_ring_all_rings_the_most_urgent(yard: Yard) -> None:
    jobs = {priority: await yard.job(priority=priority) for priority in (0, 7, -1)}
    yard.age(LOST_AFTER_S)
    assert set(await take_due(yard.store, queue_empty=True, most=2)) == {jobs[7], jobs[0]}


async def test_a_sweep_tells_the_broker(yard: Yard, broker_url: str) -> None:
    broker = redis.Redis(unix_socket_path=broker_url.partition("://")[2])
    broker.flushall()
    await yard.job()
    yard.age(LOST_AFTER_S)
    async with Bell(make_app(broker_url)) as bell:
        assert await sweep_once(yard.store, bell) == 1
        assert await bell.waiting() == 1
        yard.age(LOST_AFTER_S)
        assert await sweep_once(yard.store, bell) == 0


async def test_without_a_broker_no_job_is_marked_as_rung(yard: Yard, tmp_path: Path) -> None:
    job = await yard.job()
    yard.age(LOST_AFTER_S)
    async with Bell(make_app(f"redis+socket://{tmp_path}/none.sock")) as bell:
        assert await sweep_once(yard.store, bell) == 0
    assert await yard.rings() == [job]
