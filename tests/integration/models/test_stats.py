"""Prices and their history, the views that count, statistics, the trend and the slowest turns."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from stepladder.models.database import Database
from stepladder.models.prices import keep_prices
from stepladder.queries.reads import Reads
from stepladder.queries.stats import read_slowest, read_trend
from stepladder.schemas.answer import Completion, Lost, Usage, Verdict, Violation
from stepladder.schemas.outcomes import Cause, Outcome, Rungs
from stepladder.schemas.prices import Price, Prices
from stepladder.workflows.job import Attempt, Turn
from stepladder.workflows.transition import Ask, Transition

if TYPE_CHECKING:
    from stepladder.models.records import Claim
    from stepladder.schemas.answer import Arrival
    from stepladder.schemas.stats import WorkflowStats

    from .conftest import Bench

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


def price(prompt: str, completion: str) -> Price:
    return Price(Decimal(prompt), Decimal(completion))


def answer(
    outcome: Outcome, cause: str | None = None, passed: int = 4, prompt: int = 100, completion: int = 50
) -> Verdict:
    usage = Usage(prompt, completion) if prompt else None
    return Verdict(outcome, cause, Rungs.climbed(passed), completion=Completion(b"{}", usage=usage))


VALID = answer(Outcome.VALID)
BROKEN_RULE = answer(Outcome.SEMANTIC, "arithmetic", 3)
BROKEN_SCHEMA = answer(Outcome.SCHEMA_VIOLATION, "type", 2)
CUT = answer(Outcome.TRUNCATION, "budget", 0)
NOTHING = answer(Outcome.EMPTY, "no_content", 1, completion=0)
LOST = Verdict(Outcome.TRANSPORT, "connect")


async def play(bench: Bench, *verdicts: Verdict) -> Claim:
    """A job whose one turn gets these verdicts; it is still leased."""
    _, claim, attempt = await bench.asked()
    for nth, verdict in enumerate(verdicts, 2):
        arrival: Arrival | None = Lost(Cause.CONNECT, "") if verdict.outcome is Outcome.TRANSPORT else None
        assert await bench.answer(claim, attempt, arrival)
        if nth > len(verdicts):
            return await bench.judge(claim, attempt, verdict)
        again = Attempt(1, nth, 128)
        turn = claim.job.visits[0]
        assert isinstance(turn, Turn)
        step = Transition(claim.job, Ask(turn, again), judged=(replace(attempt, verdict=verdict),), opened=again)
        assert await bench.commit(claim, step)
        attempt = again
    return claim


async def stats_of(database: Database) -> WorkflowStats:
    [stats] = await Reads(database).stats(LONG_AGO)
    return stats


async def test_without_prices_a_cost_is_unknown_and_not_zero(bench: Bench, database: Database) -> None:
    await play(bench, BROKEN_RULE, VALID)
    assert await bench.rows("SELECT cost FROM attempt_outcomes") == [{"cost": None}, {"cost": None}]
    assert await bench.rows("SELECT cost FROM job_overview") == [{"cost": None}]
    [rates] = await bench.rows("SELECT cost, cost_per_usable, tokens_per_usable FROM failure_rates")
    assert (rates["cost"], rates["cost_per_usable"], rates["tokens_per_usable"]) == (None, None, 300)
    stats = await stats_of(database)
    assert (stats.cost, stats.cost_per_usable, stats.currency, stats.tokens_per_usable) == (None, None, None, 300.0)


async def test_the_first_prices_apply_to_the_past_and_later_ones_do_not(bench: Bench, database: Database) -> None:
    await play(bench, VALID)  # 100 tokens of the prompt and 50 of the completion, of the model `model`
    assert await keep_prices(database, Prices({"model": price("1", "2"), "other": price("7", "7")}, "EUR"))
    assert not await keep_prices(database, Prices({"model": price("1.0", "2"), "other": price("7", "7")}, "EUR"))
    await play(bench, VALID)
    assert await keep_prices(database, Prices({"model": price("10", "20"), "other": price("7", "7")}, "EUR"))
    await play(bench, VALID)
    costs = [row["cost"] for row in await bench.rows("SELECT cost FROM attempt_outcomes ORDER BY started_at")]
    assert costs == [Decimal("0.0002"), Decimal("0.0002"), Decimal("0.002")]
    assert [str(cost) for cost in costs] == ["0.0002", "0.0002", "0.002"]
    [rates] = await bench.rows("SELECT sum(cost) AS cost, min(currency) AS currency FROM failure_rates")
    assert (rates["cost"], rates["currency"]) == (Decimal("0.0024"), "EUR")
    [kept] = await bench.rows("SELECT count(*) AS n FROM prices WHERE model = 'other'")
    assert kept["n"] == 1  # what did not change was not written again


async def test_a_models_own_price_wins_over_the_default(bench: Bench, database: Database) -> None:
    await keep_prices(database, Prices({"*": price("1", "0")}))
    await play(bench, VALID)
    await keep_prices(database, Prices({"*": price("1", "0"), "model": price("3", "0")}))
    await play(bench, VALID)
    await keep_prices(database, Prices({"*": price("1", "0")}))
    await play(bench, VALID)
    await keep_prices(database, Prices({}))
    await play(bench, VALID)
    costs = [row["cost"] for row in await bench.rows("SELECT cost FROM attempt_outcomes ORDER BY started_at")]
    assert costs == [Decimal("0.0001"), Decimal("0.0003"), Decimal("0.0001"), None]
    assert (await stats_of(database)).cost is None  # one of four has no price, and so their sum is not known
    [rates] = await bench.rows("SELECT cost FROM failure_rates")
    assert rates["cost"] is None


async def test_costs_in_two_currencies_are_not_added_up(bench: Bench, database: Database) -> None:
    await keep_prices(database, Prices({"*": price("1", "1")}, "EUR"))
    await play(bench, VALID)
    await keep_prices(database, Prices({"*": price("1", "1")}, "USD"))
    await play(bench, VALID)
    stats = await stats_of(database)
    assert (stats.cost, stats.currency) == (None, None)
    assert await bench.rows("SELECT cost, currency FROM failure_rates") == [{"cost": None, "currency": None}]


async def test_processes_that_start_at_once_write_each_price_once(bench: Bench, database_url: str) -> None:
    wanted = [Prices({"a": price(str(n), "1"), "*": price("1", "1")}) for n in (1, 2)] * 3
    async with Database(database_url, size=6) as wide:
        await asyncio.gather(*(keep_prices(wide, prices) for prices in wanted))
    now = await bench.rows("SELECT model FROM prices WHERE until IS NULL ORDER BY model")
    assert [row["model"] for row in now] == ["*", "a"]
    crossed = "SELECT FROM prices p JOIN prices q ON p.model = q.model AND p.since < q.since WHERE p.until > q.since"
    assert await bench.rows(crossed) == []
    assert await bench.rows("SELECT FROM prices WHERE since > until") == []


async def test_an_answer_without_token_counts_leaves_the_cost_known(bench: Bench, database: Database) -> None:
    await keep_prices(database, Prices({"*": price("1", "1")}))
    await play(bench, LOST, VALID)
    [job] = await bench.rows("SELECT cost FROM job_overview")
    assert job["cost"] == Decimal("0.00015")
    stats = await stats_of(database)
    assert [share.cost for share in stats.outcomes] == [0.00015, None]
    assert stats.cost == 0.00015


async def test_statistics_count_tokens_and_costs_retries_included(bench: Bench, database: Database) -> None:
    await keep_prices(database, Prices({"model": price("1", "2")}, "EUR"))
    await play(bench, VALID)
    await play(bench, BROKEN_SCHEMA, BROKEN_RULE, VALID)
    await play(bench, LOST, CUT, VALID)
    await play(bench, NOTHING)
    stats = await stats_of(database)
    assert (stats.workflow, stats.attempts, stats.answers, stats.usable) == ("usage-bill", 8, 7, 3)
    rates = stats.rates
    assert (rates.validity, rates.truncation, rates.zero_token, rates.transport) == (3 / 7, 1 / 7, 1 / 7, 1 / 8)
    assert rates.first_pass_format == 1 / 4  # of the lost one, the first answer came second, and was cut off
    assert rates.semantic_pass == 3 / 4
    per_turn = [(one.attempts, one.turns, one.accepted) for one in stats.attempts_per_turn]
    assert per_turn == [(1, 2, 1), (3, 2, 2)]
    assert stats.outcomes[0].as_json() == {
        "outcome": "valid", "cause": None, "attempts": 3, "prompt_tokens": 300, "completion_tokens": 150, "cost": 0.0006
    }  # fmt: skip
    assert [share.outcome for share in stats.outcomes] == [
        Outcome.VALID, Outcome.TRANSPORT, Outcome.TRUNCATION, Outcome.EMPTY, Outcome.SCHEMA_VIOLATION, Outcome.SEMANTIC,
    ]  # fmt: skip
    assert (stats.prompt_tokens, stats.completion_tokens) == (700, 300)
    assert stats.tokens_per_usable == pytest.approx(1000 / 3)
    assert stats.cost == pytest.approx(0.0013)
    assert stats.cost_per_usable == pytest.approx(0.0013 / 3)
    assert stats.jobs.live == 4
    [view] = await bench.rows("SELECT * FROM failure_rates")
    for name in ("validity", "truncation", "zero_token", "transport"):
        assert float(view[f"{name}_rate"]) == pytest.approx(getattr(rates, name), abs=0.0001)
    assert float(view["first_pass_format"]) == 0.25
    assert float(view["cost"]) == pytest.approx(stats.cost)
    assert float(view["cost_per_usable"]) == pytest.approx(stats.cost_per_usable)
    took = await bench.rows("SELECT attempts, turns, accepted FROM attempts_per_turn ORDER BY attempts")
    assert [tuple(row.values()) for row in took] == [(1, 2, 1), (3, 2, 2)]


async def test_observed_rules_are_counted_by_any_id(bench: Bench, database: Database) -> None:
    for source in ("tone", "tone", "odd \0 \ud83d"):
        await play(bench, replace(VALID, observed=(Violation("/note", 'says "source": "none" \0', source),)))
    stats = await stats_of(database)
    assert [(one.rule, one.attempts) for one in stats.observed] == [("tone", 2), ("odd \0 \ud83d", 1)]


async def test_statistics_cover_the_period_and_workflow_asked_for(bench: Bench, database: Database) -> None:
    claim = await play(bench, VALID)
    reads = Reads(database)
    later = datetime.now(UTC).replace(year=2100)
    [stats] = await reads.stats(later)
    assert (stats.attempts, stats.jobs.live, stats.rates.validity, stats.cost) == (0, 1, None, None)
    assert await reads.stats(LONG_AGO, "another") == ()
    assert await bench.commit(claim, bench.finished(claim))
    assert await reads.stats(later) == ()
    jobs = (await stats_of(database)).jobs
    assert (jobs.succeeded, jobs.live) == (1, 0)


async def test_carried_turns_are_not_counted(bench: Bench, database: Database) -> None:
    await play(bench, VALID)
    async with await bench.connect() as connection:
        await connection.execute("UPDATE turns SET carried = true")
    assert (await stats_of(database)).attempts_per_turn == []
    assert await bench.rows("SELECT * FROM attempts_per_turn") == []


STEP = timedelta(minutes=10)


async def test_each_attempt_is_counted_in_the_step_when_it_was_judged(bench: Bench, database: Database) -> None:
    await play(bench, LOST, NOTHING, CUT, BROKEN_RULE, VALID)
    await play(bench, VALID)
    since = datetime.now(UTC) - STEP * 2.5
    buckets, whole = await read_trend(database, since, STEP, 4)
    assert [bucket.at for bucket in buckets] == [since + STEP * nth for nth in range(4)]
    assert [bucket.attempts for bucket in buckets] == [0, 0, 6, 0]
    now = buckets[2]
    assert now.outcomes == dict.fromkeys(Outcome, 0) | {
        Outcome.TRANSPORT: 1,
        Outcome.EMPTY: 1,
        Outcome.TRUNCATION: 1,
        Outcome.SEMANTIC: 1,
        Outcome.VALID: 2,
    }
    [stats] = await Reads(database).stats(since)
    assert now.rates == whole.rates == stats.rates
    assert (stats.rates.validity, stats.rates.transport) == (0.4, 1 / 6)
    for steps, workflow, attempts in ((2, None, 0), (4, "nobody", 0), (4, stats.workflow, 6)):
        assert (await read_trend(database, since, STEP, steps, workflow))[1].attempts == attempts


async def test_the_slowest_closed_turns_come_first(bench: Bench, database: Database) -> None:
    for verdicts in ((VALID,), (LOST, LOST, VALID), (BROKEN_RULE, VALID)):
        await play(bench, *verdicts)
    since = LONG_AGO
    found = await read_slowest(database, since, 10)
    assert sorted(one.attempts for one in found) == [1, 2, 3]
    assert [one.took for one in found] == sorted((one.took for one in found), reverse=True)
    assert all(one.outcome is Outcome.VALID for one in found)
    assert await read_slowest(database, since, 1) == found[:1]
    assert await read_slowest(database, since, 10, "nobody") == ()
    assert await read_slowest(database, datetime.now(UTC) + STEP, 10) == ()
