"""The store and its read service, for all that needs no engine."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from stepladder.models.database import Database
from stepladder.models.reads import Reads
from stepladder.models.store import Store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@asynccontextmanager
async def open_store(database_url: str) -> AsyncIterator[tuple[Store, Reads]]:
    """Raises ``UnreachableError`` where there is no database, or its tables are not those that are needed."""
    async with Database(database_url) as database:
        yield Store(database), Reads(database)
