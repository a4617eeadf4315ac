"""A worker process that dies at a chosen point around a tool's effect, and the ledger on which the effect is seen.

As a program it drives one job: ``python -m support.crashes JSON``, the fields of ``Crash``.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import stepladder
from stepladder.engine.client import EngineClient
from stepladder.engine.identity import identify
from stepladder.models.database import Database
from stepladder.models.store import Store
from stepladder.runner.machines import Machines
from stepladder.runner.runner import Runner
from stepladder.sdk import kit
from stepladder.workflows.transition import RunTool
from stepladder.workflows.visits import ToolCall
from support.machines import document, machine_of

if TYPE_CHECKING:
    from stepladder.workflows.transition import Transition

POINTS = ("journaled", "effect", "returned", "recorded")
"""The call's row is written and the tool has not begun; the tool has had its effect; it has come back, and nothing is
written of it; its result is written."""

STATES: dict[str, Any] = {
    "confirm": {"wait": {"signal": "confirm"}, "next": {"go": "act"}},
    "act": {"tool": "act", "arguments": {"sum": "3"}, "next": {"ok": "after", "error": "told"}},
    "after": {"tool": "after", "next": {"ok": "done"}},
    "done": {"end": "succeeded", "result": "tools.act"},
    "told": {"end": "succeeded", "result": "errors.act"},
}
"""One tool behind a person's word, as what cannot be undone has to stand; and another, which the job goes on to."""


WARM_UP = "done: {end: succeeded}"


@dataclass(frozen=True, slots=True)
class Crash:
    """Where a worker of its own dies while it drives a job."""

    database_url: str
    engine_url: str
    job: str
    ledger: str
    effect: str
    point: str

    def happen(self) -> None:
        """Runs the worker until it is dead."""
        environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
        command = [sys.executable, "-m", "support.crashes", json.dumps(asdict(self))]
        done = subprocess.run(command, env=environment, capture_output=True, timeout=60, check=False)
        assert done.returncode == -signal.SIGKILL, done.stderr.decode() + done.stdout.decode()


def register(ledger: Path, effect: str, *, dies: bool = False) -> None:
    """Registers the tool ``act``, which writes its key to the ledger and gives how many lines stand there."""

    @stepladder.tool("act", effect=effect)
    def act(sum: int, idempotency_key: str) -> dict[str, int]:  # noqa: A002 -- a tool's own word
        with ledger.open("a") as lines:
            lines.write(f"{idempotency_key}\n")
            lines.flush()
            os.fsync(lines.fileno())
        if dies:
            die()
        return {"sum": sum, "lines": len(written(ledger))}

    @stepladder.tool("after", effect="read")
    def after() -> None: ...


def written(ledger: Path) -> list[str]:
    """The keys in the ledger, one for each time that the effect took place."""
    return ledger.read_text().split() if ledger.exists() else []


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _closes(step: Transition) -> bool:
    return any(isinstance(visit, ToolCall) and visit.closed_at is not None for visit in step.visits)


class DyingStore(Store):
    """Dies with what the tool gave in its hands."""

    async def commit(self, claim: Any, step: Transition, *more: Any, **options: Any) -> bool:
        if _closes(step):
            die()
        return await super().commit(claim, step, *more, **options)


async def _drive(crash: Crash) -> None:
    def observe(step: Transition) -> None:
        if isinstance(step.next, RunTool) if crash.point == "journaled" else _closes(step):
            die()

    async with Database(crash.database_url) as database, EngineClient(crash.engine_url) as client:
        store = DyingStore(database) if crash.point == "returned" else Store(database)
        machines = Machines(store, kit.registered())
        machine_of(document(WARM_UP))  # a cold process takes long to load the compiler, and holds a lease meanwhile
        await Runner(store, machines, client, await identify(client), observe=observe).run_slice(UUID(crash.job))


def main() -> None:
    crash = Crash(**json.loads(sys.argv[1]))
    register(Path(crash.ledger), crash.effect, dies=crash.point == "effect")
    asyncio.run(_drive(crash))


if __name__ == "__main__":
    main()
