"""From server URLs to working parts: a store, and a runner over it and an engine client."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepladder.engine.client import EngineClient
from stepladder.engine.identity import identify
from stepladder.models.store import Store
from stepladder.queries.reads import Reads
from stepladder.runner.machines import Machines
from stepladder.runner.rules import bounded, start
from stepladder.runner.runner import Runner
from stepladder.runner.sharing import shared_limiter
from stepladder.wiring.stores import open_database

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from uuid import UUID

    from stepladder.schemas.tool import Kit
    from stepladder.wiring.settings import Settings
    from stepladder.workflows.transition import Transition


@dataclass(frozen=True, slots=True)
class System:
    """What a process needs to run jobs."""

    store: Store
    reads: Reads
    runner: Runner


@asynccontextmanager
async def open_system(
    database_url: str,
    engine_url: str,
    kit: Kit,
    *,
    settings: Settings | None = None,
    observe: Callable[[Transition], None] = lambda _: None,
    notify: Callable[[Sequence[UUID]], None] = lambda _: None,
) -> AsyncIterator[System]:
    """Everything, ready for work. Of ``settings`` it takes the engine's key and model, prices, and concurrency.

    ``observe`` and ``notify`` are the runner's.

    Raises ``UnreachableError`` for a database or an engine that does not answer, ``BadInputError`` for a model that
    the engine does not serve.
    """
    key = None if settings is None or settings.engine_api_key is None else settings.engine_api_key.get_secret_value()
    model, prices, bound = (
        (None, None, None) if settings is None else (settings.model, settings.prices, settings.engine_concurrency)
    )
    kit = bounded(kit)
    if kit.rules:
        start()
    async with open_database(database_url, prices) as database, EngineClient(engine_url, api_key=key) as engine:
        identity = await identify(engine, model=model)
        async with shared_limiter(database, engine.base_url, bound) as limiter:
            store = Store(database)
            runner = Runner(
                store, Machines(store, kit), engine, identity, observe=observe, notify=notify, limiter=limiter
            )
            yield System(store, Reads(database), runner)
