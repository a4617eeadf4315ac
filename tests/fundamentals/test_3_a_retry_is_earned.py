"""Chapter 3. What follows a failed attempt depends on its outcome, and every retry has a bound."""

from __future__ import annotations

from stepladder.testing import Answer, ScriptedEngine, run

from .test_2_an_answer_climbs_four_rungs import RIGHT, SUM

VALUE = {"a": 2, "b": 3}


async def test_a_retry_extends_the_last_message_and_changes_nothing_before_it(database_url: str) -> None:
    with ScriptedEngine([{"total": 6}, RIGHT]) as engine:
        await run(SUM, VALUE, engine_url=engine.url, database_url=database_url)
        first, second = engine.requests
    assert second.messages[:-1] == first.messages[:-1]
    assert second.text.startswith(first.text)
    told = second.text.removeprefix(first.text)
    assert "/total" in told
    assert "must be the sum" in told
    assert "6" not in told  # the failed answer is never shown to the model


async def test_only_the_latest_errors_are_told(database_url: str) -> None:
    with ScriptedEngine([Answer("no"), {"total": 6}, RIGHT]) as engine:
        await run(SUM, VALUE, engine_url=engine.url, database_url=database_url)
        first, second, third = (request.text for request in engine.requests)
    assert "JSON" in second.removeprefix(first)
    assert "must be the sum" in third
    assert second.removeprefix(first) not in third


async def test_a_truncated_answer_is_given_more_room(database_url: str) -> None:
    cut = Answer('{"total": ', finish_reason="length", completion_tokens=64)
    with ScriptedEngine([cut, RIGHT]) as engine:
        await run(SUM, VALUE, engine_url=engine.url, database_url=database_url)
        first, second = engine.requests
    assert (first.body["max_completion_tokens"], second.body["max_completion_tokens"]) == (64, 128)
    assert second.text == first.text


async def test_attempts_are_counted(database_url: str) -> None:
    with ScriptedEngine([{"total": 6}, {"total": 7}, {"total": 8}, RIGHT]) as engine:
        ran = await run(SUM, VALUE, engine_url=engine.url, database_url=database_url)
        assert len(engine.requests) == 3
    assert ran.job.failure == "attempts_exhausted"


async def test_the_same_answer_twice_ends_the_turn(database_url: str) -> None:
    with ScriptedEngine([{"total": 6}, {"total": 6}, RIGHT]) as engine:
        ran = await run(SUM, VALUE, engine_url=engine.url, database_url=database_url)
        assert len(engine.requests) == 2
    assert ran.job.failure == "attempts_exhausted"
    assert "repeated" in (ran.job.failure_detail or "")


async def test_what_cannot_be_mended_by_asking_again_fails_at_once(database_url: str) -> None:
    refusal = Answer("The provided JSON schema contains features not supported by xgrammar.", status=400)
    with ScriptedEngine([refusal, RIGHT]) as engine:
        ran = await run(SUM, VALUE, engine_url=engine.url, database_url=database_url)
        assert len(engine.requests) == 1
    assert ran.job.failure == "schema_rejected"


async def test_a_token_budget_binds_the_whole_job(database_url: str) -> None:
    document = SUM.replace("start: add", "start: add\nlimits: {token_budget: 200}")
    wrong = [Answer({"total": 6 + n}, prompt_tokens=150, completion_tokens=60) for n in range(3)]
    with ScriptedEngine(wrong) as engine:
        ran = await run(document, VALUE, engine_url=engine.url, database_url=database_url)
        assert len(engine.requests) == 1
    assert (ran.job.failure, ran.job.tokens) == ("token_budget", 210)
