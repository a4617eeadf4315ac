"""Workers die, lose their jobs and meet each other: no answer is paid for twice, and only one of them writes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
import structlog

import stepladder
from stepladder.models.records import LeaseStatus, Receipt
from stepladder.runner.drive import Driver
from stepladder.runner.machines import Machines
from stepladder.runner.runner import Runner, Slice, SliceEnd
from stepladder.schemas.finding import BadDocumentError
from stepladder.schemas.tool import Kit
from stepladder.testing import Answer, Fault, eventually
from stepladder.workflows.transition import Ask, Transition
from support.leases import heartbeat

from .conftest import asking

if TYPE_CHECKING:
    from .conftest import Open, Works

ASK: dict[str, Any] = {"only": asking()}
ABANDONED = ("transport", "abandoned")
VALID = ("valid", None)


async def in_flight(works: Works, requests: int = 1) -> None:
    await eventually(lambda: len(works.engine.requests) == requests and works.engine.in_flight > 0)


async def end(task: asyncio.Task[Slice]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


# A worker dies


async def test_a_turn_of_a_cancelled_worker_is_asked_again(works: Open) -> None:
    w = await works(Fault("hang"), {"n": 1})
    job = await w.submit(ASK)
    first = asyncio.create_task(w.runner(owner="first").run_slice(job))
    await in_flight(w)
    await end(first)
    await eventually(lambda: w.engine.aborted == [1], what="the engine's request ended with its worker")

    second = await w.runner(owner="second").run_slice(job)  # at once: no lease has to run out
    assert second.end is SliceEnd.FINISHED
    assert await w.outcomes(job) == [ABANDONED, VALID]
    assert "attempt_abandoned" in await w.kinds(job)
    [turn] = await w.reads.turns(job)
    assert (turn.outcome, turn.output) == ("valid", {"n": 1})
    assert w.engine.requests[0].body == w.engine.requests[1].body  # the same question, to the letter


async def test_a_job_of_a_dead_worker_is_taken_over_when_its_lease_ends(works: Open) -> None:
    w = await works({"n": 1})
    job = await w.submit(ASK)
    runner = w.runner(owner="dead", lease_s=0.3)
    # The worker gets as far as the row of its request, and is never heard of again.
    claim = await w.store.claim("dead", 0.3, job)
    assert claim is not None
    await w.open_attempt(runner, claim)

    assert (await w.runner().run_slice(job)).end is SliceEnd.IDLE
    await w.drive(job)
    assert await w.outcomes(job) == [ABANDONED, VALID]
    assert len(w.engine.requests) == 1
    assert heartbeat(w.store, claim) is LeaseStatus.LOST


async def test_abandoned_attempts_count_against_no_limit(works: Open) -> None:
    w = await works(Fault("hang"), Fault("hang"), {"n": 1})
    job = await w.submit(ASK, retry={"attempts": 1, "transport": 0})
    for request in (1, 2):
        worker = asyncio.create_task(w.runner().run_slice(job))
        await in_flight(w, request)
        await end(worker)
    await w.drive(job)
    assert await w.outcomes(job) == [ABANDONED, ABANDONED, VALID]


async def test_a_stored_answer_is_judged_and_not_asked_for_again(works: Open) -> None:
    w = await works({"n": 7})
    job = await w.submit(ASK)
    runner = w.runner()

    class DiedAfterTheAnswerError(Exception):
        pass

    async def arrived(*arguments: Any, **options: Any) -> bool:
        await original(*arguments, **options)
        raise DiedAfterTheAnswerError

    original = w.store.arrived
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(w.store, "arrived", arrived)
        with pytest.raises(DiedAfterTheAnswerError):
            await runner.run_slice(job)
    [row] = await w.rows("SELECT outcome, raw IS NOT NULL AS came, arrived_at FROM attempts WHERE job_id = %s", job)
    assert (row["outcome"], row["came"]) == (None, True)

    await w.rows("UPDATE jobs SET wake_at = now() WHERE id = %s", job)  # it was handed back for a while
    done = await w.runner().run_slice(job)
    assert done.end is SliceEnd.FINISHED
    assert await w.outcomes(job) == [VALID]
    assert len(w.engine.requests) == 1
    [after] = await w.rows("SELECT arrived_at FROM attempts WHERE job_id = %s", job)
    assert after["arrived_at"] == row["arrived_at"]


# A job is lost


async def test_a_lost_lease_stops_the_request_and_writes_nothing_more(works: Open) -> None:
    w = await works(Fault("hang"), {"n": 1})
    job = await w.submit(ASK)
    slow = asyncio.create_task(w.runner(owner="slow", lease_s=0.3).run_slice(job))
    await in_flight(w)
    await w.expire_lease(job)
    other = await w.store.claim("other", 60, job)
    assert other is not None
    assert other.taken_over
    before = await w.dump(job)

    ended = await slow
    assert ended.end is SliceEnd.LOST
    await eventually(lambda: w.engine.aborted == [1])
    assert await w.dump(job) == before

    await w.store.release(other)
    await w.drive(job)
    assert await w.outcomes(job) == [ABANDONED, VALID]


async def test_an_answer_that_arrives_after_the_lease_is_not_written(works: Open) -> None:
    w = await works(Answer({"n": 1}, delay_s=0.3))
    job = await w.submit(ASK)
    slow = asyncio.create_task(w.runner(owner="slow", lease_s=60).run_slice(job))  # its next heartbeat is far away
    await in_flight(w)
    await w.expire_lease(job)
    assert await w.store.claim("other", 60, job) is not None
    before = await w.dump(job)
    ended = await slow
    assert ended.end is SliceEnd.LOST
    assert await w.dump(job) == before


async def test_a_lease_is_kept_while_the_engine_thinks(works: Open) -> None:
    w = await works(Answer({"n": 1}, delay_s=1.0))
    job = await w.submit(ASK)
    worker = asyncio.create_task(w.runner(lease_s=0.4).run_slice(job))
    await in_flight(w)
    ends = set()

    async def the_other_comes_by() -> bool:
        if not worker.done():
            ends.add((await w.runner().run_slice(job)).end)
        return worker.done()

    await eventually(the_other_comes_by)
    assert ends == {SliceEnd.IDLE}
    assert (await worker).end is SliceEnd.FINISHED
    assert await w.outcomes(job) == [VALID]


async def test_of_several_runners_on_one_job_one_works(works: Open) -> None:
    w = await works(Answer({"n": 1}, delay_s=0.2))
    job = await w.submit(ASK)
    drivers = [Driver(w.runner(owner=name), w.store, w.reads, {}) for name in ("one", "two", "three")]
    ends = await asyncio.wait_for(asyncio.gather(*(driver.drive(job) for driver in drivers)), 20)
    assert ends == [SliceEnd.FINISHED] * 3
    assert len(w.engine.requests) == 1
    assert (await w.job(job)).attempts == 1


async def test_a_worker_that_lacks_a_tool_hands_the_job_back(works: Open) -> None:
    w = await works({"n": 1})
    job = await w.submit(ASK)
    await w.rows(
        """UPDATE workflows SET document = jsonb_set(document::jsonb, '{states,only,rules}',
        '[{"id": "r", "call": "nobody_has_it"}]')::json
        WHERE (name, version) = (SELECT workflow, version FROM jobs WHERE id = %s)""",
        job,
    )
    with pytest.raises(BadDocumentError, match="nobody_has_it"):
        await w.runner().run_slice(job)
    [row] = await w.rows("SELECT lease_owner, wake_at > now() AS later FROM jobs WHERE id = %s", job)
    assert row == {"lease_owner": None, "later": True}
    assert w.engine.requests == []


# Cancellation is requested


async def test_cancellation_stops_the_engine_in_mid_answer(works: Open) -> None:
    w = await works(Answer({"n": 1}, chunk_chars=1, chunk_delay_s=5))
    job = await w.submit(ASK)
    worker = asyncio.create_task(w.runner(lease_s=0.3).run_slice(job))
    await in_flight(w)
    assert await w.store.request_cancel(job) is Receipt.ACCEPTED
    assert (await worker).end is SliceEnd.FINISHED
    await eventually(lambda: w.engine.aborted == [1])
    done = await w.job(job)
    assert (done.status, done.failure) == ("cancelled", None)
    assert await w.outcomes(job) == [("transport", "aborted")]
    assert (await w.kinds(job))[-1] == "job_cancelled"


async def test_a_resting_or_new_job_is_cancelled_when_next_claimed(works: Open) -> None:
    w = await works(Answer("busy", status=503, headers={"Retry-After": "100"}))
    fresh, resting = await w.submit(ASK), await w.submit(ASK)
    assert (await w.runner().run_slice(resting)).end is SliceEnd.RESTING
    for job in (fresh, resting):
        await w.store.request_cancel(job)
        assert (await w.runner().run_slice(job)).end is SliceEnd.FINISHED
        assert (await w.job(job)).status == "cancelled"
        assert await w.store.request_cancel(job) is Receipt.FINAL
    assert len(w.engine.requests) == 1


# Backoff, deadline, budget


async def test_a_worker_sleeps_through_a_short_backoff(works: Open) -> None:
    w = await works(Fault("reset_before"), {"n": 1})
    job = await w.submit(ASK)
    ended = await w.runner().run_slice(job)
    assert ended.end is SliceEnd.FINISHED
    first, second = await w.attempts(job)
    assert (first.cause, second.outcome) == ("disconnected", "valid")
    [scheduled] = [record.data for record in await w.reads.events(job) if record.kind == "retry_scheduled"]
    assert isinstance(scheduled["after_s"], float)
    assert (second.started_at - first.started_at).total_seconds() >= scheduled["after_s"]


async def test_a_long_backoff_releases_the_job_until_it_is_due(works: Open) -> None:
    w = await works(Answer("busy", status=429, headers={"Retry-After": "77"}), {"n": 1})
    job = await w.submit(ASK)
    ended = await w.runner().run_slice(job)
    assert ended.end is SliceEnd.RESTING
    [row] = await w.rows(
        "SELECT lease_owner, status, extract(epoch FROM wake_at - now())::int AS left FROM jobs WHERE id = %s", job
    )
    assert (row["lease_owner"], row["status"]) == (None, "running")
    assert 70 <= row["left"] <= 77
    assert (await w.runner().run_slice(job)).end is SliceEnd.IDLE
    await w.rows("UPDATE jobs SET wake_at = now(), due_at = now() WHERE id = %s", job)
    assert (await w.runner().run_slice(job)).end is SliceEnd.FINISHED
    assert await w.outcomes(job) == [("transport", "http_429"), VALID]


async def test_a_backoff_outlasts_the_worker_that_dies_in_it(works: Open) -> None:
    w = await works(Answer("busy", status=503, headers={"Retry-After": "3"}), {"n": 1})
    job = await w.submit(ASK)
    worker = asyncio.create_task(w.runner().run_slice(job))

    async def rests() -> bool:
        return "retry_scheduled" in await w.kinds(job)

    await eventually(rests)
    await end(worker)
    due = (await w.rows("SELECT due_at FROM jobs WHERE id = %s", job))[0]["due_at"]
    await w.drive(job)
    _, second = await w.attempts(job)
    assert second.started_at >= due
    assert await w.outcomes(job) == [("transport", "http_503"), VALID]


@pytest.mark.parametrize("deadline_s", [0, 1])
async def test_the_deadline_ends_a_job_with_a_silent_engine(works: Open, deadline_s: int) -> None:
    w = await works(respond=lambda _: Fault("hang"))
    done = await w.run(ASK, limits={"deadline_s": deadline_s})
    assert (done.status, done.failure) == ("failed", "deadline")
    expected = [] if deadline_s == 0 else [("transport", "timeout")]
    assert await w.outcomes(done.id) == expected
    assert len(w.engine.requests) == len(expected)


async def test_a_token_budget_bounds_the_job_and_each_request(works: Open) -> None:
    wrong = [Answer({"n": -n}, prompt_tokens=10, completion_tokens=tokens) for n, tokens in ((1, 50), (2, 30))]
    w = await works(*wrong)
    done = await w.run(ASK, limits={"token_budget": 100}, max_completion_tokens=90, retry={"attempts": 9})
    assert (done.failure, done.tokens) == ("token_budget", 100)
    assert "100 of 100 tokens" in str(done.failure_detail)
    assert [request.body["max_completion_tokens"] for request in w.engine.requests] == [90, 30]


async def test_a_budget_of_0_asks_nothing(works: Open) -> None:
    w = await works({"n": 1})
    assert (await w.run(ASK, limits={"token_budget": 0})).failure == "token_budget"
    assert (await w.run(ASK, limits={"max_turns": 0})).failure == "max_turns"
    assert (await w.run(ASK, retry={"attempts": 0})).failure == "attempts_exhausted"
    assert w.engine.requests == []


# Many at once


async def test_what_was_committed_is_what_is_observed(works: Open) -> None:
    w = await works({"n": -1}, {"n": 1})
    steps: list[Transition] = []
    job = await w.submit(ASK)
    await w.runner(observe=steps.append).run_slice(job)
    assert [type(step.next).__name__ for step in steps] == ["Ask", "Ask", "Finished"]
    written = (await w.reads.events(job))[1:]  # the first one is the submission's
    seen = [event for step in steps for event in step.events]
    assert [(event.ordinal, event.kind, event.data) for event in seen] == [
        (event.ordinal, event.kind, event.data) for event in written
    ]
    asked = [step.next for step in steps if isinstance(step.next, Ask)]
    assert [ask.attempt.ordinal for ask in asked] == [1, 2]


async def test_logs_carry_the_ids_and_neither_prompt_nor_answer(works: Open) -> None:
    w = await works({"n": 41})
    job = await w.submit(ASK)
    with structlog.testing.capture_logs(processors=[structlog.contextvars.merge_contextvars]) as logs:
        await w.runner().run_slice(job)
    [judged] = [entry for entry in logs if entry["event"] == "attempt judged"]
    assert (judged["job"], judged["turn"], judged["attempt"]) == (str(job), 1, 1)
    assert (judged["workflow"], judged["outcome"]) == ("w", "valid")
    assert "Which number" not in str(logs)
    assert "41" not in {str(value) for entry in logs for value in entry.values()}
    assert structlog.contextvars.get_contextvars() == {}


async def test_a_job_whose_tools_a_worker_lacks_can_still_be_cancelled(works: Open) -> None:
    @stepladder.tool("only_here", effect="read")
    def only_here() -> int:
        return 1

    w = await works()
    hold = {"wait": {"signal": "word"}, "next": {"go": "look"}}
    look = {"tool": "only_here", "next": {"ok": "done"}}
    job = await w.submit({"hold": hold, "look": look})
    await w.drive(job)
    stranger = Runner(w.store, Machines(w.store, Kit()), w.client, w.identity)
    await w.store.request_cancel(job)
    assert (await stranger.run_slice(job)).end is SliceEnd.FINISHED
    assert (await w.job(job)).status == "cancelled"
