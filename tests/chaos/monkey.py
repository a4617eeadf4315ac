"""The monkey: which fault comes when is told by a seed; whom it hits, by what runs at that moment."""

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

from chaos.chance import chance_of
from stepladder.tasks.app import make_app
from stepladder.tasks.bell import Bell

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime
    from uuid import UUID

    from chaos.town import Town

FAULTS = {
    "kill_worker": "SIGKILL of one worker",
    "kill_all_workers": "SIGKILL of all workers",
    "kill_api": "SIGKILL of the API",
    "kill_up": "SIGKILL of `up`, and so of its worker and API",
    "freeze_worker": "SIGSTOP of a worker for two leases, and SIGCONT",
    "term_worker": "SIGTERM of a worker",
    "flush_valkey": "Valkey flushed",
    "restart_valkey": "Valkey restarted",
    "kill_valkey": "SIGKILL of Valkey",
    "restart_postgres": "PostgreSQL restarted in order",
    "kill_postgres": "PostgreSQL ended at once",
    "drop_sessions": "every session of PostgreSQL ended",
    "cut_engine": "network to the engine cut",
    "close_half": "network to the engine closed by half",
    "stall_engine": "network to the engine silent",
    "kill_engine": "SIGKILL of the engine",
    "ring_often": "every job rung again and again",
}
AT_THE_ENGINE = frozenset({"cut_engine", "close_half", "stall_engine", "kill_engine"})
FROZEN_S = 7.0  # two leases and more
HURTS_JOBS = frozenset(FAULTS) - {
    "kill_api",
    "flush_valkey",
    "restart_valkey",
    "kill_valkey",
    "ring_often",
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
    """A fault, and the seconds from the beginning."""

    at_s: float
    kind: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A fault that took place, by the database's clock, and the jobs that were in the hands that it hit."""

    kind: str
    at: datetime | None
    jobs: tuple[UUID, ...]


def plan(faults: int, seed: int, gap_s: float, kinds: Sequence[str] = tuple(FAULTS)) -> list[Planned]:
    """Every kind in turn, in an order of chance, so that each comes as often as any other."""
    chance = chance_of("monkey", seed)
    order: list[str] = []
    while len(order) < faults:
        order += chance.sample(list(kinds), len(kinds))
    at_s, planned = 0.0, []
    for kind in order[:faults]:
        at_s += chance.uniform(0.5, 1.5) * gap_s
        planned.append(Planned(at_s, kind))
    return planned


@dataclass
class Monkey:
    """Does the faults of a plan to a town. To be called in the main thread."""

    town: Town
    seed: int
    hits: list[Hit] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._chance = chance_of("victims", self.seed)
        self._thaw: dict[int, float] = {}

    def rage(self, planned: Iterable[Planned]) -> None:
        began = time.monotonic()
        for fault in planned:
            while time.monotonic() < began + fault.at_s:
                self.town.wait(min(0.2, max(0.0, began + fault.at_s - time.monotonic())))
                self.thaw()
            self.do(fault.kind)
        while self._thaw:
            self.town.wait(0.2)
            self.thaw()

    def do(self, kind: str) -> None:
        town = self.town
        match kind:
            case "kill_worker" | "freeze_worker" | "term_worker":
                pids = [pid for pid in town.worker_pids() if pid not in town.frozen]
                victims = [self._chance.choice(pids)] if pids else []
                self._note(kind, victims)
                signum = {"kill_worker": signal.SIGKILL, "freeze_worker": signal.SIGSTOP}.get(kind, signal.SIGTERM)
                self._send(victims, signum)
                if kind == "freeze_worker":
                    town.frozen.update(victims)
                    self._thaw |= dict.fromkeys(victims, time.monotonic() + FROZEN_S)
            case "kill_all_workers":
                victims = town.worker_pids()
                self._note(kind, victims)
                self._send(victims, signal.SIGKILL)
            case "kill_api":
                self._note(kind, [])
                self._send(town.children_of_up("api"), signal.SIGKILL)
            case "kill_up":
                self._note(kind, town.children_of_up("worker"))
                town.up.send(signal.SIGKILL)
            case "flush_valkey":
                self._note(kind, [])
                with suppress(redis.RedisError):
                    redis.Redis(unix_socket_path=str(town.broker_path), socket_timeout=2).flushall()
            case "restart_valkey" | "kill_valkey":
                self._note(kind, [])
                town.valkey.send(signal.SIGTERM if kind == "restart_valkey" else signal.SIGKILL)
            case "restart_postgres" | "kill_postgres":
                self._note(kind, None)
                town.postgres.stop(signal.SIGINT if kind == "restart_postgres" else signal.SIGQUIT)
                town.wait(self._chance.uniform(0.2, 1.5))
                town.postgres.start()
            case "drop_sessions":
                self._note(kind, None)
                with suppress(psycopg.Error), self._connect() as connection:
                    connection.execute(DROP)
            case _ if kind in AT_THE_ENGINE:
                self._note(kind, None)
                self._hurt_engine(kind)
            case "ring_often":
                self._note(kind, [])
                self._ring()
            case _:
                raise ValueError(kind)

    def thaw(self) -> None:
        now = time.monotonic()
        for pid in [pid for pid, at in self._thaw.items() if now >= at]:
            del self._thaw[pid]
            self._send([pid], signal.SIGCONT)
            self.town.frozen.discard(pid)

    def _hurt_engine(self, kind: str) -> None:
        match kind:
            case "cut_engine":
                self.town.proxy.cut(self._chance.uniform(0.1, 1.5))
            case "close_half":
                self.town.proxy.close_half()
            case "stall_engine":
                self.town.proxy.stall(self._chance.uniform(1.0, 5.0))
            case _:
                self.town.engine.send(signal.SIGKILL)

    def _ring(self) -> None:
        with suppress(psycopg.Error), self._connect() as connection:
            jobs = [row[0] for row in connection.execute(LIVE).fetchall()]
            asyncio.run(_ring_often(self.town.broker_url, jobs * 5))

    def _note(self, kind: str, pids: Sequence[int] | None) -> None:
        """Whose jobs are in the hands of these workers, or in any for None; nothing while the database is down."""
        try:
            with self._connect() as connection:
                row = connection.execute(
                    HELD, {"pids": None if pids is None else [str(pid) for pid in pids]}
                ).fetchone()
        except psycopg.Error:
            row = None
        at, jobs = row or (None, None)
        self.hits.append(Hit(kind, at, tuple(jobs or ()) if kind in HURTS_JOBS else ()))

    def _connect(self) -> psycopg.Connection:
        return psycopg.connect(self.town.database_url, autocommit=True, connect_timeout=5)

    def _send(self, pids: Iterable[int], signum: signal.Signals) -> None:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signum)


async def _ring_often(broker_url: str, jobs: Sequence[UUID]) -> None:
    async with Bell(make_app(broker_url)) as bell:
        await bell.ring_many(jobs)
