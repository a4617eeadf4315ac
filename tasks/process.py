"""A worker process's event loop, in a dedicated thread, and what runs in it: jobs, heartbeats, housekeeping."""

from __future__ import annotations

import asyncio
import os
import threading
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import structlog

from stepladder.models.retention import Ages
from stepladder.runner.claimer import Claimer
from stepladder.services.replays import Replays
from stepladder.tasks import housekeeping
from stepladder.tasks.executor import JobExecutor
from stepladder.tasks.housekeeping import repeat
from stepladder.tasks.notifier import Notifier
from stepladder.wiring.system import open_system

if TYPE_CHECKING:
    from types import TracebackType

    from celery import Celery

    from stepladder.schemas.tool import Kit
    from stepladder.wiring.settings import Settings
    from stepladder.wiring.system import System

log = structlog.get_logger("stepladder.worker")

DRAIN_S = 10.0
_CLOSE_S = 5.0


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """A worker's servers, the user's tools and rules, its settings, and the seconds that draining may take."""

    database_url: str = field(repr=False)
    broker_url: str = field(repr=False)
    engine_url: str
    kit: Kit
    settings: Settings
    drain_s: float = DRAIN_S


class WorkerProcess:
    """``with WorkerProcess(config, app) as process`` opens everything; any thread may call ``process.work``.

    Entering raises what ``open_system`` raises. Leaving drains the jobs first, and then closes everything.
    """

    def __init__(self, config: WorkerConfig, app: Celery) -> None:
        self._config = config
        self._app = app
        self._ready: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, name="worker loop", daemon=True)
        self.draining = False

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.drain()
        self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join(self._config.drain_s + _CLOSE_S)
        if self._thread.is_alive():  # the interpreter would wait for that thread without end
            log.error("a tool is still running; the process ends without it")
            os._exit(1)

    def work(self) -> None:
        """Runs the jobs that come next, in the loop, until none is due. Never raises because of a job."""
        asyncio.run_coroutine_threadsafe(self._executor.run(), self._loop).result()

    def drain(self) -> None:
        """Begins to drain the jobs and returns at once; safe in a signal handler."""
        self.draining = True
        self._loop.call_soon_threadsafe(self._draining.set)

    def _run(self) -> None:
        try:
            asyncio.run(self._live())
        except BaseException as error:  # the main thread waits for this one, and must learn of it
            if not self._ready.done():
                self._ready.set_exception(error)
            else:
                log.exception("the worker's loop ended")
                os._exit(1)  # other workers run its jobs as soon as their leases end

    async def _live(self) -> None:
        config, settings = self._config, self._config.settings
        self._loop = asyncio.get_running_loop()
        self._draining, self._closing = asyncio.Event(), asyncio.Event()
        async with (
            Notifier(self._app) as notifier,
            open_system(
                config.database_url, config.engine_url, config.kit, settings=settings, notify=notifier.notify_soon
            ) as system,
        ):
            runner = system.runner
            claimer = Claimer(system.store, runner.owner, runner.lease_s, runner.held)
            self._executor = JobExecutor(runner, claimer, settings.concurrency)
            chores = _start_chores(system, notifier, Ages.of_days(settings.keep_raw_days, settings.keep_events_days))
            self._ready.set_result(None)
            await self._draining.wait()
            for chore in chores:
                chore.cancel()
            await self._executor.drain(config.drain_s)
            await self._closing.wait()  # until then messages still come, and find that the executor drains


def _start_chores(system: System, notifier: Notifier, ages: Ages) -> list[asyncio.Task[None]]:
    store, database = system.store, system.store.database
    replays = Replays(database, store, system.runner.machines)

    async def sweep() -> None:
        await housekeeping.sweep(store, notifier)

    async def start_replays() -> None:
        await housekeeping.start_replays(store, replays, notifier)

    async def remove_old() -> float | None:
        return await housekeeping.remove_old(database, ages)

    chores = [repeat(sweep, housekeeping.SWEEP_S, "sweep"), repeat(start_replays, housekeeping.REPLAYS_S, "replays")]
    if not ages.endless:
        chores.append(repeat(remove_old, housekeeping.RETENTION_S, "retention"))
    return [asyncio.create_task(chore) for chore in chores]
