"""The store's contract where no other module tests it: submissions, pauses, changed documents."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from stepladder.models.ids import uuid7
from stepladder.models.records import KeyTaken, NewJob, Receipt, Retired, SubmissionKey, Submitted
from stepladder.models.versions import retire
from stepladder.schemas.answer import Received
from stepladder.schemas.job import JobStatus
from stepladder.workflows.job import Job

from .conftest import NOW

if TYPE_CHECKING:
    from .conftest import Bench


async def test_a_changed_document_is_kept_once_by_its_hash(bench: Bench) -> None:
    await bench.store.keep_variant("h", ("usage-bill", 1), {"first": True}, {"limits.max_turns": 3})
    await bench.store.keep_variant("h", ("usage-bill", 1), {"first": False}, {})
    assert await bench.store.variant("h") == {"first": True}
    with pytest.raises(LookupError):
        await bench.store.variant("another")


def new_job(workflow: str = "usage-bill", **fields: object) -> NewJob:
    job_id = uuid7()
    return replace(NewJob(Job(job_id, job_id, {}, NOW, event_count=1), workflow, 1), **fields)  # type: ignore[arg-type]  # any


async def test_of_a_version_that_is_retired_no_new_job_is_written(bench: Bench) -> None:
    old = await bench.submit()
    await retire(bench.store, "usage-bill", 1)
    before = await bench.dump()
    assert await bench.store.submit_many([new_job()]) == Retired("usage-bill", 1)
    assert await bench.dump() == before
    replay = new_job(replay_of=old.id)
    assert await bench.store.submit_many([replay]) == Submitted((replay.job.id,))


async def test_of_many_jobs_all_are_written_or_none(bench: Bench) -> None:
    await bench.store.publish("other", 1, "hash", {})
    await retire(bench.store, "other", 1)
    before = await bench.dump()
    assert isinstance(await bench.store.submit_many([new_job(), new_job("other"), new_job()]), Retired)
    assert await bench.dump() == before


async def test_the_same_key_and_fingerprint_again_give_the_jobs_of_the_first_time(bench: Bench) -> None:
    key = SubmissionKey("kim", "k1", "fingerprint")
    jobs = [new_job(), new_job()]
    ids = tuple(new.job.id for new in jobs)
    assert await bench.store.submitted(key) is None
    assert await bench.store.submit_many(jobs, key) == Submitted(ids)
    assert await bench.store.submit_many([new_job(), new_job()], key) == Submitted(ids, again=True)
    assert await bench.store.submitted(key) == Submitted(ids, again=True)


async def test_another_fingerprint_under_a_key_writes_nothing(bench: Bench) -> None:
    await bench.store.submit_many([new_job()], SubmissionKey("kim", "k1", "fingerprint"))
    before = await bench.dump()
    assert await bench.store.submit_many([new_job()], SubmissionKey("kim", "k1", "another")) == KeyTaken()
    assert await bench.dump() == before
    assert isinstance(await bench.store.submit_many([new_job()], SubmissionKey("ada", "k1", "another")), Submitted)


async def test_of_several_submissions_at_once_under_a_key_one_writes(bench: Bench) -> None:
    key = SubmissionKey("kim", "k1", "fingerprint")
    found = await asyncio.gather(*(bench.store.submit_many([new_job()], key) for _ in range(6)))
    submitted = [one for one in found if isinstance(one, Submitted)]
    assert len({one.job_ids for one in submitted}) == 1
    assert sorted(one.again for one in submitted) == [False, *[True] * 5]


async def test_an_answer_to_a_paused_job_is_kept_and_lets_go_of_it(bench: Bench) -> None:
    job, claim, attempt = await bench.asked()
    assert await bench.store.pause(job.id, "kim") is Receipt.ACCEPTED
    assert not await bench.answer(claim, attempt, Received(200, b"kept"))
    assert (await bench.row(job))["lease_owner"] is None
    assert await bench.store.unpause(job.id, "kim") is Receipt.ACCEPTED
    assert (await bench.pending(job)).arrival == Received(200, b"kept")


async def test_unless_paused_writes_nothing_where_the_job_is_paused(bench: Bench) -> None:
    job, claim = await bench.claimed()
    await bench.store.pause(job.id, "kim")
    before = await bench.dump()
    assert not await bench.commit(claim, bench.finished(claim), unless_paused=True)
    assert await bench.dump() == before
    assert await bench.commit(claim, bench.finished(claim))


async def test_nobody_claims_a_paused_job_and_unpaused_it_is_where_it_was(bench: Bench) -> None:
    job = await bench.submit()
    assert await bench.store.unpause(job.id, "kim") is Receipt.DUPLICATE
    assert await bench.store.pause(job.id, "kim") is Receipt.ACCEPTED
    assert await bench.store.pause(job.id, "kim") is Receipt.DUPLICATE
    assert await bench.store.claim("worker", 60.0, job.id) is None
    assert await bench.store.claim_due("worker", 60.0) == []
    assert await bench.store.unpause(job.id, "kim") is Receipt.ACCEPTED
    claim = await bench.claim(job)
    assert replace(claim.job, event_count=1) == job
    step = bench.finished(claim)
    assert await bench.commit(claim, replace(step, job=replace(step.job, status=JobStatus.CANCELLED)))
    assert await bench.store.pause(job.id, "kim") is Receipt.FINAL
    assert await bench.store.pause(uuid7(), "kim") is Receipt.UNKNOWN


async def test_what_was_sent_under_an_id_can_be_asked_for(bench: Bench) -> None:
    job, signal = await bench.submit(), uuid7()
    assert await bench.store.sent_signal(job.id, signal) is None
    await bench.store.signal(job.id, signal, "approval", {"action": "approve"})
    assert await bench.store.sent_signal(job.id, signal) == ("approval", {"action": "approve"}, "local")
