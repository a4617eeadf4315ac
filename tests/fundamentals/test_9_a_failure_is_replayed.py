"""Chapter 9. What went wrong is judged again, gone on with, or done otherwise; and no effect takes place twice."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from stepladder import tool
from stepladder.runner.drive import Driver
from stepladder.runner.machines import Machines, compiled
from stepladder.schemas.actor import LOCAL
from stepladder.schemas.job import Failure, JobStatus
from stepladder.schemas.replay import Mode
from stepladder.sdk.kit import registered
from stepladder.services.replays import Prepared, Replays, Wanted
from stepladder.services.submission import publish, submit
from stepladder.testing import ScriptedEngine
from stepladder.wiring.system import open_system
from stepladder.workflows.load import Loaded, load_document

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from uuid import UUID

    from stepladder.schemas.responses import Job
    from stepladder.wiring.system import System

ledger: list[str] = []


@tool("fundamentals.ship", effect="irreversible")
def ship(parcel: str) -> dict[str, str]:
    ledger.append(parcel)
    return {"label": f"L-{len(ledger)}"}


PARCEL = """
name: parcel
version: 1
input: {type: object, properties: {parcel: {type: string, maxLength: 20}}, required: [parcel]}
start: weigh
states:
  weigh:
    ask: "What does {{ input.parcel }} weigh?"
    output: {type: object, properties: {kg: {type: integer, minimum: 1, maximum: 90}}, required: [kg]}
    next: confirm
  confirm:
    wait: {signal: approval}
    next: {send: ship, keep: kept}
  ship:
    tool: fundamentals.ship
    arguments: {parcel: "input.parcel"}
    next: {ok: tell, error: kept}
  tell:
    ask: "The label is {{ tools.ship.label }}. Tell the customer."
    output: {type: object, properties: {text: {type: string, maxLength: 200}}, required: [text]}
    rules: [{id: label-told, check: "output.text.contains(tools.ship.label)", reason: "must name the label"}]
    retry: {attempts: 1}
    next: done
  done: {end: succeeded, result: turns.tell.text}
  kept: {end: failed}
"""
WEIGHT = {"kg": 4}
VAGUE, CLEAR = {"text": "It is on its way."}, {"text": "It goes by label L-1."}


@dataclass
class Desk:
    """A database with jobs in it, and a scripted engine."""

    system: System

    @property
    def replays(self) -> Replays:
        store = self.system.store
        return Replays(store.database, store, Machines(store, registered()))

    async def drive(self, job_id: UUID) -> Job:
        approval = {"approval": [{"action": "send"}]}
        await Driver(self.system.runner, self.system.store, self.system.reads, approval).drive(job_id)
        job = await self.system.reads.overview(job_id)
        assert job is not None
        return job

    async def run(self) -> Job:
        loaded = load_document(PARCEL)
        assert isinstance(loaded, Loaded)
        machine = compiled(loaded.document, registered())
        await publish(self.system.store, machine)
        return await self.drive((await submit(self.system.store, machine, {"parcel": "P-7"}, datetime.now(UTC))).id)

    async def replay(self, job_id: UUID, wanted: Wanted) -> Job:
        found = await self.replays.prepared(job_id, wanted, LOCAL, datetime.now(UTC))
        assert isinstance(found, Prepared), found
        await self.replays.keep(found.definition, wanted.changes)
        await self.system.store.submit_many([found.new])
        return await self.drive(found.new.job.id)


@asynccontextmanager
async def desk(database_url: str, *answers: Any) -> AsyncIterator[tuple[Desk, ScriptedEngine]]:
    ledger.clear()
    with ScriptedEngine(answers) as engine:
        async with open_system(database_url, engine.url, registered()) as system:
            yield Desk(system), engine


async def test_stored_answers_are_judged_again_without_an_engine(database_url: str) -> None:
    async with desk(database_url, WEIGHT, CLEAR) as (at, engine):
        job = await at.run()
        same = await at.replays.revalidated(job.id, {})
        lighter = await at.replays.revalidated(job.id, {"states.weigh.output.properties.kg.maximum": 3})
        assert len(engine.requests) == 2
    assert job.status is JobStatus.SUCCEEDED
    assert isinstance(same, tuple)
    assert isinstance(lighter, tuple)
    assert [one.changed for one in same] == [False, False]  # the same document: every verdict as it was
    assert [(one.was.outcome, one.now.outcome) for one in lighter if one.now] == [
        ("valid", "schema_violation"),
        ("valid", "valid"),
    ]


async def test_a_resume_asks_the_failed_turn_alone_and_ships_nothing_twice(database_url: str) -> None:
    async with desk(database_url, WEIGHT, VAGUE, CLEAR) as (at, engine):
        failed = await at.run()
        assert (failed.failure, failed.state, ledger) == (Failure.ATTEMPTS_EXHAUSTED, "tell", ["P-7"])
        resumed = await at.replay(failed.id, Wanted(Mode.RESUME))
        turns = await at.system.reads.turns(resumed.id)
        assert engine.requests[2].body["messages"] == engine.requests[1].body["messages"]
    assert (resumed.status, resumed.result, resumed.replay_of) == (JobStatus.SUCCEEDED, CLEAR["text"], failed.id)
    assert [(turn.state, turn.carried) for turn in turns] == [("weigh", True), ("tell", False)]
    assert ledger == ["P-7"]


async def test_a_fork_goes_another_way_by_a_changed_question(database_url: str) -> None:
    question = "The label is {{ tools.ship.label }}. Tell the customer, and name the label."
    async with desk(database_url, WEIGHT, VAGUE, CLEAR, WEIGHT, CLEAR) as (at, engine):
        failed = await at.run()
        changes: dict[str, Any] = {"states.tell.ask": question}
        forked = await at.replay(failed.id, Wanted(Mode.FORK, from_turn=2, changes=changes))
        assert engine.requests[-1].text.startswith("The label is L-1. Tell the customer, and name the label.")
        anew = await at.replay(failed.id, Wanted(Mode.FORK))  # all turns are asked again; the parcel is gone
        kinds = [record.kind for record in await at.system.reads.events(anew.id)]
    assert (forked.status, anew.status) == (JobStatus.SUCCEEDED, JobStatus.SUCCEEDED)
    assert "tool_carried" in kinds
    assert ledger == ["P-7"]
