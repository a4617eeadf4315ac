"""Chapter 5. PostgreSQL holds the truth: a worker may die at any line, and another one goes on."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from stepladder.runner.machines import compiled
from stepladder.runner.runner import SliceEnd
from stepladder.schemas.job import JobStatus
from stepladder.schemas.tool import Kit
from stepladder.services.submission import publish, submit
from stepladder.testing import Fault, ScriptedEngine, eventually
from stepladder.wiring.system import open_system
from stepladder.workflows.load import Loaded, load_document

from .test_2_an_answer_climbs_four_rungs import RIGHT, SUM

if TYPE_CHECKING:
    from uuid import UUID

    from stepladder.wiring.system import System


async def submitted(system: System, document: str = SUM) -> UUID:
    loaded = load_document(document)
    assert isinstance(loaded, Loaded)
    machine = compiled(loaded.document, Kit())
    await publish(system.store, machine)
    return (await submit(system.store, machine, {"a": 2, "b": 3}, datetime.now(UTC))).id


async def test_a_turn_whose_worker_died_is_asked_again_and_the_lost_attempt_is_not_hidden(database_url: str) -> None:
    with ScriptedEngine([Fault("hang"), RIGHT]) as engine:
        async with open_system(database_url, engine.url, Kit()) as system:
            job_id = await submitted(system)
            worker = asyncio.create_task(system.runner.run_slice(job_id))
            await eventually(lambda: len(engine.requests) == 1, what="the request is on its way")
            worker.cancel()  # as a worker that is stopped; a killed one is taken over when its lease is over
            await asyncio.wait((worker,))

            another = await system.runner.run_slice(job_id)
            assert another.end is SliceEnd.FINISHED
            (turn,) = await system.reads.turns(job_id)
            job = await system.reads.overview(job_id)
    assert [(attempt.outcome, attempt.cause) for attempt in turn.attempts] == [
        ("transport", "abandoned"),
        ("valid", None),
    ]
    assert job is not None
    assert (job.status, job.result) == (JobStatus.SUCCEEDED, RIGHT)


async def test_of_two_workers_with_one_job_one_works(database_url: str) -> None:
    with ScriptedEngine([RIGHT]) as engine:
        async with open_system(database_url, engine.url, Kit()) as system:
            job_id = await submitted(system)
            ends = await asyncio.gather(*(system.runner.run_slice(job_id) for _ in range(2)))
        assert len(engine.requests) == 1
    assert sorted(slice_.end for slice_ in ends) == [SliceEnd.FINISHED, SliceEnd.IDLE]


async def test_the_exact_bytes_are_kept_whatever_they_were(database_url: str) -> None:
    odd = '```json\n{"total": 5}\n```'
    with ScriptedEngine([odd, RIGHT]) as engine:
        async with open_system(database_url, engine.url, Kit()) as system:
            job_id = await submitted(system)
            await system.runner.run_slice(job_id)
            (turn,) = await system.reads.turns(job_id)
    assert turn.attempts[0].content_bytes == odd.encode()
