"""PostgreSQL: one pool of connections per process, and the errors when it cannot be reached."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from stepladder.models.revision import REVISION
from stepladder.schemas.errors import BadInputError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from datetime import datetime
    from types import TracebackType

Connection: TypeAlias = "psycopg.AsyncConnection[dict[str, Any]]"

POOL_SIZE = 10
"""Statements are short and none is held while an engine thinks, so that few connections serve hundreds of turns."""

WAIT_S = 30.0
CONNECT_TIMEOUT_S = 10
RECONNECT_S = 0.25
"""Between two tries of a pool to connect again. The pool's own pauses double from one second on, and a server that is
back after three would be missed for eight: longer than any lease."""

SETTINGS: dict[str, Any] = {"connect_timeout": CONNECT_TIMEOUT_S, "application_name": "stepladder"}


def place(url: str) -> str:
    """A URL's host, port, database and user, for people, and never the password.

    Raises ``BadInputError`` unless it is a PostgreSQL URL.
    """
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError:  # its message may quote the URL, password and all
        raise BadInputError(
            "The database URL cannot be read.",
            remedy="Write STEPLADDER_DATABASE_URL as postgresql://USER:PASSWORD@HOST:PORT/DATABASE.",
        ) from None
    host, port = parts.get("host") or "this machine", parts.get("port")
    user = f" as {parts['user']}" if parts.get("user") else ""
    return f"PostgreSQL at {host}{f':{port}' if port else ''}, database {parts.get('dbname') or '(default)'}{user}"


@contextmanager
def reaching(url: str) -> Iterator[None]:
    """Turns a broken connection into an ``UnreachableError`` that says where it led and what to do."""
    try:
        yield
    except (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout) as error:
        where = place(url)  # only now: libpq's parsing would cost a tenth of a worker's time
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        password = conninfo_to_dict(url).get("password")
        if password:
            reason = reason.replace(str(password), "***")
        raise UnreachableError(
            f"{where} cannot be used: {reason}",
            remedy="Check that the server runs, and that STEPLADDER_DATABASE_URL names its host, database, user and"
            " password.",
        ) from None


class Database:
    """A pool of connections to a migrated database. Open it in the loop that uses it: ``async with Database(url)``.

    Every statement is a separate transaction, and waits ``wait_s`` seconds at most for one of ``size`` connections,
    of which there are two or more. Raises ``BadInputError`` for a URL that cannot be read.
    """

    def __init__(self, url: str, *, size: int = POOL_SIZE, wait_s: float = WAIT_S) -> None:
        self.url = url
        self.place = place(url)
        self._wait_s = wait_s
        self._pool = self._pool_of(size - 1, min_size=1)
        # Heartbeats do not queue behind hundreds of other statements. It connects when it is first used.
        self._vital = self._pool_of(1, min_size=0)

    def _pool_of(self, size: int, *, min_size: int) -> AsyncConnectionPool[Connection]:
        return AsyncConnectionPool(
            self.url,
            kwargs={**SETTINGS, "autocommit": True, "row_factory": dict_row},
            configure=_configure,
            min_size=min_size,
            max_size=size,
            timeout=self._wait_s,
            reconnect_timeout=RECONNECT_S,
            reconnect_failed=_reconnect,
            open=False,
            name="stepladder",
        )

    def __repr__(self) -> str:
        return f"Database({self.place!r})"

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def open(self) -> None:
        """Raises ``UnreachableError`` if no server answers, the password is wrong, or the revision is another."""
        # A separate connection first: the pool would retry, and report only a timeout.
        with reaching(self.url):
            async with await psycopg.AsyncConnection.connect(self.url, autocommit=True, **SETTINGS) as connection:
                found = await _revision(connection)
        if found != REVISION:
            state = "has no tables yet" if found is None else f"has the tables of revision {found}"
            raise UnreachableError(
                f"{self.place} {state}, and this Stepladder needs revision {REVISION}.",
                remedy="Run `stepladder migrate`, with the newest Stepladder that uses this database.",
            )
        with reaching(self.url):
            await self._pool.open(wait=True, timeout=CONNECT_TIMEOUT_S)
            await self._vital.open()

    async def close(self) -> None:
        await self._pool.close()
        await self._vital.close()

    @asynccontextmanager
    async def connection(self, *, vital: bool = False) -> AsyncIterator[Connection]:
        """A connection, for a statement or two. Raises ``UnreachableError`` when it breaks.

        There is one for ``vital`` statements, such as renewals of shares: short, and waiting for no lock for long.
        """
        with reaching(self.url):
            async with (self._vital if vital else self._pool).connection() as connection:
                yield connection

    async def row(self, statement: str, parameters: dict[str, Any]) -> dict[str, Any] | None:
        """The first row that a statement gives."""
        async with self.connection() as connection:
            return await (await connection.execute(statement, parameters)).fetchone()

    async def rows(self, statement: str, parameters: dict[str, Any], *, vital: bool = False) -> list[dict[str, Any]]:
        async with self.connection(vital=vital) as connection:
            return await (await connection.execute(statement, parameters)).fetchall()

    async def locked(
        self, lock: int, statement: str, parameters: dict[str, Any], *, vital: bool = False
    ) -> list[dict[str, Any]]:
        """The rows of a statement that begins once this transaction has the advisory lock, and sees what others did
        under it. All is sent in one go: no lock waits for this process.
        """
        async with self.connection(vital=vital) as connection:
            async with connection.pipeline():
                await connection.execute("BEGIN")
                await connection.execute("SELECT pg_advisory_xact_lock(%(lock)s::bigint)", {"lock": lock})
                cursor = await connection.execute(statement, parameters)
                await connection.execute("COMMIT")
            return await cursor.fetchall()

    async def now(self) -> datetime:
        """The database's time, which every time that is stored or compared comes from."""
        async with self.connection() as connection:
            row = await (await connection.execute("SELECT now()")).fetchone()
        if row is None:
            raise LookupError("SELECT now() gave no row")
        at: datetime = row["now"]
        return at

    async def write(self, statement: str, parameters: dict[str, Any]) -> int:
        """The number of rows that a statement without an answer wrote."""
        async with self.connection() as connection:
            return (await connection.execute(statement, parameters)).rowcount


async def _reconnect(pool: AsyncConnectionPool[Any]) -> None:
    """Without it, a pool that has given up connects again only for a new caller, and those waiting are never served."""
    await asyncio.sleep(RECONNECT_S)
    await pool.check()


async def _configure(connection: Connection) -> None:
    await connection.execute("SET TIME ZONE 'UTC'")


async def _revision(connection: psycopg.AsyncConnection[Any]) -> str | None:
    found = await (await connection.execute("SELECT to_regclass('alembic_version')")).fetchone()
    if found is None or found[0] is None:
        return None
    row = await (await connection.execute("SELECT version_num FROM alembic_version")).fetchone()
    return None if row is None else str(row[0])
