"""A worker that dies around a tool's effect: it runs again under its key, or a person is asked. Nothing is skipped."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from stepladder.models.ids import uuid7
from stepladder.models.records import Receipt, Settling
from stepladder.workflows.events import Settled
from support.crashes import POINTS, STATES, Crash, register, written

if TYPE_CHECKING:
    from pathlib import Path
    from uuid import UUID

    from .conftest import Open, Works

pytestmark = pytest.mark.long

RESULT = {"sum": 3, "lines": 1}


async def confirmed(w: Works) -> UUID:
    """A job that a person has let go on to its tool."""
    job = await w.submit(STATES)
    await w.drive(job)
    [wait] = [record.data for record in await w.reads.events(job) if record.kind == "wait_started"]
    payload = {"action": "go", "wait_id": wait["wait_id"]}
    assert await w.store.signal(job, uuid7(), "confirm", payload) is Receipt.ACCEPTED
    return job


async def crash(w: Works, job: UUID, ledger: Path, effect: str, point: str) -> None:
    """The worker dies, and is not heard of again."""
    happening = Crash(w.database_url, w.engine.url, str(job), str(ledger), effect, point)
    await asyncio.to_thread(happening.happen)
    await w.expire_lease(job)


async def kinds(w: Works, job: UUID) -> list[str]:
    """What the history says of the tool."""
    events = list(await w.reads.events(job))
    return [str(event.kind) for event in events if event.data.get("state") == "act"]


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("effect", ["read", "idempotent"])
async def test_a_repeatable_tool_runs_again_under_the_same_key(
    works: Open, tmp_path: Path, effect: str, point: str
) -> None:
    ledger = tmp_path / "ledger"
    register(ledger, effect)
    w = await works()
    job = await confirmed(w)
    await crash(w, job, ledger, effect, point)
    done = await w.drive(job)
    lines = {"journaled": 1, "effect": 2, "returned": 2, "recorded": 1}[point]
    assert (done.status, done.result) == ("succeeded", {"sum": 3, "lines": lines})
    call = await w.call(job, "act")
    assert written(ledger) == [call["key"]] * lines, "a ledger by key has the effect once"
    assert (call["runs"], call["lost"]) == ((1, 0) if point == "recorded" else (2, 1))
    told = await kinds(w, job)
    assert (told.count("tool_started"), told.count("tool_returned")) == (call["runs"], 1)


@pytest.mark.parametrize("done", [True, False], ids=["it did", "it did not"])
@pytest.mark.parametrize("point", ["journaled", "effect", "returned"])
async def test_an_irreversible_tool_waits_for_settlement_after_a_crash(
    works: Open, tmp_path: Path, point: str, done: bool
) -> None:
    ledger = tmp_path / "ledger"
    register(ledger, "irreversible")
    w = await works()
    job = await confirmed(w)
    await crash(w, job, ledger, "irreversible", point)
    effects = 0 if point == "journaled" else 1
    for _ in range(2):
        waits = await w.drive(job)
        assert (waits.status, waits.waiting_for) == ("waiting", "settlement")
        assert len(written(ledger)) == effects
    key = (await w.call(job, "act"))["key"]
    assert written(ledger) == [key] * effects
    assert await w.store.settle(job, key, Settled(done, RESULT if done else None, "kim")) is Settling.ACCEPTED
    ended = await w.drive(job)
    not_done = {"kind": "not_done", "message": "a person says that it did not take effect"}
    assert (ended.status, ended.result) == ("succeeded", RESULT if done else not_done)
    call = await w.call(job, "act")
    assert (call["runs"], call["result"], call["error_kind"]) == (1, RESULT, None) if done else (1, None, "not_done")
    assert written(ledger) == [key] * effects, "never again"
    assert (await kinds(w, job)).count("settled") == 1


async def test_what_cannot_be_undone_and_is_recorded_needs_no_settlement(works: Open, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    register(ledger, "irreversible")
    w = await works()
    job = await confirmed(w)
    await crash(w, job, ledger, "irreversible", "recorded")
    done = await w.drive(job)
    assert (done.status, done.result) == ("succeeded", RESULT)
    assert len(written(ledger)) == 1


async def test_a_tool_that_takes_its_worker_down_each_time_is_given_up(works: Open, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    register(ledger, "idempotent")
    w = await works()
    job = await confirmed(w)
    for _ in range(3):
        await crash(w, job, ledger, "idempotent", "effect")
    done = await w.drive(job)
    message = "the worker was lost 3 times while this tool ran"
    assert (done.status, done.result) == ("succeeded", {"kind": "worker_lost", "message": message})
    call = await w.call(job, "act")
    assert written(ledger) == [call["key"]] * 3
    assert (call["runs"], call["lost"]) == (3, 3)
    assert (await kinds(w, job)).count("tool_failed") == 3
