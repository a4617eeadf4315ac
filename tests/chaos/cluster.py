"""A whole system as processes that can be killed: its own servers, one ``up``, and more workers.

Use it in the main thread only: the kernel ends a child with the thread that started it.
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
from stepladder.embedded.home import runtime_folder
from stepladder.models import migrate
from stepladder.schemas.errors import UnreachableError
from stepladder.testing import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stepladder.embedded.cluster import Cluster

TIMEOUT_S = 120.0
RESTART_AFTER_S = 0.5

CLI = [sys.executable, "-P", "-m", "stepladder.cli.main"]
TESTS = Path(__file__).parents[1]
OUTSIDE = {name: value for name, value in os.environ.items() if not name.startswith("STEPLADDER_")}


def free_port() -> int:
    with socket.create_server((HOST, 0)) as probe:
        return int(probe.getsockname()[1])


@dataclass
class Service:
    """A program that is restarted whenever it ends."""

    name: str
    command: list[str]
    variables: Mapping[str, str]
    log: Path
    process: subprocess.Popen[bytes] | None = None
    starts: int = 0
    ended_at: float = 0.0

    def restart_ended(self) -> None:
        """Starts it unless it runs or has just ended."""
        if self.running or (self.process is not None and time.monotonic() < self.ended_at + RESTART_AFTER_S):
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
        """Sends SIGTERM. Returns the exit code, or None if it had to be killed."""
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
    """PostgreSQL at one address across restarts, with fsync on."""

    cluster: Cluster
    alive: Path
    server: subprocess.Popen[bytes] | None = None
    stack: ExitStack = field(default_factory=ExitStack)

    def start(self) -> None:
        for left in self.cluster.runtime.iterdir():
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        lock = self.stack.enter_context(
            locked(self.alive, timeout_s=TIMEOUT_S)
        )  # the previous server's processes have ended
        self.server = self.cluster.start(lock)

    def stop(self, signum: signal.Signals) -> None:
        """SIGINT: fast shutdown. SIGQUIT: immediate shutdown."""
        if self.server is not None:
            self.server.send_signal(signum)
            self.server.wait(TIMEOUT_S)
            self.stack.close()


class System:
    """``with System(folder, seed) as system``: everything runs inside the block and is killed after it."""

    def __init__(self, folder: Path, seed: int, workers: int = 2) -> None:
        self.folder = folder
        self.ledger = folder / "ledger.jsonl"
        self.engine_log = folder / "engine.jsonl"
        self._stack = ExitStack()
        self._seed = seed
        self._workers = workers
        self.frozen: set[int] = set()
        """Processes stopped by SIGSTOP, which will continue later."""

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
        if not self.wait(TIMEOUT_S, self._is_ready):
            raise UnreachableError(
                f"the system was not ready within {TIMEOUT_S:g} s", remedy=f"see the logs in {self.folder}"
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

    def restart_ended(self) -> None:
        """Restarts services that have ended."""
        for service in self.services:
            service.restart_ended()

    def wait(self, seconds: float, until: Callable[[], bool] = lambda: False) -> bool:
        """Waits, restarting services that end. Returns whether ``until`` became true in time."""
        end = time.monotonic() + seconds
        while not until():
            if time.monotonic() >= end:
                return False
            self.restart_ended()
            time.sleep(0.05)
        return True

    def worker_pids(self) -> list[int]:
        """The workers that run now, including the one of ``up``."""
        own = [worker.pid for worker in self.workers if worker.pid is not None]
        return own + self.children_of_up("worker")

    def children_of_up(self, name: str) -> list[int]:
        return [pid for pid, parent, command in processes() if parent == self.up.pid and f"main {name}" in command]

    def shut_down(self, within_s: float = 40.0) -> dict[str, int | None]:
        """The exit codes of ``up`` and the workers after SIGTERM; None for one that had to be killed."""
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
            lambda: not any("chaos/tools.py" in environment_of(pid, self) for pid, _, _ in processes()), TIMEOUT_S
        )


def environment_of(pid: int, system: System) -> str:
    with suppress(OSError):
        text = Path(f"/proc/{pid}/environ").read_text(errors="replace")
        return text if str(system.ledger) in text else ""
    return ""


def processes() -> list[tuple[int, int, str]]:
    """Id, parent and command of all running processes, without zombies."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError, ValueError):
                state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if state != "Z":
                    found.append((int(folder.name), int(parent), command))
    return found
