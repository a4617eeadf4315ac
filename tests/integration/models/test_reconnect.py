"""A database that was away is used again as soon as it is back, also by those who wait for it meanwhile."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from stepladder.models.database import Database
from stepladder.schemas.errors import UnreachableError
from stepladder.testing import eventually

if TYPE_CHECKING:
    import pytest

ONE = "SELECT 1 AS n"


async def test_who_waits_for_a_database_that_is_away_is_served_when_it_is_back(
    own_database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    name = conninfo_to_dict(own_database_url)["dbname"]
    caplog.set_level(logging.WARNING, logger="psycopg.pool")  # which a process of ours quiets
    async with Database(own_database_url, size=3) as database:
        with psycopg.connect(make_conninfo(own_database_url, dbname="postgres"), autocommit=True) as server:
            server.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false'.encode())
            server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))

            async def is_known_to_be_away() -> bool:
                try:
                    await asyncio.wait_for(database.row(ONE, {}), 0.1)
                except (UnreachableError, TimeoutError):
                    return "reconnection attempt" in caplog.text  # the pool itself has given up once
                return False

            await eventually(is_known_to_be_away, 30.0)
            waiting = [asyncio.create_task(database.row(ONE, {})) for _ in range(5)]
            caplog.clear()
            await eventually(lambda: caplog.text.count("reconnection attempt") >= 3, 30.0, what="it is tried again")
            server.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true'.encode())
        assert await asyncio.gather(*waiting) == [{"n": 1}] * 5
