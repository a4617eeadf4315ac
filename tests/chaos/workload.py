"""The workload: clients that submit, signal, confirm, settle, cancel and pause jobs while faults are injected."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import psycopg
from psycopg.rows import dict_row

from chaos.ledger import effects
from stepladder import Client
from stepladder.schemas.errors import UnreachableError
from stepladder.sdk.problems import ProblemError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from chaos.cluster import System
    from chaos.documents import PlannedJob

TIMEOUT_S = 120.0
LOOK_EVERY_S = 0.25
SETTLE_AFTER_S = 2.5
"""A payment takes less than a second: once no worker is frozen and this much time has passed, the ledger is final."""

WAITING = """
SELECT jobs.id, waiting_for, (input ->> 'n')::int AS n, body ->> 'wait_id' AS wait_id, key
FROM jobs
    LEFT JOIN visits ON visits.job_id = jobs.id AND visits.closed_at IS NULL
WHERE jobs.status = 'waiting' AND waiting_for IN ('confirm', 'news', 'settlement')
"""


@dataclass
class Workload:
    """``with Workload(system, planned_jobs)``: runs in threads inside the block. ``submitted`` has ids by ``n``."""

    system: System
    planned_jobs: Sequence[PlannedJob]
    submitted: dict[int, str] = field(default_factory=dict)
    settled: int = 0
    errors: list[BaseException] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._over = threading.Event()
        self._unsure: dict[str, float] = {}
        self._sent: set[Any] = set()
        self._threads = [
            threading.Thread(target=self._guarded, args=(work,), daemon=True)
            for work in (self._submit, self._serve_waits)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()
        if self.errors:
            raise self.errors[0]

    @property
    def all_submitted(self) -> bool:
        return not self._threads[0].is_alive()

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 -- raised again in __exit__
            self.errors.append(error)

    def _submit(self) -> None:
        began = time.monotonic()
        due = sorted(
            [(job.after_s, 0, job) for job in self.planned_jobs]
            + [(job.after_s + 1.0, 1, job) for job in self.planned_jobs if job.fate]
            + [(job.after_s + 4.0, 2, job) for job in self.planned_jobs if job.fate == "pause"],
            key=lambda one: one[:2],
        )
        with Client(self.system.url, retry_for_s=TIMEOUT_S) as client:
            for after_s, act, job in due:
                if self._over.wait(max(0.0, began + after_s - time.monotonic())):
                    return
                if act == 0:
                    self._submit_one(client, job)
                else:
                    with suppress(ProblemError):  # the job has ended
                        job_id = self.submitted[job.n]
                        change = client.cancel if job.fate == "cancel" else client.pause if act == 1 else client.unpause
                        change(job_id)

    def _submit_one(self, client: Client, job: PlannedJob) -> None:
        ids = {
            client.submit(job.workflow, {"n": job.n}, idempotency_key=f"job-{job.n}").id for _ in range(1 + job.twice)
        }
        assert len(ids) == 1, f"job {job.n} became the jobs {ids}"
        job_id = self.submitted[job.n] = str(ids.pop())
        if job.workflow == "chaos-waits" and job.early:
            client.signal(job_id, "news", {"action": "told"}, idempotency_key=f"news-{job.n}")

    def _serve_waits(self) -> None:
        with Client(self.system.url, retry_for_s=TIMEOUT_S) as client:
            while not self._over.wait(LOOK_EVERY_S):
                for row in self._waiting():
                    with suppress(ProblemError, UnreachableError):  # the job moved on, or the next round tries again
                        self._act_on(client, row)

    def _waiting(self) -> list[dict[str, Any]]:
        try:
            with psycopg.connect(self.system.database_url, row_factory=dict_row, connect_timeout=5) as connection:
                return connection.execute(WAITING).fetchall()
        except psycopg.Error:
            return []

    def _act_on(self, client: Client, row: dict[str, Any]) -> None:
        match row["waiting_for"]:
            case "confirm" if row["wait_id"] not in self._sent:
                for _ in range(2):  # the second key finds the wait closed
                    payload = {"action": "go", "wait_id": str(row["wait_id"])}
                    client.signal(row["id"], "confirm", payload, idempotency_key=f"confirm-{row['wait_id']}-{_}")
                self._sent.add(row["wait_id"])
            case "news" if row["wait_id"] not in self._sent:
                client.signal(row["id"], "news", {"action": "told"}, idempotency_key=f"news-{row['n']}")
                self._sent.add(row["wait_id"])
            case "settlement":
                self._settle(client, row)

    def _settle(self, client: Client, row: dict[str, Any]) -> None:
        since = self._unsure.setdefault(row["key"], time.monotonic())
        if self.system.frozen:
            self._unsure[row["key"]] = time.monotonic()
        elif time.monotonic() - since > SETTLE_AFTER_S and row["key"] not in self._sent:
            done = effects(self.system.ledger).get((row["n"], "pay"), [])
            if done:
                result = {"n": row["n"], "step": "pay", "receipt": done[0].key}
                client.settle(row["id"], done=True, result=result, key=row["key"])
            else:
                client.settle(row["id"], done=False, key=row["key"])
            self._sent.add(row["key"])
            self.settled += 1
