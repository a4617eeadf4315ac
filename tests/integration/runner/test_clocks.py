"""Workers whose own clock is wrong: every time that is compared is PostgreSQL's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from integration.runner.conftest import asking
from stepladder.runner.runner import SliceEnd
from stepladder.testing import Fault

if TYPE_CHECKING:
    from collections.abc import Callable

    from integration.runner.conftest import Open

skewed = pytest.mark.parametrize("skew_s", [-3600, -10, 10, 3600])

WAITS: dict[str, Any] = {
    "approve": {"wait": {"signal": "go", "timeout_s": 60}, "next": {"go": "done", "timeout": "broken"}}
}


def clock(skew_s: float) -> Callable[[], datetime]:
    return lambda: datetime.now(UTC) + timedelta(seconds=skew_s)


@skewed
async def test_a_deadline_is_the_databases_time(works: Open, skew_s: float) -> None:
    w = await works({"n": 1})
    job = await w.submit({"only": asking()}, limits={"deadline_s": 5})
    assert (await w.drive(job, now=clock(skew_s))).status == "succeeded"


@skewed
async def test_a_deadline_that_passed_ends_the_job(works: Open, skew_s: float) -> None:
    w = await works({"n": 1})
    job = await w.submit({"only": asking()}, limits={"deadline_s": 60})
    await w.rows("UPDATE jobs SET deadline_at = now() WHERE id = %s", job)
    assert (await w.drive(job, now=clock(skew_s))).failure == "deadline"


@skewed
async def test_a_wait_is_claimed_once_and_times_out_by_the_database(works: Open, skew_s: float) -> None:
    w = await works()
    job = await w.submit(WAITS)
    runner = w.runner(now=clock(skew_s))
    assert (await runner.run_slice(job)).end is SliceEnd.WAITING
    assert (await runner.run_slice(job)).end is SliceEnd.IDLE, "it is not due for a minute"
    [left] = await w.rows("SELECT EXTRACT(epoch FROM wake_at - now())::float8 AS s FROM jobs WHERE id = %s", job)
    assert 50 < left["s"] <= 60
    await w.rows("UPDATE jobs SET wake_at = now() WHERE id = %s", job)
    [body] = await w.rows("SELECT body FROM visits WHERE job_id = %s", job)
    until = (datetime.fromisoformat(body["body"]["until"]) - timedelta(seconds=60)).isoformat()
    await w.rows(
        "UPDATE visits SET body = jsonb_set(body::jsonb, '{until}', to_jsonb(%s::text))::json WHERE job_id = %s",
        until,
        job,
    )
    assert (await runner.run_slice(job)).end is SliceEnd.FINISHED
    assert "wait_timed_out" in await w.kinds(job)


@skewed
async def test_a_backoff_lasts_as_long_as_it_says(works: Open, skew_s: float) -> None:
    w = await works(Fault("reset_before"), {"n": 1})
    job = await w.submit({"only": asking()})
    assert (await w.drive(job, now=clock(skew_s))).status == "succeeded"
    [waited] = await w.rows(
        "SELECT EXTRACT(epoch FROM max(sent) - min(sent))::float8 AS s"
        " FROM (SELECT started_at AS sent FROM attempt_outcomes WHERE job_id = %s) AS attempts",
        job,
    )
    assert 0.2 < waited["s"] < 5


@skewed
async def test_children_get_deadlines_of_the_databases_time(works: Open, skew_s: float) -> None:
    w = await works({"n": 1})
    await w.publish("brief", {"only": asking(), "done": {"end": "succeeded"}}, limits={"deadline_s": 20})
    job = await w.submit({"go": {"call": "brief", "input": {}, "next": {"ok": "done", "error": "broken"}}})
    assert (await w.drive(job, now=clock(skew_s))).status == "succeeded"
