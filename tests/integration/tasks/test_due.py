"""Which jobs the sweep announces, by the database's own clock, which these tests set back."""

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
from stepladder.models.records import NewJob
from stepladder.tasks.app import make_app
from stepladder.tasks.housekeeping import sweep
from stepladder.tasks.notifier import Notifier
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
        job = Job(job_id, job_id, {}, datetime.now(UTC))
        await self.store.submit_many([NewJob(job, "w", 1, priority=priority)])
        return job_id

    def age(self, seconds: float) -> None:
        """As if all that has happened had happened so much earlier."""
        columns = ", ".join(f"{name} = {name} - %(s)s" for name in ("wake_at", "notified_at", "lease_until"))
        with psycopg.connect(self.url, autocommit=True) as connection:
            statement = f"UPDATE jobs SET {columns}"  # noqa: S608 -- names of ours
            connection.execute(statement.replace("%(s)s", "make_interval(secs => %(s)s)").encode(), {"s": seconds})

    async def to_notify(self, *, queue_empty: bool = True) -> list[UUID]:
        return await take_due(self.store, queue_empty=queue_empty)


@pytest.fixture
async def yard(store: Store, database_url: str) -> Yard:
    await store.publish("w", 1, "hash", {"name": "w"})
    return Yard(store, database_url)


async def test_the_sweep_announces_a_new_job_whose_message_was_lost(yard: Yard) -> None:
    job = await yard.job()
    assert await yard.to_notify() == []
    yard.age(LOST_AFTER_S)
    assert await yard.to_notify() == [job]
    assert await yard.to_notify() == []
    yard.age(LOST_AFTER_S)
    assert await yard.to_notify() == [job]


async def test_a_job_is_announced_less_and_less_often_while_messages_wait(yard: Yard) -> None:
    job = await yard.job()
    announced_at = []
    for second in range(0, 1000, 10):
        if job in await yard.to_notify(queue_empty=False):
            announced_at.append(second)
        yard.age(10)
    assert announced_at[0] == 60
    assert len(announced_at) >= 4
    assert all(later >= 2 * earlier for earlier, later in pairwise(announced_at))


async def test_a_job_of_a_lost_worker_is_announced_when_its_lease_ends(yard: Yard) -> None:
    job = await yard.job()
    claim = await yard.store.claim("worker", 3.0, job)
    assert claim is not None
    yard.age(2.0)
    assert await yard.to_notify() == []
    yard.age(1.1)
    assert await yard.to_notify(queue_empty=False) == [job]


async def test_a_released_job_is_announced_at_once_and_a_resting_one_when_due(yard: Yard) -> None:
    back, resting = await yard.job(), await yard.job()
    for job in (back, resting):
        claim = await yard.store.claim("worker", 60.0, job)
        assert claim is not None
        later = None if job == back else datetime.fromtimestamp(datetime.now(UTC).timestamp() + 30, UTC)
        assert await yard.store.release(claim, later)
    assert await yard.to_notify(queue_empty=False) == [back]
    yard.age(31)
    assert resting in await yard.to_notify(queue_empty=False)


async def test_concurrent_sweeps_get_each_job_once(yard: Yard) -> None:
    jobs = {await yard.job() for _ in range(50)}
    yard.age(LOST_AFTER_S)
    announced = [job for some in await asyncio.gather(*(yard.to_notify() for _ in range(5))) for job in some]
    assert len(announced) == 50
    assert set(announced) == jobs


async def test_a_bounded_sweep_takes_the_most_urgent_jobs(yard: Yard) -> None:
    jobs = {priority: await yard.job(priority=priority) for priority in (0, 7, -1)}
    yard.age(LOST_AFTER_S)
    assert set(await take_due(yard.store, queue_empty=True, most=2)) == {jobs[7], jobs[0]}


async def test_a_sweep_notifies_the_broker(yard: Yard, broker_url: str) -> None:
    broker = redis.Redis(unix_socket_path=broker_url.partition("://")[2])
    broker.flushall()
    await yard.job()
    yard.age(LOST_AFTER_S)
    async with Notifier(make_app(broker_url)) as notifier:
        assert await sweep(yard.store, notifier) == 1
        assert await notifier.queue_length() == 1
        yard.age(LOST_AFTER_S)
        assert await sweep(yard.store, notifier) == 0


async def test_without_a_broker_no_job_is_marked_as_announced(yard: Yard, tmp_path: Path) -> None:
    job = await yard.job()
    yard.age(LOST_AFTER_S)
    async with Notifier(make_app(f"redis+socket://{tmp_path}/none.sock")) as notifier:
        assert await sweep(yard.store, notifier) == 0
    assert await yard.to_notify() == [job]
