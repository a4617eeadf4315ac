"""The database goes away while jobs run, and comes back: an answer that arrived meanwhile is not lost."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from stepladder.runner.runner import SliceEnd
from stepladder.schemas.errors import UnreachableError
from stepladder.testing import Answer, eventually

from .conftest import asking

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .conftest import Open, Works

ASK = {"only": asking()}


@contextmanager
def away(w: Works) -> Iterator[None]:
    """No session is left in the database, and none is let in, until the block is left."""
    name = conninfo_to_dict(w.database_url)["dbname"]
    with psycopg.connect(make_conninfo(w.database_url, dbname="postgres"), autocommit=True) as connection:
        connection.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false'.encode())
        try:
            connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))
            yield
        finally:
            connection.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true'.encode())


@pytest.mark.parametrize("lease_s", [60.0, 0.3], ids=["within its lease", "when its lease is over"])
async def test_an_answer_is_stored_once_the_database_is_back(works: Open, lease_s: float) -> None:
    w = await works(Answer({"n": 1}, delay_s=0.2))
    job = await w.submit(ASK)
    worker = asyncio.create_task(w.runner(lease_s=lease_s).run_slice(job))
    await eventually(lambda: w.engine.in_flight == 1, what="the request is on its way")
    with away(w):
        await eventually(lambda: w.engine.in_flight == 0, what="the engine has answered")
        if lease_s < 1:
            with suppress(UnreachableError):
                assert (await worker).end is SliceEnd.LOST

    async def stored() -> bool:
        return bool(await w.rows("SELECT id FROM attempts WHERE job_id = %s AND arrived_at IS NOT NULL", job))

    await eventually(stored, 30.0, what="the answer is stored")
    with suppress(UnreachableError):  # another connection of the pool may be a broken one yet
        await worker
    if (await w.rows("SELECT lease_owner FROM jobs WHERE id = %s", job))[0]["lease_owner"]:
        await w.expire_lease(job)
    await w.drive(job)
    assert await w.outcomes(job) == [("valid", None)]
    assert len(w.engine.requests) == 1


async def test_a_job_whose_worker_met_a_broken_connection_is_due_at_once(works: Open) -> None:
    w = await works({"n": 1})
    job = await w.submit(ASK)

    def breaks(_: object) -> None:
        raise UnreachableError("the connection broke")

    with pytest.raises(UnreachableError):
        await w.runner(observe=breaks).run_slice(job)
    [row] = await w.rows("SELECT lease_owner, wake_at <= now() AS due FROM jobs WHERE id = %s", job)
    assert row == {"lease_owner": None, "due": True}
