"""From endpoints to working parts: a store, an engine client, and a runner over both."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepladder.engine.client import EngineClient
from stepladder.engine.identity import Identity, identify
from stepladder.runner.machines import Machines
from stepladder.runner.runner import Runner
from stepladder.wiring.stores import open_store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from stepladder.models.reads import Reads
    from stepladder.models.store import Store
    from stepladder.schemas.tool import Kit
    from stepladder.workflows.step import Step


@dataclass(frozen=True, slots=True)
class System:
    """What a process that runs jobs is made of."""

    store: Store
    reads: Reads
    engine: EngineClient
    identity: Identity
    runner: Runner


@asynccontextmanager
async def open_system(
    database_url: str,
    engine_url: str,
    kit: Kit,
    *,
    api_key: str | None = None,
    model: str | None = None,
    observe: Callable[[Step], None] = lambda _: None,
) -> AsyncIterator[System]:
    """Everything, ready for work. ``observe`` sees every step that is committed.

    Raises ``UnreachableError`` for a database or an engine that does not answer, ``BadInputError`` for a model that
    the engine does not serve.
    """
    async with open_store(database_url) as (store, reads), EngineClient(engine_url, api_key=api_key) as engine:
        identity = await identify(engine, model=model)
        runner = Runner(store, Machines(store, kit), engine, identity, observe=observe)
        yield System(store, reads, engine, identity, runner)
