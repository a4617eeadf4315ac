"""A pause takes hold between tools as well: what is under way is kept, and nothing more is begun."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

import stepladder
from stepladder.models import versions
from stepladder.runner.runner import SliceEnd
from stepladder.testing import eventually

from .conftest import asking

if TYPE_CHECKING:
    from uuid import UUID

    from .conftest import Open, Works


class Chain:
    """Tools that are begun one after the other; each waits until it is let go."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.go = threading.Event()

    def register(self, name: str) -> None:
        @stepladder.tool(name, effect="idempotent")
        def run() -> dict[str, str]:
            self.begun.append(name)
            self.go.wait(20)
            return {"ran": name}


STEPS: dict[str, Any] = {
    "first": {"tool": "first", "next": {"ok": "second"}},
    "second": {"tool": "second", "next": {"ok": "third"}},
    "third": asking(next="done"),
    "done": {"end": "succeeded", "result": {"ran": "[tools.first.ran, tools.second.ran]"}},
}


@pytest.fixture
def chain() -> Chain:
    chain = Chain()
    for name in ("first", "second"):
        chain.register(name)
    return chain


async def switch(w: Works, job: UUID, word: str, whole: bool) -> None:
    if whole:
        overview = await w.job(job)
        turn = versions.pause if word == "pause" else versions.unpause
        await turn(w.store, overview.workflow, overview.version, "ops")
    else:
        await (w.store.pause(job, "ops") if word == "pause" else w.store.unpause(job, "ops"))


@pytest.mark.parametrize("whole", [False, True], ids=["the job", "its workflow"])
async def test_a_job_paused_while_a_tool_runs_stops_before_the_next(works: Open, chain: Chain, whole: bool) -> None:
    w = await works({"n": 5})
    job = await w.submit(STEPS)
    running = asyncio.ensure_future(w.runner().run_slice(job))
    await eventually(lambda: chain.begun == ["first"], what="the first tool runs")
    await switch(w, job, "pause", whole)
    chain.go.set()
    assert (await running).end is SliceEnd.PAUSED
    assert chain.begun == ["first"]
    [row] = await w.rows("SELECT lease_owner, state, status FROM jobs WHERE id = %s", job)
    assert (row["lease_owner"], row["state"], row["status"]) == (None, "second", "running")
    call = await w.call(job)
    assert (call["runs"], call["result"], call["status"]) == (1, {"ran": "first"}, "closed")
    assert (await w.runner().run_slice(job)).end is SliceEnd.IDLE

    await switch(w, job, "unpause", whole)
    done = await w.drive(job)
    assert (done.status, done.result) == ("succeeded", {"ran": ["first", "second"]})
    assert chain.begun == ["first", "second"]


@pytest.mark.parametrize("whole", [False, True], ids=["the job", "its workflow"])
async def test_it_stops_before_the_engine_is_asked_too(works: Open, chain: Chain, whole: bool) -> None:
    w = await works({"n": 5})
    job = await w.submit({"first": STEPS["first"] | {"next": {"ok": "third"}}, "third": STEPS["third"]})
    running = asyncio.ensure_future(w.runner().run_slice(job))
    await eventually(lambda: chain.begun == ["first"], what="the tool runs")
    await switch(w, job, "pause", whole)
    chain.go.set()
    assert (await running).end is SliceEnd.PAUSED
    assert w.engine.requests == []
    await switch(w, job, "unpause", whole)
    assert (await w.drive(job)).status == "succeeded"


async def test_a_confirmed_effect_waits_for_a_paused_workflow(works: Open) -> None:
    paid: list[int] = []

    @stepladder.tool("pay", effect="irreversible")
    def pay(cents: int) -> dict[str, int]:
        paid.append(cents)
        return {"paid": cents}

    w = await works()
    states = {
        "confirm": {"wait": {"signal": "word"}, "next": {"go": "pay"}},
        "pay": {"tool": "pay", "arguments": {"cents": "36"}, "next": {"ok": "done"}},
    }
    job = await w.submit(states)
    overview = await w.job(job)
    await w.drive(job)
    await versions.pause(w.store, overview.workflow, overview.version, "ops")
    drive = asyncio.ensure_future(w.drive(job, {"word": [{"action": "go"}]}))
    await eventually(lambda: _signals(w, job), what="the signal is there")
    assert paid == []
    await versions.unpause(w.store, overview.workflow, overview.version, "ops")
    assert (await drive).status == "succeeded"
    assert paid == [36]


async def _signals(w: Works, job: UUID) -> bool:
    return bool(await w.rows("SELECT id FROM signals WHERE job_id = %s", job))
