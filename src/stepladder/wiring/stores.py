"""The store and its read service, without an engine."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from stepladder.models.database import Database
from stepladder.models.prices import keep_prices
from stepladder.models.store import Store
from stepladder.queries.reads import Reads

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from stepladder.schemas.prices import Prices


@asynccontextmanager
async def open_database(database_url: str, prices: Prices | None = None) -> AsyncIterator[Database]:
    """Opens the database and records ``prices`` as current; None leaves them unchanged.

    Raises ``UnreachableError`` if there is no database, or its tables are not of the revision needed.
    """
    async with Database(database_url) as database:
        if prices is not None:
            await keep_prices(database, prices)
        yield database


@asynccontextmanager
async def open_store(database_url: str, prices: Prices | None = None) -> AsyncIterator[tuple[Store, Reads]]:
    """As ``open_database``."""
    async with open_database(database_url, prices) as database:
        yield Store(database), Reads(database)
