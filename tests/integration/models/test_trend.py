"""What became of attempts over time: each in its step, and none outside."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from stepladder.models.reads import Reads
from stepladder.models.trend import read_slowest, read_trend, together
from stepladder.schemas.outcomes import Outcome

from .test_stats import BROKEN_RULE, CUT, LONG_AGO, LOST, NOTHING, VALID, play

if TYPE_CHECKING:
    from stepladder.models.database import Database

    from .conftest import Bench

STEP = timedelta(minutes=10)


async def test_each_attempt_is_counted_in_the_step_in_which_it_was_judged(bench: Bench, database: Database) -> None:
    await play(bench, LOST, NOTHING, CUT, BROKEN_RULE, VALID)
    await play(bench, VALID)
    since = datetime.now(UTC) - STEP * 2.5
    buckets = await read_trend(database, since, STEP, 4)
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
    assert (now.validity, now.truncation, now.zero_token, now.transport) == (0.4, 0.2, 0.2, 1 / 6)
    assert together(buckets, since).outcomes == now.outcomes
    [stats] = await Reads(database).stats(since)
    rates = stats.rates
    assert (rates.validity, rates.truncation, rates.zero_token, rates.transport) == (0.4, 0.2, 0.2, 1 / 6)
    assert [one.attempts for one in await read_trend(database, since, STEP, 2)] == [0, 0], "before it"
    assert not any(one.attempts for one in await read_trend(database, since, STEP, 4, "nobody"))
    assert sum(one.attempts for one in await read_trend(database, since, STEP, 4, stats.workflow)) == 6


async def test_the_slowest_turns_come_first_and_only_those_that_are_closed(bench: Bench, database: Database) -> None:
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
