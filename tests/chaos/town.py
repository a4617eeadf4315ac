"""A whole system in processes that can be killed: servers of its own, one ``up``, and workers beside it.

Call it in the main thread alone: the kernel ends a child with the thread that made it.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

import httpx

from chaos import tools
from chaos.proxy import HOST, Proxy
from stepladder.embedded import cluster, valkey
from stepladder.embedded.child import die_with_parent, locked
from stepladder.embedded.runtime import runtime_folder
from stepladder.models import migrate
from stepladder.schemas.errors import UnreachableError
from stepladder.testing import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stepladder.embedded.cluster import Cluster

PATIENT_S = 120.0
AGAIN_AFTER_S = 0.5
"""As an init system would, with its shortest pause."""

CLI = [sys.executable, "-P", "-m", "stepladder.cli.main"]
TESTS = Path(__file__).parents[1]
OUTSIDE = {name: value for name, value in os.environ.items() if not name.startswith("STEPLADDER_")}


def free_port() -> int:
    with socket.create_server((HOST, 0)) as probe:
        return int(probe.getsockname()[1])


@dataclass
class Service:
    """A program that is started again whenever it has ended."""

    name: str
    command: list[str]
    variables: Mapping[str, str]
    log: Path
    process: subprocess.Popen[bytes] | None = None
    starts: int = 0
    ended_at: float = 0.0

    def tend(self) -> None:
        """Starts it if it does not run, a moment after its end."""
        if self.running or (self.process is not None and time.monotonic() < self.ended_at + AGAIN_AFTER_S):
            return
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command,
                env={**OUTSIDE, **self.variables},
                cwd=TESTS,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=lambda: die_with_parent(signal.SIGKILL),
            )
        self.starts += 1

    @property
    def running(self) -> bool:
        if self.process is None:
            return False
        if self.process.poll() is None:
            return True
        self.ended_at = self.ended_at or time.monotonic()
        return False

    @property
    def pid(self) -> int | None:
        return self.process.pid if self.process is not None and self.running else None

    def send(self, signum: signal.Signals) -> None:
        if self.pid is not None:
            os.kill(self.pid, signum)
        self.ended_at = 0.0

    def end(self, within_s: float) -> int | None:
        """Asks it to end; its exit code, or None where it had to be killed."""
        if self.process is None:
            return 0
        self.send(signal.SIGTERM)
        try:
            return self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None


@dataclass
class Postgres:
    """PostgreSQL at one address, however often it is killed. What it has said to be written is written."""

    cluster: Cluster
    alive: Path
    server: subprocess.Popen[bytes] | None = None
    stack: ExitStack = field(default_factory=ExitStack)

    def start(self) -> None:
        for left in self.cluster.runtime.iterdir():
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        lock = self.stack.enter_context(locked(self.alive, timeout_s=PATIENT_S))  # the last one's processes are gone
        self.server = self.cluster.start(lock)

    def stop(self, signum: signal.Signals) -> None:
        """SIGINT: breaks every connection, and ends in good order. SIGQUIT and SIGKILL: at once."""
        if self.server is not None:
            self.server.send_signal(signum)
            self.server.wait(PATIENT_S)
            self.stack.close()


class Town:
    """``with Town(folder, seed) as town``: all of it runs, and is gone behind the block."""

    def __init__(self, folder: Path, seed: int, workers: int = 2) -> None:
        self.folder = folder
        self.ledger = folder / "ledger.jsonl"
        self.engine_log = folder / "engine.jsonl"
        self._stack = ExitStack()
        self._seed = seed
        self._workers = workers
        self.frozen: set[int] = set()
        """The processes that are stopped for a while, and may yet do what they were about to do."""

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._start(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _start(self, stack: ExitStack) -> None:
        runtime = runtime_folder()
        stack.callback(shutil.rmtree, runtime, ignore_errors=True)
        (self.folder / "postgres").mkdir()
        log = stack.enter_context((self.folder / "postgres.log").open("ab"))
        self.postgres = Postgres(
            cluster.Cluster(self.folder / "postgres", runtime / "p", log), self.folder / "postgres" / "alive.lock"
        )
        (runtime / "p").mkdir()
        runtime.chmod(0o711)
        self.postgres.start()
        stack.callback(self.postgres.stop, signal.SIGINT)
        self.database_url = self.postgres.cluster.url
        migrate.upgrade(self.database_url)
        self.broker_path = runtime / "valkey.sock"
        self.valkey = self._service(
            "valkey", [str(valkey.program()), "--port", "0", "--save", "", "--unixsocket", str(self.broker_path)], {}
        )
        engine_port = free_port()
        self.engine = self._service(
            "engine",
            [sys.executable, "-m", "chaos.engine", str(engine_port), str(self.engine_log), str(self._seed)],
            {"PYTHONPATH": os.pathsep.join([str(TESTS), *OUTSIDE.get("PYTHONPATH", "").split(os.pathsep)])},
        )
        self.proxy = stack.enter_context(Proxy(engine_port))
        self.url = f"http://{HOST}:{free_port()}"
        variables = {
            tools.LEDGER: str(self.ledger),
            "STEPLADDER_DATABASE_URL": self.database_url,
            "STEPLADDER_BROKER_URL": self.broker_url,
            "STEPLADDER_ENGINE_URL": self.proxy.url,
            "STEPLADDER_HOME": str(self.folder / "home"),
            "STEPLADDER_APP": str(TESTS / "chaos" / "tools.py"),
        }
        up = [*CLI, "up", "--port", self.url.rpartition(":")[2]]
        self.up = self._service("up", up, variables)
        self.workers = [self._service(f"worker-{n + 1}", [*CLI, "worker"], variables) for n in range(self._workers)]
        self.services = [self.valkey, self.engine, self.up, *self.workers]
        stack.callback(self._kill_all)
        if not self.wait(PATIENT_S, self._is_ready):
            raise UnreachableError(
                f"the town was not ready within {PATIENT_S:g} s", remedy=f"see the logs in {self.folder}"
            )

    def _is_ready(self) -> bool:
        with suppress(httpx.TransportError):
            return (
                bool(httpx.get(f"{self.url}/readyz", trust_env=False).is_success)
                and len(self.worker_pids()) > self._workers
            )
        return False

    def _service(self, name: str, command: list[str], variables: Mapping[str, str]) -> Service:
        return Service(name, command, variables, self.folder / f"{name}.log")

    @property
    def broker_url(self) -> str:
        return f"redis+socket://{self.broker_path}"

    def tend(self) -> None:
        """Starts again what has ended."""
        for service in self.services:
            service.tend()

    def wait(self, seconds: float, until: Callable[[], bool] = lambda: False) -> bool:
        """Lets time pass, and starts again what ends meanwhile. True if ``until`` came true before."""
        end = time.monotonic() + seconds
        while not until():
            if time.monotonic() >= end:
                return False
            self.tend()
            time.sleep(0.05)
        return True

    def worker_pids(self) -> list[int]:
        """All workers that run at the moment, that of ``up`` included."""
        own = [worker.pid for worker in self.workers if worker.pid is not None]
        return own + self.children_of_up("worker")

    def children_of_up(self, name: str) -> list[int]:
        return [pid for pid, parent, command in processes() if parent == self.up.pid and f"main {name}" in command]

    def end_in_good_order(self, within_s: float = 40.0) -> dict[str, int | None]:
        """The exit codes of ``up`` and of the workers after SIGTERM; None for one that had to be killed."""
        return {service.name: service.end(within_s) for service in (self.up, *self.workers)}

    def _kill_all(self) -> None:
        for pid in self.frozen:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        for service in self.services:
            service.send(signal.SIGKILL)
            if service.process is not None:
                service.process.wait()
        wait_until(
            lambda: not any("chaos/tools.py" in environment_of(pid, self) for pid, _, _ in processes()), PATIENT_S
        )


def environment_of(pid: int, town: Town) -> str:
    with suppress(OSError):
        text = Path(f"/proc/{pid}/environ").read_text(errors="replace")
        return text if str(town.ledger) in text else ""
    return ""


def processes() -> list[tuple[int, int, str]]:
    """Id, parent and command of all that run; the dead that nobody has collected do not count."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError, ValueError):
                state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if state != "Z":
                    found.append((int(folder.name), int(parent), command))
    return found
