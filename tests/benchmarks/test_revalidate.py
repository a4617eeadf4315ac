"""The measurement of revalidation, small: nothing drifts, and a tighter rule flags exactly what breaks it."""

from __future__ import annotations

import pytest

from benchmarks.revalidate import run

pytestmark = pytest.mark.long


async def test_nothing_drifts_and_a_tighter_rule_flags_exactly_the_jobs_that_break_it(database_url: str) -> None:
    assert await run(database_url, 100)
