"""An engine that says HTTP 500 and no word: it refuses the schema, or it is broken, and it is asked which."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
import structlog

from stepladder.engine.canary import KNOWN_GOOD, MAX_TOKENS, known_good_request
from stepladder.engine.client import EngineClient
from stepladder.runner.refusals import BROKEN_S, KEPT_S, MAX_KEPT, Refusals, Suspect
from stepladder.schemas.answer import Lost, Received
from stepladder.schemas.outcomes import Cause
from stepladder.testing import Answer, Fault, Raw, ScriptedEngine, eventually
from stepladder.validation.schema import Schema, compile_schema

from .conftest import asking

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepladder.testing import Line, RecordedRequest

    from .conftest import Open

WORDLESS = Answer("", status=500)
REJECTED = ("schema_rejected", None)
BROKEN = ("transport", "http_5xx")
VALID = ("valid", None)


def is_known_good(request: RecordedRequest) -> bool:
    return request.headers["x-request-id"].endswith("-known-good")


def refusing(good: Line = '{"ok": true}', bad: Line = WORDLESS) -> Callable[[RecordedRequest], Line]:
    """An engine that gives every schema but the known-good one the same answer."""
    return lambda request: good if is_known_good(request) else bad


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("bad", [WORDLESS, Answer("Internal Server Error", status=500), Raw(b"", 500)])
async def test_a_500_is_a_refused_schema_if_a_known_good_one_works(works: Open, bad: Line, stream: bool) -> None:
    w = await works(respond=refusing(bad=bad))
    done = await w.run({"only": asking(stream=stream, sampling={"temperature": 0})})
    assert (done.status, done.failure, done.tokens) == ("failed", "schema_rejected", 0)
    assert await w.outcomes(done.id) == [REJECTED]
    asked, canary = w.engine.requests
    assert canary.body == known_good_request("scripted", {"temperature": 0})
    assert canary.headers["x-request-id"] == f"{asked.headers['x-request-id']}-known-good"
    stored = await w.rows("SELECT schema_known_bad, http_status, raw FROM attempts WHERE job_id = %s", done.id)
    assert [(row["schema_known_bad"], row["http_status"]) for row in stored] == [(True, 500)]
    shown = await w.rows("SELECT schema_known_bad FROM attempt_outcomes WHERE job_id = %s", done.id)
    assert shown == [{"schema_known_bad": True}]


@pytest.mark.parametrize(
    "good",
    [
        WORDLESS,
        Answer("EngineCore died", status=500),
        Answer("busy", status=503),
        Answer("no such model", status=404),
        Fault("reset_before"),
        Raw(b"<html>"),
        Raw(b'{"error": {"message": "EngineCore died"}}'),
    ],
)
async def test_a_broken_engine_is_transport_however_often_it_says_500(works: Open, good: Line) -> None:
    w = await works(respond=refusing(good))
    done = await w.run({"only": asking(retry={"transport": 2})})
    assert await w.outcomes(done.id) == [BROKEN, BROKEN, BROKEN]
    assert done.failure == "attempts_exhausted"
    assert sum(is_known_good(request) for request in w.engine.requests) == 1, "a broken engine is spared the question"
    [stored] = await w.rows("SELECT bool_or(schema_known_bad) AS bad FROM attempts WHERE job_id = %s", done.id)
    assert stored["bad"] is False


async def test_an_engine_that_was_broken_for_a_moment_answers_the_retry(works: Open) -> None:
    w = await works(WORDLESS, WORDLESS, {"n": 1})  # the question, the known-good one, the question again
    done = await w.run({"only": asking()})
    assert await w.outcomes(done.id) == [BROKEN, VALID]


@pytest.mark.parametrize(
    "bad",
    [
        Answer("EngineCore encountered an issue.", status=500),
        Answer("", status=502),
        Answer("", status=503),
        Fault("stream_error"),
        Fault("reset_before"),
    ],
)
async def test_what_says_more_than_nothing_is_asked_about_nowhere(works: Open, bad: Line) -> None:
    w = await works(respond=refusing(bad=bad))
    done = await w.run({"only": asking(retry={"transport": 0})})
    assert [outcome for outcome, _ in await w.outcomes(done.id)] == ["transport"]
    assert not any(is_known_good(request) for request in w.engine.requests)


async def test_without_a_strict_decoder_there_is_no_schema_to_refuse(works: Open) -> None:
    w = await works(respond=refusing())
    done = await w.run({"only": asking(decoding="prompt", retry={"transport": 0})})
    assert await w.outcomes(done.id) == [BROKEN]
    assert len(w.engine.requests) == 1


async def test_a_schema_that_was_answered_before_is_not_suspected(works: Open) -> None:
    w = await works({"n": 1}, WORDLESS, {"n": 2})
    runner = w.runner()
    for outcomes in ([VALID], [BROKEN, VALID]):
        job = await w.submit({"only": asking()})
        while not (await w.job(job)).finished_at:
            await runner.run_slice(job)
        assert await w.outcomes(job) == outcomes
    assert not any(is_known_good(request) for request in w.engine.requests)


async def test_forty_jobs_with_one_bad_schema_ask_once(works: Open) -> None:
    w = await works(respond=refusing())
    jobs = [await w.submit({"only": asking()}) for _ in range(40)]
    runner = w.runner()
    await asyncio.gather(*(runner.run_slice(job) for job in jobs))
    assert {outcome for job in jobs for outcome in await w.outcomes(job)} == {REJECTED}
    assert sum(is_known_good(request) for request in w.engine.requests) == 1


async def test_a_worker_that_takes_over_before_the_verdict_asks_again(works: Open) -> None:
    w = await works(respond=refusing())
    job = await w.submit({"only": asking()})
    claim = await w.store.claim("dead", 0.3, job)
    assert claim is not None
    runner = w.runner()
    step = await w.open_attempt(runner, claim)
    assert step.opened is not None
    assert await w.store.arrived(claim, step.opened, Received(500, b""), ttft_ms=None, duration_ms=1.0)
    await w.expire_lease(job)

    done = await w.drive(job, owner="second")
    assert (done.failure, await w.outcomes(job)) == ("schema_rejected", [REJECTED])
    assert [is_known_good(request) for request in w.engine.requests] == [True]


async def test_a_deadline_binds_the_known_good_question_too(works: Open) -> None:
    w = await works(respond=refusing(Fault("hang")))
    done = await w.run({"only": asking()}, limits={"deadline_s": 1})
    assert done.failure == "deadline"
    assert await w.outcomes(done.id) == [BROKEN]


async def test_a_job_that_is_cancelled_meanwhile_ends(works: Open) -> None:
    w = await works(respond=refusing(Fault("hang")))
    job = await w.submit({"only": asking()})
    running = asyncio.create_task(w.runner(lease_s=0.3).run_slice(job))
    await eventually(lambda: len(w.engine.requests) == 2)
    await w.store.request_cancel(job)
    await running
    assert (await w.job(job)).status == "cancelled"


# The memory, by a clock of the test's own


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def suspect(schema: str = "s", model: str = "m") -> Suspect:
    return Suspect(model, schema, {}, "r")


NOTHING = Received(500, b"")
FINE = Received(200, b"{}")


async def test_refusals_are_remembered_for_each_model_and_schema() -> None:
    clock = Clock()
    async with ScriptedEngine(respond=lambda _: "{}") as engine, EngineClient(engine.url) as client:
        refusals = Refusals(clock)

        async def known_bad(one: Suspect, arrival: Received | Lost = NOTHING) -> tuple[bool, int]:
            before = len(engine.requests)
            return await refusals.is_known_bad(client, arrival, one), len(engine.requests) - before

        assert await known_bad(suspect()) == (True, 1)
        assert await known_bad(suspect()) == (True, 0)
        assert await known_bad(suspect("other")) == (True, 1)
        assert await known_bad(suspect(model="other")) == (True, 1)
        assert await known_bad(suspect(), FINE) == (False, 0)  # it compiles after all
        assert await known_bad(suspect()) == (False, 0)
        clock.now += KEPT_S
        assert await known_bad(suspect()) == (True, 1)  # the engine may be another one by now
        assert await known_bad(suspect(), Lost(Cause.TIMEOUT, "")) == (False, 0)
        assert await known_bad(suspect(), Received(503, b"")) == (False, 0)
        assert await known_bad(suspect()) == (True, 0)


async def test_a_broken_engine_is_asked_again_after_a_while() -> None:
    clock = Clock()
    async with ScriptedEngine(["!", *[WORDLESS] * 3]) as engine, EngineClient(engine.url) as client:
        refusals = Refusals(clock)
        assert await refusals.is_known_bad(client, NOTHING, suspect("bad"))
        assert not await refusals.is_known_bad(client, NOTHING, suspect("s"))
        assert not await refusals.is_known_bad(client, NOTHING, suspect("t"))
        assert not await refusals.is_known_bad(client, NOTHING, suspect("bad"))  # nothing can be said of it now
        assert len(engine.requests) == 2
        clock.now += BROKEN_S
        assert not await refusals.is_known_bad(client, NOTHING, suspect("s"))
        assert len(engine.requests) == 3
        assert not await refusals.is_known_bad(client, FINE, suspect("u"))
        assert await refusals.is_known_bad(client, NOTHING, suspect("bad"))
        assert not await refusals.is_known_bad(client, NOTHING, suspect("s"))
        assert len(engine.requests) == 4


async def test_the_memory_is_bounded() -> None:
    async with ScriptedEngine(respond=lambda _: "{}") as engine, EngineClient(engine.url) as client:
        refusals = Refusals()
        for number in range(MAX_KEPT + 10):
            await refusals.is_known_bad(client, FINE, suspect(str(number)))
        assert await refusals.is_known_bad(client, NOTHING, suspect("0"))  # long forgotten
        assert not await refusals.is_known_bad(client, NOTHING, suspect(str(MAX_KEPT)))


async def test_the_question_is_told_in_the_log_with_its_id() -> None:
    async with ScriptedEngine(["{}", WORDLESS]) as engine, EngineClient(engine.url) as client:
        refusals = Refusals()
        with structlog.testing.capture_logs() as lines:
            await refusals.is_known_bad(client, NOTHING, suspect("s"))
            await refusals.is_known_bad(client, NOTHING, suspect("t"))
    told: list[Any] = [(line["event"], line["log_level"], line["schema"], line["request_id"]) for line in lines]
    assert told == [
        ("engine refuses a schema", "warning", "s", "r-known-good"),
        ("engine is broken", "warning", "t", "r-known-good"),
    ]


def test_the_known_good_request_is_small_strict_and_can_be_answered() -> None:
    body = known_good_request("m", {"seed": 7})
    assert (body["model"], body["seed"], body["max_completion_tokens"], body["stream"]) == ("m", 7, MAX_TOKENS, False)
    schema = compile_schema(KNOWN_GOOD)
    assert isinstance(schema, Schema)
    assert not schema.violations({"ok": True})
    assert schema.violations({"ok": "yes"})
