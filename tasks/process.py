"""A worker process's one asyncio loop, in a thread of its own, and what runs in it: slices, heartbeats, the sweep."""

from __future__ import annotations

import asyncio
import os
import threading
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import structlog

from stepladder.models.retention import Ages
from stepladder.runner.machines import Machines
from stepladder.runner.runner import Runner
from stepladder.tasks.bulks import hand_out_bulks
from stepladder.tasks.executor import JobExecutor
from stepladder.tasks.notifier import Notifier
from stepladder.tasks.retention import keep_retaining
from stepladder.tasks.sweep import sweep
from stepladder.wiring.system import open_system

if TYPE_CHECKING:
    from types import TracebackType

    from celery import Celery

    from stepladder.schemas.prices import Prices
    from stepladder.schemas.tool import Kit

log = structlog.get_logger("stepladder.worker")

CONCURRENCY = 400
"""Jobs that one worker holds at once. An engine on one H100 wants 128 to 400 turns in flight."""

DRAIN_S = 10.0
_CLOSE_S = 5.0


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """What a worker is given: its servers, the user's tools and rules, how many jobs at once, how long an end takes."""

    database_url: str = field(repr=False)
    broker_url: str = field(repr=False)
    engine_url: str
    kit: Kit
    api_key: str | None = field(default=None, repr=False)
    model: str | None = None
    prices: Prices | None = None
    engine_concurrency: int | None = None
    concurrency: int = CONCURRENCY
    drain_s: float = DRAIN_S
    ages: Ages = field(default_factory=Ages)


class WorkerProcess:
    """``with WorkerProcess(config, app) as process`` opens everything; ``process.work`` may be called by any thread.

    Entering raises what ``open_system`` raises. Leaving ends the slices first, and then closes everything.
    """

    def __init__(self, config: WorkerConfig, app: Celery) -> None:
        self._config = config
        self._app = app
        self._executor = JobExecutor(config.concurrency)
        self._ready: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, name="process", daemon=True)
        self.ending = False

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()
        self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join(self._config.drain_s + _CLOSE_S)
        if self._thread.is_alive():  # the interpreter would wait for that thread without end
            log.error("a tool still runs, and is left behind with the process")
            os._exit(1)

    def work(self) -> None:
        """Slices of the jobs that come next, in the loop; returns when none is due. Never raises because of a job."""
        asyncio.run_coroutine_threadsafe(self._executor.run(self._runner), self._loop).result()

    def end(self) -> None:
        """Begins to end the slices and returns at once; for a signal handler, too."""
        self.ending = True
        self._loop.call_soon_threadsafe(self._ending.set)

    def _run(self) -> None:
        try:
            asyncio.run(self._live())
        except BaseException as error:  # whoever waits for this thread must learn of it
            if not self._ready.done():
                self._ready.set_exception(error)
            else:
                log.exception("the worker's loop has ended")
                os._exit(1)  # its jobs go on in other workers as soon as their leases are over

    async def _live(self) -> None:
        config = self._config
        self._loop = asyncio.get_running_loop()
        self._ending, self._closing = asyncio.Event(), asyncio.Event()
        async with (
            open_system(
                config.database_url,
                config.engine_url,
                config.kit,
                api_key=config.api_key,
                model=config.model,
                prices=config.prices,
                engine_concurrency=config.engine_concurrency,
            ) as system,
            Notifier(self._app) as notifier,
        ):
            self._runner = Runner(
                system.store,
                Machines(system.store, config.kit),
                system.engine,
                system.identity,
                is_over=self._executor.is_over,
                notify=notifier.notify_soon,
                limiter=system.limiter,
            )
            sweeping = asyncio.create_task(sweep(system.store, notifier))
            handing = asyncio.create_task(hand_out_bulks(system.store, Machines(system.store, config.kit), notifier))
            retaining = asyncio.create_task(keep_retaining(system.store.database, config.ages))
            self._ready.set_result(None)
            await self._ending.wait()
            sweeping.cancel()
            handing.cancel()
            retaining.cancel()
            await self._executor.end(config.drain_s)
            await self._closing.wait()  # until then messages still come, and find that the executor is over
