"""In which order jobs are taken, and that bounds on jobs in hand hold."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from stepladder.models.database import Database
from stepladder.models.due import AT_A_BOUND_S, take_due
from stepladder.models.fair import MOST, keep_bounds
from stepladder.models.ids import uuid7
from stepladder.models.leases import Renewed
from stepladder.models.records import LeaseStatus, NewJob
from stepladder.models.store import Store
from stepladder.workflows.job import Job
from support.leases import heartbeat, renew

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from uuid import UUID

    from stepladder.models.records import Claim


@dataclass
class Market:
    """Principals with jobs of workflows, by name."""

    database: Database
    store: Store

    async def workflow(self, name: str, version: int = 1, most: int | None = None) -> None:
        limits = {} if most is None else {"limits": {"max_in_flight": most}}
        await self.store.publish(name, version, f"hash {most}", {"name": name, **limits})

    async def jobs(self, principal: str, count: int = 1, *, workflow: str = "w", **words: Any) -> list[UUID]:
        version = words.pop("version", 1)
        ids = [uuid7() for _ in range(count)]
        now = datetime.now(UTC)
        jobs = [Job(job_id, job_id, {}, now, principal=principal) for job_id in ids]
        await self.store.submit_many([NewJob(job, workflow, version, **words) for job in jobs])
        return ids

    async def take(self, most: int = 1, *, lease_s: float = 60.0) -> list[Claim]:
        return await self.store.claim_due("worker", lease_s, most)

    async def names(self, taken: list[Claim], column: str = "principal") -> list[str]:
        rows = await self.rows(f"SELECT id, {column} AS name FROM jobs")  # noqa: S608 -- a name of ours
        name = {row["id"]: row["name"] for row in rows}
        return [name[one.job.id] for one in taken]

    async def taken_one_by_one(self, count: int, column: str = "principal") -> list[str]:
        return [name for _ in range(count) for name in await self.names(await self.take(), column)]

    async def end(self, taken: Claim) -> None:
        done = "status = 'succeeded', finished_at = now(), wake_at = NULL, lease_owner = NULL, lease_until = NULL"
        await self.rows(f"UPDATE jobs SET {done} WHERE id = %(id)s RETURNING id", {"id": taken.job.id})  # noqa: S608

    async def rows(self, statement: str, parameters: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        return await self.database.rows(statement, dict(parameters or {}))


@pytest.fixture
async def market(database_url: str) -> AsyncIterator[Market]:
    async with Database(database_url) as database:
        market = Market(database, Store(database))
        await market.workflow("w")
        yield market


async def test_a_higher_priority_goes_before_all_fairness(market: Market) -> None:
    await market.jobs("flood", 3)
    await market.jobs("other")
    await market.jobs("flood", 2, priority=1)
    assert await market.taken_one_by_one(6) == ["flood", "flood", "other", "flood", "flood", "flood"]


@pytest.mark.parametrize("at_once", [1, 3, 16])
async def test_who_has_fewest_in_hand_goes_first_however_many_wait(market: Market, at_once: int) -> None:
    await market.jobs("flood", 40)
    await market.jobs("small", 4)
    await market.jobs("late", 2)
    counts: Counter[str] = Counter()
    while counts.total() < 12:
        counts.update(await market.names(await market.take(at_once)))
        assert max(counts["flood"] - counts["small"], 0) <= 1 or counts["small"] == 4
    assert counts["small"] == 4
    assert counts["late"] == 2


async def test_of_one_principal_who_waited_longest_goes_first_whatever_the_workflow(market: Market) -> None:
    await market.workflow("v")
    jobs = [(await market.jobs("one", workflow=workflow))[0] for workflow in "wvvw"]
    assert [(await market.take())[0].job.id for _ in jobs] == jobs


async def test_what_one_principal_has_of_many_workflows_displaces_nobody(market: Market) -> None:
    for nth in range(20):
        await market.workflow(f"w{nth}")
        await market.jobs("many", 2, workflow=f"w{nth}")
    await market.jobs("one")
    assert Counter(await market.names(await market.take(2))) == {"many": 1, "one": 1}
    assert await market.take(100) != []


async def test_a_lease_that_is_over_counts_no_more_and_its_job_is_taken_again(market: Market) -> None:
    await market.jobs("a")
    await market.take(lease_s=0.0)
    await market.jobs("b")
    assert sorted(await market.taken_one_by_one(3)) == ["a", "b"]


@pytest.mark.parametrize("most", [0, 1, 5])
async def test_a_workflows_bound_holds_strictly_under_eight_workers_at_once(market: Market, most: int) -> None:
    await market.workflow("bounded", most=most)
    for principal in "abc":
        await market.jobs(principal, 20, workflow="bounded")
    found = [one for some in await asyncio.gather(*(market.take(4) for _ in range(8))) for one in some]
    assert len(found) == most
    for one in found[:2]:
        await market.end(one)
    again = [one for some in await asyncio.gather(*(market.take(4) for _ in range(8))) for one in some]
    assert len(again) == min(most, 2)


async def test_a_principals_bound_holds_strictly_under_eight_workers_at_once(market: Market) -> None:
    await keep_bounds(market.database, {"a": 3, "none": 0}, 2)
    await market.workflow("v")
    for principal in ("a", "b", "none"):
        await market.jobs(principal, 10)
        await market.jobs(principal, 10, workflow="v", priority=1)
    found = [one for some in await asyncio.gather(*(market.take(MOST) for _ in range(8))) for one in some]
    assert Counter(await market.names(found)) == {"a": 3, "b": 2}
    await keep_bounds(market.database, {})
    assert len(await market.take(MOST)) == MOST


async def test_both_bounds_leave_as_many_as_both_allow(market: Market) -> None:
    await market.workflow("bounded", most=3)
    await keep_bounds(market.database, {"a": 2})
    await market.jobs("a", 10, workflow="bounded")
    await market.jobs("a", 10)
    await market.jobs("b", 10, workflow="bounded")
    found: list[Claim] = []
    while some := await market.take(MOST):
        found += some
    assert Counter(await market.names(found))["a"] == 2
    assert Counter(await market.names(found, "workflow"))["bounded"] == 3


async def test_a_workflow_at_its_bound_keeps_nobody_from_other_work(market: Market) -> None:
    await market.workflow("bounded", most=1)
    await market.jobs("a", 100, workflow="bounded")
    [other] = await market.jobs("a")
    assert len(await market.take(2)) == 2
    assert await market.take() == []
    assert (await market.rows("SELECT lease_owner FROM jobs WHERE id = %(id)s", {"id": other}))[0]["lease_owner"]


async def test_the_newest_versions_bound_holds_for_all_versions_until_it_is_retired(market: Market) -> None:
    await market.workflow("bounded", 1, 5)
    await market.jobs("a", 10, workflow="bounded")
    assert len(await market.take(2)) == 2
    await market.workflow("bounded", 2, 3)
    await market.jobs("b", 10, workflow="bounded", version=2)
    assert len(await market.take(MOST)) == 1
    await market.rows("UPDATE workflows SET retired = true WHERE name = 'bounded' AND version = 2 RETURNING name")
    assert len(await market.take(MOST)) == 2
    await market.workflow("bounded", 3)
    assert len(await market.take(MOST)) == MOST - 1


async def test_a_job_that_is_named_is_not_kept_back_but_counts(market: Market) -> None:
    await market.workflow("bounded", most=1)
    jobs = await market.jobs("a", 3, workflow="bounded")
    assert len(await market.take()) == 1
    left = [row["id"] for row in await market.rows("SELECT id FROM jobs WHERE lease_owner IS NULL")]
    claim = await market.store.claim("person", 60.0, left[0])
    assert claim is not None
    assert claim.job.id in jobs
    assert await market.take() == []


async def test_a_job_that_somebody_writes_to_is_passed_over(market: Market, database_url: str) -> None:
    first, second = await market.jobs("a", 2)
    async with await psycopg.AsyncConnection.connect(database_url) as writer:
        await writer.execute("SELECT FROM jobs WHERE id = %s FOR UPDATE", (first,))
        assert {one.job.id for one in await market.take(2)} == {second}


async def test_the_sweep_announces_what_there_is_room_for(market: Market) -> None:
    await market.workflow("bounded", most=3)
    await market.jobs("a", 20, workflow="bounded")
    taken = await market.take(2)
    await market.rows(
        "UPDATE jobs SET notified_at = now() - make_interval(secs => %(s)s) RETURNING id", {"s": AT_A_BOUND_S}
    )
    assert len(await take_due(market.store, queue_empty=True)) == 1
    await market.take(MOST)
    await market.rows("UPDATE jobs SET notified_at = '-infinity' RETURNING id")
    assert await take_due(market.store, queue_empty=True) == []
    await market.end(taken[0])
    assert len(await take_due(market.store, queue_empty=False)) == 1


async def test_many_leases_are_renewed_at_once_and_those_locked_are_not(market: Market, database_url: str) -> None:
    await market.jobs("a", 5)
    claims = await market.take(5, lease_s=1.0)
    lost, locked, cancelled, *held = claims
    assert await market.store.release(lost)
    assert await market.store.request_cancel(cancelled.job.id)
    async with await psycopg.AsyncConnection.connect(database_url) as writer:
        await writer.execute("SELECT FROM jobs WHERE id = %s FOR UPDATE", (locked.job.id,))
        found = renew(market.store, claims, 60.0)
    expected = dict.fromkeys((claim.job.id for claim in held), Renewed(LeaseStatus.HELD, in_time=True))
    assert found == expected | {
        cancelled.job.id: Renewed(LeaseStatus.CANCELLING, in_time=True),
        locked.job.id: Renewed(LeaseStatus.HELD, in_time=False),
    }
    rows = await market.rows("SELECT count(*) AS n FROM jobs WHERE lease_until > now() + interval '30 s'")
    assert rows == [{"n": 3}]


async def test_a_worker_takes_over_lapsed_jobs_but_its_own(market: Market) -> None:
    await market.jobs("a", 3)
    own, other, _ = await market.take(3)
    await market.rows(
        "UPDATE jobs SET lease_until = now() WHERE id = ANY(%(jobs)s) RETURNING id",
        {"jobs": [own.job.id, other.job.id]},
    )
    taken = await market.store.claim_due("w", 60.0, MOST, held=[own.job.id])
    assert [claim.job.id for claim in taken] == [other.job.id]
    assert heartbeat(market.store, own) is LeaseStatus.HELD
