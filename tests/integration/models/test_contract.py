"""The store's contract: for each of its methods the tests that say, sentence by sentence, what it promises.

The sentences of which no other module speaks stand here.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stepladder.models.commands import JobCommands
from stepladder.models.ids import uuid7
from stepladder.models.records import KeyTaken, LeaseStatus, NewJob, Receipt, Retired, SubmissionKey, Submitted
from stepladder.models.store import Store
from stepladder.models.versions import retire
from stepladder.schemas.answer import Received
from stepladder.schemas.job import JobStatus
from stepladder.workflows.job import Job

from .conftest import NOW

if TYPE_CHECKING:
    from .conftest import Bench

TESTS = Path(__file__).parents[1]

CONTRACT: dict[str, tuple[str, ...]] = {
    "publish": ("a_definition_is_published_once_and_never_changed",),
    "workflow": ("without_a_version_the_highest_is_meant", "new_jobs_take_the_highest_version_that_is_not_retired"),
    "keep_variant": ("a_changed_document_is_kept_once_by_its_hash",),
    "variant": ("a_changed_document_that_nobody_kept_is_a_lookup_error",),
    "keep_schemas": ("output_schemas_are_kept_once_by_their_hash",),
    "submit_many": (
        "a_submitted_job_has_its_first_event_and_all_that_it_came_with",
        "metadata_that_cannot_be_stored_are_bad_input",
        "of_a_version_that_is_retired_no_new_job_is_written",
        "of_many_jobs_all_are_written_or_none",
        "the_same_key_and_fingerprint_again_give_the_jobs_of_the_first_time",
        "of_several_submissions_at_once_under_a_key_one_writes",
        "another_fingerprint_under_a_key_writes_nothing",
        "a_key_is_forgotten_after_a_day_and_cleared_away",
    ),
    "submitted": ("the_same_key_and_fingerprint_again_give_the_jobs_of_the_first_time",),
    "claim": (
        "of_two_workers_one_gets_the_job",
        "a_claim_gives_the_job_its_workflow_and_a_higher_fence",
        "an_expired_lease_is_taken_over",
        "a_job_that_is_named_is_not_kept_back_but_counts",
    ),
    "claim_due": (
        "the_higher_priority_is_claimed_first_and_then_the_longer_wait",
        "a_workflows_bound_holds_strictly_under_eight_workers_at_once",
        "a_job_that_somebody_writes_to_is_passed_over",
    ),
    "arrived": (
        "an_answer_arrives_once",
        "an_answer_that_was_stored_survives_its_worker",
        "an_answer_to_a_paused_job_is_kept_and_lets_go_of_it",
    ),
    "commit": (
        "a_stale_fence_writes_nothing_in_any_method",
        "the_same_step_from_the_rightful_worker_writes_to_every_table",
        "asking_keeps_the_job_and_leaves_its_place_in_the_queue",
        "a_signal_that_came_after_the_worker_looked_makes_the_wait_due_at_once",
        "unless_paused_writes_nothing_where_the_job_is_paused",
        "of_two_that_begin_the_same_effect_at_the_same_moment_the_store_lets_one",
    ),
    "holds": ("a_stale_fence_writes_nothing_in_any_method",),
    "heartbeat": (
        "a_heartbeat_keeps_the_lease_and_a_commit_renews_it",
        "a_request_to_cancel_reaches_the_worker_with_its_heartbeat",
    ),
    "heartbeats": ("many_leases_are_renewed_at_once_and_those_lost_or_locked_are_not",),
    "release": ("a_job_that_is_handed_back_is_due_at_once_or_when_it_was_said",),
    "signal": (
        "a_signal_wakes_the_job_that_waits_for_it",
        "a_signal_counts_once_by_its_id",
        "of_simultaneous_duplicates_one_counts",
        "a_job_that_ended_takes_no_signal_and_no_cancellation",
    ),
    "pending_signals": ("a_taken_signal_is_pending_no_longer",),
    "request_cancel": ("a_request_to_cancel_wakes_a_job_that_was_let_go_of",),
    "sent_signal": ("what_was_sent_under_an_id_can_be_asked_for",),
    "settle": ("a_settlement_wakes_the_job_and_comes_with_the_claim", "of_many_at_once_one_counts"),
    "settled_before": ("the_same_again_is_no_second_settlement_and_another_one_is_refused",),
    "pause": ("nobody_claims_a_paused_job_and_unpaused_it_is_where_it_was",),
    "unpause": ("nobody_claims_a_paused_job_and_unpaused_it_is_where_it_was",),
}


def test_every_method_has_its_sentences_and_every_sentence_its_test() -> None:
    promised = {**vars(JobCommands), **vars(Store)}
    methods = {name for name, value in promised.items() if callable(value) and not name.startswith("_")}
    assert methods == set(CONTRACT)
    written = "\n".join(path.read_text() for path in TESTS.rglob("test_*.py"))
    tests = re.findall(r"^(?:async )?def test_(\w+)\(", written, re.MULTILINE)
    named = {sentence for sentences in CONTRACT.values() for sentence in sentences}
    assert {one for one in named if not any(test.startswith(one) for test in tests)} == set()


async def test_a_stale_fence_writes_nothing_in_any_method(bench: Bench) -> None:
    job = await bench.submit()
    stale, attempt = await bench.ask(await bench.claim(job, lease_s=0.0))
    await bench.claim(job)
    before = await bench.dump()
    store = bench.store
    assert not await store.arrived(stale, attempt, Received(200, b"late"), ttft_ms=None, duration_ms=1.0)
    assert not await bench.commit(stale, bench.finished(stale))
    assert not await bench.commit(stale, bench.finished(stale), unless_paused=True)
    assert not await store.holds(stale)
    assert await store.heartbeat(stale) is LeaseStatus.LOST
    assert await store.heartbeats([stale], 60.0) == {}
    assert not await store.release(stale)
    assert await bench.dump() == before


async def test_a_changed_document_is_kept_once_by_its_hash(bench: Bench) -> None:
    await bench.store.keep_variant("h", ("usage-bill", 1), {"first": True}, {"limits.max_turns": 3})
    await bench.store.keep_variant("h", ("usage-bill", 1), {"first": False}, {})
    assert await bench.store.variant("h") == {"first": True}


async def test_a_changed_document_that_nobody_kept_is_a_lookup_error(bench: Bench) -> None:
    with pytest.raises(LookupError):
        await bench.store.variant("nobody kept it")


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
    job = await bench.submit()
    claim, attempt = await bench.ask(await bench.claim(job))
    assert await bench.store.pause(job.id, "kim") is Receipt.ACCEPTED
    assert not await bench.answer(claim, attempt, Received(200, b"kept"))
    assert (await bench.row(job))["lease_owner"] is None
    assert await bench.store.unpause(job.id, "kim") is Receipt.ACCEPTED
    pending = (await bench.claim(job)).pending
    assert pending is not None
    assert pending.arrival == Received(200, b"kept")


async def test_unless_paused_writes_nothing_where_the_job_is_paused(bench: Bench) -> None:
    job = await bench.submit()
    claim = await bench.claim(job)
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
