"""What the store's tests share: a bench that takes jobs through the store as the machine and the runner would."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg.rows import dict_row

from stepladder.models.ids import uuid7
from stepladder.models.records import NewJob, Stamp
from stepladder.models.tables import metadata
from stepladder.schemas.answer import Received, Verdict
from stepladder.schemas.event import EventKind, HistoryEvent
from stepladder.schemas.job import JobStatus
from stepladder.workflows.job import Attempt, Job, Message, Turn
from stepladder.workflows.transition import Ask, Await, Finished, Rest, Transition
from stepladder.workflows.visits import SignalWait, VisitStatus

if TYPE_CHECKING:
    from stepladder.models.records import Claim, PendingAttempt
    from stepladder.models.store import Store
    from stepladder.schemas.answer import Arrival

NOW = datetime(2026, 1, 1, 12, 30, 15, 123456, tzinfo=UTC)
Connect = Callable[[], Awaitable["psycopg.AsyncConnection[dict[str, Any]]"]]


@dataclass
class Bench:
    """One published workflow, and the moves of jobs in it."""

    store: Store
    connect: Connect

    async def submit(self, job: Job | None = None, *, priority: int = 0) -> Job:
        job_id = uuid7()
        job = job or Job(job_id, job_id, {"team": "search"}, NOW, event_count=1)
        await self.store.submit_many([NewJob(job, "usage-bill", 1, priority=priority)])
        return job

    async def claim(self, job: Job, *, owner: str = "worker", lease_s: float = 60.0) -> Claim:
        claim = await self.store.claim(owner, lease_s, job.id)
        assert claim is not None
        return claim

    async def claimed(self, *, lease_s: float = 60.0) -> tuple[Job, Claim]:
        """A new job in a worker's hands."""
        job = await self.submit()
        return job, await self.claim(job, lease_s=lease_s)

    async def asked(self, *, lease_s: float = 60.0) -> tuple[Job, Claim, Attempt]:
        """A new job whose first attempt is in flight."""
        job, claim = await self.claimed(lease_s=lease_s)
        return job, *await self.ask(claim)

    async def pending(self, job: Job) -> PendingAttempt:
        """What the next worker finds of the attempt in flight."""
        pending = (await self.claim(job)).pending
        assert pending is not None
        return pending

    async def commit(self, claim: Claim, step: Transition, **options: Any) -> bool:
        return await self.store.commit(claim, step, Stamp(f"{claim.job.id}", "model", "0.32.0", "xgrammar"), **options)

    async def ask(self, claim: Claim, question: str = "Which team?") -> tuple[Claim, Attempt]:
        """Opens turn 1 with its first attempt."""
        attempt = Attempt(1, 1, 128, {"seed": 7}, history_to=1)
        opened = Turn(1, "usage", NOW, 1, question, "a" * 64)
        step = Transition(
            replace(
                claim.job,
                status=JobStatus.RUNNING,
                state="usage",
                visits=(replace(opened, attempts=(attempt,)),),
                transcript=(Message(1, 0, "system", "Be brief."),),
                event_count=2,
            ),
            Ask(opened, attempt),
            events=(HistoryEvent(2, EventKind.TURN_STARTED, 1, data={"state": "usage"}),),
            visits=(opened,),
            opened=attempt,
            messages=(Message(1, 0, "system", "Be brief."),),
        )
        assert await self.commit(claim, step)
        return replace(claim, job=step.job), attempt

    async def answer(self, claim: Claim, attempt: Attempt, arrival: Arrival | None = None) -> bool:
        return await self.store.arrived(
            claim, attempt, arrival or Received(200, b'{"raw": 1}'), ttft_ms=20.0, duration_ms=120.0
        )

    async def judge(self, claim: Claim, attempt: Attempt, verdict: Verdict) -> Claim:
        """Closes the attempt, and its turn with it."""
        judged = replace(attempt, verdict=verdict)
        turn = claim.job.visits[-1]
        assert isinstance(turn, Turn)
        closed = turn.close(NOW, attempts=(judged,), outcome=verdict.outcome, output=verdict.output)
        job = replace(claim.job, visits=(*claim.job.visits[:-1], closed))
        assert await self.commit(claim, Transition(job, Rest(NOW), visits=(closed,), judged=(judged,)), release=False)
        return replace(claim, job=job)

    def waiting(self, claim: Claim, until: datetime | None = None) -> Transition:
        visit = len(claim.job.visits) + 1
        wait = SignalWait(visit, "approve", NOW, "approval", uuid7(), {"total": 36}, until, status=VisitStatus.WAITING)
        job = replace(
            claim.job,
            status=JobStatus.WAITING,
            state="approve",
            waiting_for="approval",
            visits=(*claim.job.visits, wait),
        )
        return Transition(job, Await(wait), visits=(wait,))

    def finished(self, claim: Claim) -> Transition:
        return Transition(
            replace(claim.job, status=JobStatus.SUCCEEDED, state="done", result={"total": 36}), Finished()
        )

    async def dump(self) -> dict[str, list[str]]:
        """Every row of every table."""
        async with await self.connect() as connection:
            return {
                table.name: sorted(map(repr, await (await connection.execute(str(table.select()))).fetchall()))
                for table in metadata.sorted_tables
            }

    async def rows(self, query: str, *parameters: object) -> list[dict[str, Any]]:
        """On a connection of the test's own."""
        async with await self.connect() as connection:
            return await (await connection.execute(query.encode(), parameters)).fetchall()

    async def row(self, job: Job) -> dict[str, Any]:
        [row] = await self.rows("SELECT *, wake_at <= now() AS due FROM jobs WHERE id = %s", job.id)
        return row

    async def somebody_waits_for_a_lock(self) -> bool:
        query = """
            SELECT count(*) AS n FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock'
        """
        return bool((await self.rows(query))[0]["n"])


@pytest.fixture
def connect(database_url: str) -> Connect:
    """Makes connections of the test's own, each statement its own transaction."""

    async def connect() -> psycopg.AsyncConnection[dict[str, Any]]:
        return await psycopg.AsyncConnection.connect(database_url, autocommit=True, row_factory=dict_row)

    return connect


@pytest.fixture
async def bench(store: Store, connect: Connect) -> Bench:
    await store.publish("usage-bill", 1, "hash", {"name": "usage-bill"})
    return Bench(store, connect)
