"""The people around the jobs: they submit, signal, confirm, settle, cancel and pause, whatever happens meanwhile."""

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

    from chaos.documents import Wish
    from chaos.town import Town

PATIENT_S = 120.0
LOOK_EVERY_S = 0.25
SURE_AFTER_S = 2.5
"""A person who says whether a payment took place has to be sure that nobody is still about to make it: no worker is
stopped any more, and the payment, which takes less than a second, was begun long before."""

WAITING = """
SELECT jobs.id, waiting_for, (input ->> 'n')::int AS n, wait_id, key
FROM jobs
    LEFT JOIN waits ON waits.job_id = jobs.id AND waits.closed_at IS NULL
    LEFT JOIN tool_calls ON tool_calls.job_id = jobs.id AND tool_calls.closed_at IS NULL
WHERE status = 'waiting' AND waiting_for IN ('confirm', 'news', 'settlement')
"""


@dataclass
class People:
    """``with People(town, wishes)``: threads of their own until the block is left. ``submitted`` is what they know."""

    town: Town
    wishes: Sequence[Wish]
    submitted: dict[int, str] = field(default_factory=dict)
    settled: int = 0
    errors: list[BaseException] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._over = threading.Event()
        self._unsure: dict[str, float] = {}
        self._sent: set[Any] = set()
        self._threads = [
            threading.Thread(target=self._guarded, args=(work,), daemon=True) for work in (self._submit, self._attend)
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
        except BaseException as error:  # noqa: BLE001 -- whoever waits for this thread is told
            self.errors.append(error)

    def _submit(self) -> None:
        began = time.monotonic()
        due = sorted(
            [(wish.after_s, 0, wish) for wish in self.wishes]
            + [(wish.after_s + 1.0, 1, wish) for wish in self.wishes if wish.fate]
            + [(wish.after_s + 4.0, 2, wish) for wish in self.wishes if wish.fate == "pause"],
            key=lambda one: one[:2],
        )
        with Client(self.town.url, retry_for_s=PATIENT_S) as client:
            for after_s, act, wish in due:
                if self._over.wait(max(0.0, began + after_s - time.monotonic())):
                    return
                if act == 0:
                    self._submit_one(client, wish)
                else:
                    with suppress(ProblemError):  # it has ended meanwhile
                        job = self.submitted[wish.n]
                        change = (
                            client.cancel if wish.fate == "cancel" else client.pause if act == 1 else client.unpause
                        )
                        change(job)

    def _submit_one(self, client: Client, wish: Wish) -> None:
        jobs = {
            client.submit(wish.workflow, {"n": wish.n}, idempotency_key=f"wish-{wish.n}").id
            for _ in range(1 + wish.twice)
        }
        assert len(jobs) == 1, f"wish {wish.n} became the jobs {jobs}"
        job = self.submitted[wish.n] = jobs.pop()
        if wish.workflow == "chaos-waits" and wish.early:
            client.signal(job, "news", {"action": "told"}, idempotency_key=f"news-{wish.n}")

    def _attend(self) -> None:
        with Client(self.town.url, retry_for_s=PATIENT_S) as client:
            while not self._over.wait(LOOK_EVERY_S):
                for row in self._waiting():
                    with suppress(ProblemError, UnreachableError):  # it went on meanwhile; or once more, then
                        self._attend_to(client, row)

    def _waiting(self) -> list[dict[str, Any]]:
        try:
            with psycopg.connect(self.town.database_url, row_factory=dict_row, connect_timeout=5) as connection:
                return connection.execute(WAITING).fetchall()
        except psycopg.Error:
            return []

    def _attend_to(self, client: Client, row: dict[str, Any]) -> None:
        match row["waiting_for"]:
            case "confirm" if row["wait_id"] not in self._sent:
                for _ in range(2):  # and the second time under another key, which finds the wait over
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
        if self.town.frozen:
            self._unsure[row["key"]] = time.monotonic()
        elif time.monotonic() - since > SURE_AFTER_S and row["key"] not in self._sent:
            done = effects(self.town.ledger).get((row["n"], "pay"), [])
            if done:
                result = {"n": row["n"], "step": "pay", "receipt": done[0].key}
                client.settle(row["id"], done=True, result=result, key=row["key"])
            else:
                client.settle(row["id"], done=False, key=row["key"])
            self._sent.add(row["key"])
            self.settled += 1
