"""What a model, a tool or a user wrote comes back from the store to the letter."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from stepladder.models.ids import uuid7
from stepladder.models.records import Stamp
from stepladder.schemas.answer import Completion, Lost, Received, Usage, Verdict, Violation
from stepladder.schemas.degraded import Degraded, Loss
from stepladder.schemas.job import Failure, JobStatus
from stepladder.schemas.outcomes import Cause, Outcome, Rungs
from stepladder.schemas.tool import Effect
from stepladder.workflows.job import Attempt, Job, Message, Turn
from stepladder.workflows.transition import Ask, Finished, Rest, RunTool, Transition
from stepladder.workflows.visits import SignalWait, ToolCall, ToolError, VisitStatus

if TYPE_CHECKING:
    from stepladder.models.records import Claim
    from stepladder.workflows.visits import Visit

    from .conftest import Bench

NOW = datetime(2026, 1, 1, tzinfo=UTC)
texts = st.text(max_size=30)  # any character but surrogates, NUL included
words = st.sampled_from(["stop", "length", "ok", "approve"])
numbers = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
jsons = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(texts, jsons, max_size=3)
moments = st.datetimes(timezones=st.just(UTC)).map(lambda moment: moment.replace(fold=0))
losses = st.lists(st.builds(Loss, texts, texts), max_size=2).map(tuple)
violations = st.lists(st.builds(Violation, texts, texts, texts), max_size=2).map(tuple)


@st.composite
def verdicts(draw: st.DrawFn) -> Verdict:
    outcome = draw(st.sampled_from(Outcome))
    return Verdict(
        outcome=outcome,
        cause=draw(st.none() | words),
        rungs=Rungs.climbed(draw(st.integers(0, 4))),
        errors=draw(violations),
        observed=draw(violations),
        output=draw(jsons) if outcome is Outcome.VALID else None,
        completion=Completion(
            content=draw(st.none() | st.binary(max_size=30)),
            reasoning=draw(st.none() | texts),
            finish_reason=draw(st.none() | words),
            usage=draw(st.none() | st.builds(Usage, st.integers(0, 10**6), st.integers(0, 10**6))),
            model="as the engine calls it",
        ),
        retry_after_s=draw(st.none() | st.floats(0, 1e6)),
    )


@st.composite
def turns(draw: st.DrawFn, visit: int, ordinal: int) -> Turn:
    found = draw(st.lists(verdicts(), min_size=1, max_size=3))
    attempts = tuple(
        Attempt(
            turn=ordinal,
            ordinal=number,
            max_completion_tokens=draw(st.integers(1, 10**6)),
            sampling=draw(objects),
            note=draw(texts),
            history_from=draw(st.integers(1, 9)),
            history_to=draw(st.integers(0, 9)),
            content_hash=draw(st.none() | st.just("f" * 64)),
            # An output is the turn's, and so the last attempt's alone.
            verdict=verdict if number == len(found) or verdict.outcome is not Outcome.VALID else Verdict(Outcome.EMPTY),
        )
        for number, verdict in enumerate(found, 1)
    )
    last = attempts[-1].verdict
    assert last is not None
    return Turn(
        visit=visit,
        ordinal=ordinal,
        state="ask",
        question=draw(texts),
        opened_at=draw(moments),
        schema_hash="a" * 64,
        attempts=attempts,
        outcome=last.outcome,
        action=draw(st.none() | words),
        output=last.output,
        degraded=draw(st.none() | st.builds(Degraded, jsons, losses, st.integers(1, 9), st.sampled_from(Outcome))),
        closed_at=draw(moments),
        carried=draw(st.booleans()),
        status=VisitStatus.CLOSED,
    )


@st.composite
def tool_calls(draw: st.DrawFn, visit: int) -> ToolCall:
    error = draw(st.none() | st.builds(ToolError, words, texts))
    return ToolCall(
        visit=visit,
        state="run",
        tool="usage_query",
        effect=draw(st.sampled_from(Effect)),
        arguments=draw(objects),
        key="key",
        opened_at=draw(moments),
        result=draw(jsons) if error is None else None,
        error=error,
        closed_at=draw(moments),
        carried=draw(st.booleans()),
        status=VisitStatus.CLOSED,
    )


@st.composite
def waits(draw: st.DrawFn, visit: int) -> SignalWait:
    return SignalWait(
        visit=visit,
        state="wait",
        signal="approval",
        wait_id=draw(st.uuids()),
        show=draw(jsons),
        opened_at=draw(moments),
        until=draw(st.none() | moments),
        frozen=draw(objects),
        payload=draw(jsons),
        signal_id=draw(st.none() | st.uuids()),
        action=draw(st.none() | words),
        closed_at=draw(moments),
        carried=draw(st.booleans()),
        status=VisitStatus.CLOSED,
    )


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    visits: list[Visit] = []
    ordinal = 0
    for visit, kind in enumerate(draw(st.lists(st.sampled_from(["ask", "tool", "wait"]), max_size=4)), 1):
        match kind:
            case "ask":
                ordinal += 1
                visits.append(draw(turns(visit, ordinal)))
            case "tool":
                visits.append(draw(tool_calls(visit)))
            case _:
                visits.append(draw(waits(visit)))
    said = draw(st.lists(texts, max_size=4))
    return Job(
        id=UUID(int=0),
        lineage=draw(st.uuids()),
        input=draw(jsons),
        created_at=draw(moments),
        status=JobStatus.RUNNING,
        state=draw(st.none() | words),
        visits=tuple(visits),
        transcript=tuple(Message(ordinal, ordinal // 2, "user", text) for ordinal, text in enumerate(said, 1)),
        tokens=draw(st.integers(0, 2**40)),
        token_budget=draw(st.none() | st.integers(0, 2**40)),
        deadline_at=draw(st.none() | moments),
        due_at=draw(st.none() | moments),
        event_count=draw(st.integers(1, 100)),
        principal=draw(words),
        scopes=draw(st.none() | st.frozensets(words)),
        failure=draw(st.none() | st.sampled_from(Failure)),
        failure_detail=draw(st.none() | words),
        result=draw(jsons),
        waiting_for=draw(st.none() | words),
    )


def remembered(job: Job) -> Job:
    """The job as the machine needs it: its verdicts without the texts that are the record's alone."""

    def remember(attempt: Attempt) -> Attempt:
        verdict = attempt.verdict
        if verdict is None:
            return attempt
        completion = Completion(finish_reason=verdict.completion.finish_reason, usage=verdict.completion.usage)
        return replace(attempt, verdict=replace(verdict, completion=completion))

    return replace(
        job,
        visits=tuple(
            replace(visit, attempts=tuple(map(remember, visit.attempts))) if isinstance(visit, Turn) else visit
            for visit in job.visits
        ),
    )


async def play(bench: Bench, claim: Claim, job: Job) -> None:
    """Commits the job visit by visit and attempt by attempt, opened first and closed later, and lets go of it."""
    for visit in job.visits:
        match visit:
            case Turn():
                opened = replace(
                    visit,
                    attempts=(),
                    outcome=None,
                    action=None,
                    output=None,
                    degraded=None,
                    closed_at=None,
                    status=VisitStatus.RUNNING,
                )
                for attempt in visit.attempts:
                    asked = replace(attempt, verdict=None, content_hash=None)
                    await bench.commit(claim, Transition(job, Ask(opened, asked), visits=(opened,), opened=asked))
                    assert attempt.verdict is not None
                    came = Received(200, b"raw", retry_after_s=attempt.verdict.retry_after_s)
                    assert await bench.answer(claim, attempt, came)
                    judged = Transition(job, Rest(visit.opened_at), judged=(attempt,))
                    assert await bench.commit(claim, judged, release=False)
            case ToolCall():
                called = replace(visit, result=None, error=None, closed_at=None, status=VisitStatus.RUNNING)
                await bench.commit(claim, Transition(job, RunTool(called), visits=(called,)))
            case SignalWait():
                waited = replace(
                    visit, payload=None, signal_id=None, action=None, closed_at=None, status=VisitStatus.WAITING
                )
                await bench.commit(claim, Transition(job, Rest(visit.opened_at), visits=(waited,)), release=False)
        await bench.commit(claim, Transition(job, Rest(visit.opened_at), visits=(visit,)), release=False)
    assert await bench.commit(claim, Transition(job, Rest(NOW), messages=job.transcript))


def with_own_key(visit: Visit) -> Visit:
    """Keys are of one lineage: under one key, one job begins a call that cannot be undone."""
    return replace(visit, key=str(uuid7())) if isinstance(visit, ToolCall) else visit


NUL: dict[str, Any] = {"k\0": ["\0", "\\u0000", "😀\U0010ffff", 2**70, 1.0, -0.0, 1e300]}


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(jobs())
@example(Job(UUID(int=0), UUID(int=1), NUL, created_at=datetime(1, 1, 1, tzinfo=UTC)))
async def test_a_job_comes_back_as_the_machine_left_it(bench: Bench, job: Job) -> None:
    visits = tuple(with_own_key(visit) for visit in job.visits)
    job = replace(job, id=uuid7(), lineage=uuid7(), visits=visits)
    await bench.submit(replace(job, state=None, visits=(), transcript=()))  # else it would be taken over from another
    await play(bench, await bench.claim(job), job)
    claim = await bench.claim(job)
    expected = replace(remembered(job), event_count=1)  # no step had one, and the store counts for itself
    assert claim.job == expected
    # 1 equals 1.0 and True in Python, and no two of them are the same JSON.
    assert repr(claim.job.visits) == repr(expected.visits)
    assert repr((claim.job.input, claim.job.result)) == repr((job.input, job.result))


async def test_a_lone_surrogate_neither_stops_the_store_nor_gets_lost(bench: Bench) -> None:
    job = await bench.submit()
    claim, _ = await bench.ask(await bench.claim(job), question="half \ud83d of a face")
    await bench.store.release(claim)
    turn = (await bench.claim(job)).job.visits[0]
    assert isinstance(turn, Turn)
    assert turn.question == "half \ud83d of a face"


async def test_foreign_words_that_postgresql_cannot_hold_do_not_stop_a_commit(bench: Bench) -> None:
    job, claim, attempt = await bench.asked()
    await bench.answer(claim, attempt)
    odd = Verdict(Outcome.EMPTY, "no\0content", completion=Completion(finish_reason="st\0p"))
    claim = await bench.judge(claim, attempt, odd)
    failed = replace(claim.job, status=JobStatus.FAILED, failure=Failure.REJECTED, failure_detail="said \0")
    assert await bench.commit(claim, Transition(failed, Finished()))
    assert (await bench.row(job))["failure_detail"] == "said \ufffd"


async def test_a_stream_is_kept_compressed_and_comes_back_byte_for_byte(bench: Bench) -> None:
    body = b'data: {"choices": [{"delta": {"content": "\xff\\u0000"}}]}\n\n' * 200
    job, claim, attempt = await bench.asked()
    assert await bench.answer(claim, attempt, Received(200, body, streamed=True))
    await bench.store.release(claim)
    assert (await bench.pending(job)).arrival == Received(200, body, streamed=True)
    [row] = await bench.rows("SELECT length(raw) AS size, raw_encoding FROM attempts")
    assert row["raw_encoding"] == "gzip"
    assert row["size"] < len(body) / 20


@pytest.mark.parametrize(
    "lost",
    [
        Lost(Cause.CONNECT, "refused"),
        Lost(Cause.STREAM_INCOMPLETE, "ended in the middle: \0", b"data: {", status=200, streamed=True),
    ],
)
async def test_what_was_lost_comes_back_as_it_was_lost(bench: Bench, lost: Lost) -> None:
    job, claim, attempt = await bench.asked()
    assert await bench.answer(claim, attempt, lost)
    await bench.store.release(claim)
    assert (await bench.pending(job)).arrival == lost


async def test_a_pending_attempt_brings_back_the_request_id_of_its_stamp(bench: Bench) -> None:
    job, claim = await bench.claimed()
    attempt, turn = Attempt(1, 1, 10), Turn(1, "ask", job.created_at, 1, "?", "a" * 64)
    step = Transition(replace(claim.job, status=JobStatus.RUNNING), Ask(turn, attempt), visits=(turn,), opened=attempt)
    assert await bench.store.commit(claim, step, Stamp("request-7"))
    await bench.store.release(claim)
    pending = await bench.pending(job)
    assert (pending.request_id, pending.attempt, pending.arrival) == ("request-7", attempt, None)


async def test_the_next_worker_has_what_an_open_turn_said_and_not_a_closed_one(bench: Bench) -> None:
    job, claim, attempt = await bench.asked()
    assert await bench.answer(claim, attempt)
    cut = Verdict(Outcome.TRUNCATION, "budget", completion=Completion(b'{"hours": 1, \xff'))
    rest = Transition(claim.job, Rest(NOW), judged=(replace(attempt, verdict=cut),))
    assert await bench.commit(claim, rest)
    claim = await bench.claim(job)
    assert [completion.content for completion in completions(claim.job)] == [b'{"hours": 1, \xff']
    turn = claim.job.visits[0]
    assert isinstance(turn, Turn)
    closed = turn.close(NOW, outcome=Outcome.TRUNCATION)
    assert await bench.commit(claim, Transition(replace(claim.job, visits=(closed,)), Rest(NOW), visits=(closed,)))
    assert [completion.content for completion in completions((await bench.claim(job)).job)] == [None]


def completions(job: Job) -> list[Completion]:
    turns = [visit for visit in job.visits if isinstance(visit, Turn)]
    return [attempt.verdict.completion for turn in turns for attempt in turn.attempts if attempt.verdict is not None]
