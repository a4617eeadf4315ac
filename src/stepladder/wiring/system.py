"""From endpoints to working parts: a store, an engine client, and a runner over both."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepladder.engine.client import EngineClient
from stepladder.engine.identity import Identity, identify
from stepladder.models.reads import Reads
from stepladder.models.store import Store
from stepladder.runner.machines import Machines
from stepladder.runner.runner import Runner
from stepladder.runner.sharing import shared_limiter
from stepladder.wiring.stores import open_database

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from stepladder.engine.limiter import ConcurrencyLimiter
    from stepladder.schemas.prices import Prices
    from stepladder.schemas.tool import Kit
    from stepladder.workflows.transition import Transition


@dataclass(frozen=True, slots=True)
class System:
    """What a process that runs jobs is made of."""

    store: Store
    reads: Reads
    engine: EngineClient
    identity: Identity
    runner: Runner
    limiter: ConcurrencyLimiter


@asynccontextmanager
async def open_system(
    database_url: str,
    engine_url: str,
    kit: Kit,
    *,
    api_key: str | None = None,
    model: str | None = None,
    prices: Prices | None = None,
    engine_concurrency: int | None = None,
    observe: Callable[[Transition], None] = lambda _: None,
) -> AsyncIterator[System]:
    """Everything, ready for work. ``prices`` hold from now on, ``observe`` sees every step that is committed.

    ``engine_concurrency`` bounds the requests that all processes together have at the engine at once.

    Raises ``UnreachableError`` for a database or an engine that does not answer, ``BadInputError`` for a model that
    the engine does not serve.
    """
    async with open_database(database_url, prices) as database, EngineClient(engine_url, api_key=api_key) as engine:
        identity = await identify(engine, model=model)
        async with shared_limiter(database, engine.base_url, engine_concurrency) as limiter:
            store = Store(database)
            runner = Runner(store, Machines(store, kit), engine, identity, observe=observe, limiter=limiter)
            yield System(store, Reads(database), engine, identity, runner, limiter)
