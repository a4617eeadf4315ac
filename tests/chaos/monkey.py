"""The chaos monkey: a seed determines which fault comes when; its target is chosen among what runs then."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import psycopg
import redis

from chaos.seeded import seeded_random
from stepladder.tasks.app import make_app
from stepladder.tasks.notifier import Notifier

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime
    from uuid import UUID

    from chaos.cluster import System

FAULTS = {
    "kill_worker": "SIGKILL of one worker",
    "kill_all_workers": "SIGKILL of all workers",
    "kill_api": "SIGKILL of the API",
    "kill_up": "SIGKILL of `up`, which ends its worker and API",
    "freeze_worker": "SIGSTOP of a worker for two leases, and SIGCONT",
    "term_worker": "SIGTERM of a worker",
    "flush_valkey": "Valkey flushed",
    "restart_valkey": "Valkey restarted",
    "kill_valkey": "SIGKILL of Valkey",
    "restart_postgres": "PostgreSQL restarted",
    "kill_postgres": "PostgreSQL shut down immediately",
    "drop_sessions": "all PostgreSQL sessions terminated",
    "cut_engine": "network to the engine cut",
    "close_half": "network to the engine half closed",
    "stall_engine": "network to the engine stalled",
    "kill_engine": "SIGKILL of the engine",
    "notify_often": "many duplicate notifications for every job",
}
ENGINE_FAULTS = frozenset({"cut_engine", "close_half", "stall_engine", "kill_engine"})
FROZEN_S = 7.0  # two leases and more
JOB_FAULTS = frozenset(FAULTS) - {
    "kill_api",
    "flush_valkey",
    "restart_valkey",
    "kill_valkey",
    "notify_often",
    "term_worker",
}

HELD = """
SELECT now() AS at, array_agg(id) FILTER (WHERE lease_owner IS NOT NULL AND
    (%(pids)s::text[] IS NULL OR split_part(lease_owner, ':', 2) = ANY(%(pids)s))) AS jobs
FROM jobs
"""
LIVE = "SELECT id FROM jobs WHERE finished_at IS NULL ORDER BY created_at LIMIT 40"
DROP = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""


@dataclass(frozen=True, slots=True)
class Planned:
    """A fault, and the seconds from the start until it is due."""

    at_s: float
    kind: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A fault that was injected, at the database's time, and the jobs leased by the workers that it hit."""

    kind: str
    at: datetime | None
    jobs: tuple[UUID, ...]


def plan(faults: int, seed: int, gap_s: float, kinds: Sequence[str] = tuple(FAULTS)) -> list[Planned]:
    """Shuffled rounds of all kinds, so that each comes equally often."""
    rng = seeded_random("monkey", seed)
    order: list[str] = []
    while len(order) < faults:
        order += rng.sample(list(kinds), len(kinds))
    at_s, planned = 0.0, []
    for kind in order[:faults]:
        at_s += rng.uniform(0.5, 1.5) * gap_s
        planned.append(Planned(at_s, kind))
    return planned


@dataclass
class Monkey:
    """Injects planned faults into a system. Use it in the main thread."""

    system: System
    seed: int
    hits: list[Hit] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._rng = seeded_random("victims", self.seed)
        self._thaw: dict[int, float] = {}

    def run(self, planned: Iterable[Planned]) -> None:
        began = time.monotonic()
        for fault in planned:
            while time.monotonic() < began + fault.at_s:
                self.system.wait(min(0.2, max(0.0, began + fault.at_s - time.monotonic())))
                self.thaw()
            self.do(fault.kind)
        while self._thaw:
            self.system.wait(0.2)
            self.thaw()

    def do(self, kind: str) -> None:
        system = self.system
        match kind:
            case "kill_worker" | "freeze_worker" | "term_worker":
                pids = [pid for pid in system.worker_pids() if pid not in system.frozen]
                victims = [self._rng.choice(pids)] if pids else []
                self._note(kind, victims)
                signum = {"kill_worker": signal.SIGKILL, "freeze_worker": signal.SIGSTOP}.get(kind, signal.SIGTERM)
                self._send(victims, signum)
                if kind == "freeze_worker":
                    system.frozen.update(victims)
                    self._thaw |= dict.fromkeys(victims, time.monotonic() + FROZEN_S)
            case "kill_all_workers":
                victims = system.worker_pids()
                self._note(kind, victims)
                self._send(victims, signal.SIGKILL)
            case "kill_api":
                self._note(kind, [])
                self._send(system.children_of_up("api"), signal.SIGKILL)
            case "kill_up":
                self._note(kind, system.children_of_up("worker"))
                system.up.send(signal.SIGKILL)
            case "flush_valkey":
                self._note(kind, [])
                with suppress(redis.RedisError):
                    redis.Redis(unix_socket_path=str(system.broker_path), socket_timeout=2).flushall()
            case "restart_valkey" | "kill_valkey":
                self._note(kind, [])
                system.valkey.send(signal.SIGTERM if kind == "restart_valkey" else signal.SIGKILL)
            case "restart_postgres" | "kill_postgres":
                self._note(kind, None)
                system.postgres.stop(signal.SIGINT if kind == "restart_postgres" else signal.SIGQUIT)
                system.wait(self._rng.uniform(0.2, 1.5))
                system.postgres.start()
            case "drop_sessions":
                self._note(kind, None)
                with suppress(psycopg.Error), self._connect() as connection:
                    connection.execute(DROP)
            case _ if kind in ENGINE_FAULTS:
                self._note(kind, None)
                self._break_engine(kind)
            case "notify_often":
                self._note(kind, [])
                self._notify()
            case _:
                raise ValueError(kind)

    def thaw(self) -> None:
        now = time.monotonic()
        for pid in [pid for pid, at in self._thaw.items() if now >= at]:
            del self._thaw[pid]
            self._send([pid], signal.SIGCONT)
            self.system.frozen.discard(pid)

    def _break_engine(self, kind: str) -> None:
        match kind:
            case "cut_engine":
                self.system.proxy.cut(self._rng.uniform(0.1, 1.5))
            case "close_half":
                self.system.proxy.close_half()
            case "stall_engine":
                self.system.proxy.stall(self._rng.uniform(1.0, 5.0))
            case _:
                self.system.engine.send(signal.SIGKILL)

    def _notify(self) -> None:
        with suppress(psycopg.Error), self._connect() as connection:
            jobs = [row[0] for row in connection.execute(LIVE).fetchall()]
            asyncio.run(_notify_often(self.system.broker_url, jobs * 5))

    def _note(self, kind: str, pids: Sequence[int] | None) -> None:
        """Records the jobs leased by these workers (None: by any), or none while the database is down."""
        try:
            with self._connect() as connection:
                row = connection.execute(
                    HELD, {"pids": None if pids is None else [str(pid) for pid in pids]}
                ).fetchone()
        except psycopg.Error:
            row = None
        at, jobs = row or (None, None)
        self.hits.append(Hit(kind, at, tuple(jobs or ()) if kind in JOB_FAULTS else ()))

    def _connect(self) -> psycopg.Connection:
        return psycopg.connect(self.system.database_url, autocommit=True, connect_timeout=5)

    def _send(self, pids: Iterable[int], signum: signal.Signals) -> None:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signum)


async def _notify_often(broker_url: str, jobs: Sequence[UUID]) -> None:
    async with Notifier(make_app(broker_url)) as notifier:
        await notifier.notify(jobs)
