"""A worker process: Celery takes messages, its threads wait, and one loop does the work."""

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
_celery_state: Any = state  # its types know None alone


def work(config: WorkerConfig) -> int:
    """Takes jobs until it is told to end; call it in the main thread. Gives the exit code.

    A message that no Celery has made ends the process with 1, in good order: start it again.

    SIGTERM or SIGINT: no more messages are taken, every job ends after the turn that it is at, within ``drain_s``
    seconds, and is handed back. A second signal ends the process at once; its jobs go on elsewhere when their leases
    are over.

    Raises ``UnreachableError`` where the database or the engine does not answer, ``BadInputError`` for a URL that
    cannot be used or a model that the engine does not serve. A broker that does not answer is waited for.
    """
    app = make_app(config.broker_url)
    setup_logging.connect(_leave_logging_alone)
    _forward_logs()
    with WorkerProcess(config, app) as process:
        _register(app, process)
        worker = _Worker(app, process, config.concurrency)
        worker.start()
    log.info("worker ended")
    return int(worker.exitcode or 0)


def _register(app: Celery, process: WorkerProcess) -> None:
    @app.task(name=RUN_JOB, typing=False)
    def run_job(*_: object) -> None:
        """Whichever job a message speaks of, the one that comes next is taken: see ``models.fair``."""
        process.work()


class _Worker(Worker):
    """Celery's, with signals that mean the jobs, and with our words."""

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
        """However it came about: Celery waits for its threads, and they for whole jobs unless the slices are ended."""
        self._process.end()
        super().stop(in_sighandler, exitcode)

    def _on_signal(self, signum: int, _frame: FrameType | None) -> None:
        if self._process.ending:
            os._exit(128 + signum)
        self._process.end()
        _celery_state.should_stop = os.EX_OK


def _leave_logging_alone(**_: Any) -> None:
    """Celery sets up the whole process's logging unless somebody listens to this signal."""


class _Forward(logging.Handler):
    """What libraries warn of, Celery above all, in our form."""

    def emit(self, record: logging.LogRecord) -> None:
        structlog.get_logger(record.name).log(record.levelno, record.getMessage(), exc_info=record.exc_info)


def _forward_logs() -> None:
    root = logging.getLogger()
    root.handlers[:] = [_Forward(logging.WARNING)]
    logging.captureWarnings(capture=True)
    warnings.filterwarnings("ignore", category=SecurityWarning)  # of pickle as root; only JSON is taken in here
