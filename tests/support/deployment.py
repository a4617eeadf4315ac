"""A deployment for tests of workers: a database, a broker, an engine, and worker processes at them."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

import psycopg
import redis
from psycopg.rows import dict_row

from stepladder.models.database import Database
from stepladder.models.records import NewJob
from stepladder.models.store import Store
from stepladder.runner.machines import compiled
from stepladder.schemas.actor import LOCAL, Actor
from stepladder.schemas.document import Workflow
from stepladder.schemas.tool import Kit
from stepladder.services.submission import new_job, publish
from stepladder.tasks.app import make_app
from stepladder.tasks.notifier import Notifier
from stepladder.tasks.process import DRAIN_S
from stepladder.testing import wait_until

if TYPE_CHECKING:
    from pathlib import Path
    from uuid import UUID

    from stepladder.testing import Line, RecordedRequest, ScriptedEngine

WORKER = """
import json, sys
from stepladder.schemas.tool import Kit
from stepladder.tasks.worker import WorkerConfig, work
from stepladder.wiring.logs import configure_logs
from stepladder.wiring.settings import Settings

configure_logs("info")
servers, drain_s, settings = json.loads(sys.argv[1])
sys.exit(work(WorkerConfig(*servers, Kit({}, {}), Settings(**settings), drain_s)))
"""
NUMBER = {
    "type": "object",
    "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 999}},
    "required": ["n"],
    "additionalProperties": False,
}
PATIENT_S = 60.0

_versions = itertools.count(1)


def chain(turns: int, **fields: Any) -> Workflow:
    """A workflow that asks ``turns`` times, one after the other."""
    states: dict[str, Any] = {
        f"ask_{turn}": {"ask": f"Number {turn}?", "output": NUMBER, "next": f"ask_{turn + 1}"}
        for turn in range(1, turns + 1)
    }
    states[f"ask_{turns}"]["next"] = "done"
    states["done"] = {"end": "succeeded"}
    head = {"name": "chain", "version": next(_versions), "start": "ask_1"}
    return Workflow.model_validate(head | {"states": states} | fields)


def turn_of(request: RecordedRequest) -> str:
    """Which turn of which job a request is for."""
    return request.headers["x-request-id"].rpartition("-")[0]


@dataclass
class Process:
    """A worker process, and its log."""

    popen: subprocess.Popen[bytes]
    path: Path

    @property
    def log(self) -> list[dict[str, Any]]:
        lines = self.path.read_text(errors="replace").splitlines()
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]

    def has_said(self, event: str) -> bool:
        return any(line["event"].startswith(event) for line in self.log)

    def wait_until_ready(self) -> None:
        wait_until(
            lambda: self.has_said("worker ready") or self.popen.poll() is not None, PATIENT_S, what="a worker is ready"
        )
        assert self.popen.poll() is None, self.path.read_text(errors="replace")

    def end(self, signum: signal.Signals = signal.SIGTERM) -> int:
        self.popen.send_signal(signum)
        return self.popen.wait(PATIENT_S)


@dataclass
class Deployment:
    """A database, a broker and an engine, and any number of workers at them."""

    database_url: str
    broker_url: str
    engine: ScriptedEngine
    folder: Path
    processes: list[Process] = field(default_factory=list)

    @property
    def broker(self) -> redis.Redis:
        return redis.Redis(unix_socket_path=self.broker_url.partition("://")[2])

    def start_worker(self, *, drain_s: float = DRAIN_S, **settings: Any) -> Process:
        servers = [self.database_url, self.broker_url, self.engine.url]
        path = self.folder / f"worker-{len(self.processes) + 1}.log"
        with path.open("wb") as log:
            command = [sys.executable, "-c", WORKER, json.dumps([servers, drain_s, settings])]
            process = Process(subprocess.Popen(command, stdout=log, stderr=log), path)
        self.processes.append(process)
        return process

    async def submit(
        self, workflow: Workflow, count: int = 1, *, principal: str = LOCAL.name, notify: bool = True
    ) -> list[UUID]:
        """Jobs of a workflow, announced unless ``notify`` is false, as if the message was lost."""
        machine = compiled(workflow, Kit({}, {}))
        async with Database(self.database_url) as database, Notifier(make_app(self.broker_url)) as notifier:
            store = Store(database)
            await publish(store, machine)
            now = datetime.now(UTC)
            prepared = [new_job(machine, {}, now, Actor(principal)) for _ in range(count)]
            new = [one for one in prepared if isinstance(one, NewJob)]
            await store.submit_many(new)
            jobs = [one.job.id for one in new]
            if notify:
                assert await notifier.notify(jobs)
        return jobs

    @cached_property
    def connection(self) -> psycopg.Connection[dict[str, Any]]:
        return psycopg.connect(self.database_url, autocommit=True, row_factory=dict_row)

    def rows(self, statement: str, *parameters: object) -> list[dict[str, Any]]:
        cursor = self.connection.execute(statement.encode(), parameters)
        return cursor.fetchall() if cursor.description else []

    def statuses(self) -> set[str]:
        return {row["status"] for row in self.rows("SELECT DISTINCT status FROM jobs")}

    def wait_until_all_succeeded(self) -> None:
        wait_until(lambda: self.statuses() == {"succeeded"}, PATIENT_S, what="every job has succeeded")


def always(line: Line) -> dict[str, Any]:
    """A script of one answer for ever."""
    return {"respond": lambda _: line}
