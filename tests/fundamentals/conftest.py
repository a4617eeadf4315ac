"""What chapters 5, 6 and 9 need: a running ``stepladder up`` with a scripted engine, and a client for it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stepladder import Client
from stepladder.testing import ScriptedEngine, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepladder.testing import Line

COMMAND = Path(sys.executable).parent / "stepladder"

APP = """
import os
import stepladder

@stepladder.tool("ship", effect="irreversible")
def ship(parcel: str) -> dict:
    with open("ledger.txt", "a") as ledger:
        ledger.write(parcel + "\\n")
    return {"label": "L-1"}
"""


@dataclass
class System:
    """A running ``stepladder up`` in ``folder``. The engine gives ``answers`` in turn, one for each request."""

    client: Client
    engine: ScriptedEngine
    folder: Path
    process: subprocess.Popen[str]
    answers: list[Line] = field(default_factory=list)

    def run(self, workflow: str, value: Any, *answers: Line) -> Any:
        """Submits a job, gives the engine its answers, and waits until the job ends or waits for a signal."""
        self.answers[:] = answers
        return self.settled(self.client.submit(workflow, value))

    def settled(self, job: Any) -> Any:
        """The job once it has ended or waits for a signal."""

        def find() -> Any:
            now = self.client.get(job.id)
            return now if now.status.final or now.waiting_for else None

        return wait_until(find, 60, what="the job has ended or waits")

    def kill_worker(self) -> None:
        """Kills the worker as a machine that fails would; ``up`` starts another one."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        (worker,) = [
            pid for pid in children if " worker" in Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
        ]
        os.kill(int(worker), signal.SIGKILL)

    @property
    def ledger(self) -> list[str]:
        """The parcels that were shipped."""
        path = self.folder / "ledger.txt"
        return path.read_text().split() if path.exists() else []


@pytest.fixture(scope="package")
def running(postgres_server: Any, migrated_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    folder = tmp_path_factory.mktemp("up")
    (folder / "app.py").write_text(APP)
    name = postgres_server.create("fundamentals", template=migrated_template)
    answers: list[Line] = []
    with ScriptedEngine(respond=lambda _: answers.pop(0) if answers else None) as engine:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("STEPLADDER_")} | {
            "STEPLADDER_DATABASE_URL": postgres_server.url_of(name),
            "STEPLADDER_ENGINE_URL": engine.url,
            "STEPLADDER_HOME": str(folder / "home"),
            "STEPLADDER_APP": "app",
        }
        command = [str(COMMAND), "up", "--port", "0", "--json"]
        with (
            (folder / "log.txt").open("w") as log,
            subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=log, text=True) as up,
        ):
            try:
                assert up.stdout is not None
                line = up.stdout.readline()
                assert line, (folder / "log.txt").read_text()
                with Client(json.loads(line)["url"]) as client:
                    yield System(client, engine, folder, up, answers)
            finally:
                up.terminate()
    postgres_server.drop(name)


@pytest.fixture
def system(running: System) -> System:
    """The running system with no answers left over and an empty ledger."""
    running.answers.clear()
    (running.folder / "ledger.txt").unlink(missing_ok=True)
    return running
