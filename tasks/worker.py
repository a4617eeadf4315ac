"""A worker process: Celery takes messages, its threads wait, and one event loop does the work."""

from __future__ import annotations

import logging
import os
import signal
import warnings
from typing import TYPE_CHECKING, Any

import structlog
from celery.apps.worker import Worker
from celery.exceptions import SecurityWarning
from celery.signals import setup_logging
from celery.worker import state

from stepladder.tasks.app import RUN_JOB, make_app
from stepladder.tasks.process import WorkerConfig, WorkerProcess

if TYPE_CHECKING:
    from types import FrameType

    from celery import Celery

__all__ = ["WorkerConfig", "work"]

log = structlog.get_logger("stepladder.worker")
_celery_state: Any = state  # its types allow None alone


def work(config: WorkerConfig) -> int:
    """Runs jobs until it is signalled to stop, and returns the exit code. Call it in the main thread.

    A message that Celery did not write ends the process cleanly with exit code 1: start it again.

    On SIGTERM or SIGINT it takes no more messages; every job finishes its current turn, within ``drain_s`` seconds,
    and is released. A second signal ends the process at once; other workers run its jobs when their leases end.

    Raises ``UnreachableError`` if the database or the engine does not answer, ``BadInputError`` for a URL that
    cannot be used or a model that the engine does not serve. It waits for a broker that does not answer.
    """
    app = make_app(config.broker_url)
    setup_logging.connect(_leave_logging_alone)
    _forward_logs()
    with WorkerProcess(config, app) as process:

        @app.task(name=RUN_JOB, typing=False)
        def run_job(*_: object) -> None:
            """Whichever job a message names, the one that comes next is run: see ``models.fair``."""
            process.work()

        worker = _Worker(app, process, config.settings.concurrency)
        worker.start()
    log.info("worker ended")
    return int(worker.exitcode or 0)


class _Worker(Worker):
    """Celery's worker, with our signal handling and logging."""

    def __init__(self, app: Celery, process: WorkerProcess, concurrency: int) -> None:
        self._process = process
        app.conf.worker_concurrency = concurrency
        super().__init__(app=app, quiet=True, without_gossip=True, without_mingle=True, without_heartbeat=True)

    def install_platform_tweaks(self, worker: object) -> None:
        """In place of all of Celery's handlers."""
        del worker
        for signum in (signal.SIGTERM, signal.SIGINT):
            signal.signal(signum, self._on_signal)

    def on_consumer_ready(self, consumer: Any) -> None:
        super().on_consumer_ready(consumer)
        log.info("worker ready", concurrency=self.app.conf.worker_concurrency)

    def stop(self, in_sighandler: bool = False, exitcode: int | None = None) -> None:
        """Celery waits for its threads, and they for whole jobs unless the jobs are drained."""
        self._process.drain()
        super().stop(in_sighandler, exitcode)

    def _on_signal(self, signum: int, _frame: FrameType | None) -> None:
        if self._process.draining:
            os._exit(128 + signum)
        self._process.drain()
        _celery_state.should_stop = os.EX_OK


def _leave_logging_alone(**_: Any) -> None:
    """Celery configures the whole process's logging unless this signal has a listener."""


class _Forward(logging.Handler):
    """Warnings of libraries, Celery above all, in our format."""

    def emit(self, record: logging.LogRecord) -> None:
        structlog.get_logger(record.name).log(record.levelno, record.getMessage(), exc_info=record.exc_info)


def _forward_logs() -> None:
    root = logging.getLogger()
    root.handlers[:] = [_Forward(logging.WARNING)]
    logging.captureWarnings(capture=True)
    warnings.filterwarnings("ignore", category=SecurityWarning)  # of pickle as root; only JSON is accepted here
