"""Statistics over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from stepladder.testing import Answer

from .conftest import problem

if TYPE_CHECKING:
    from .conftest import Api


async def test_statistics_are_by_workflow_and_since_a_moment(bill: Api) -> None:
    job = await bill.submit()
    async with bill.worker(Answer({"total": 35}), Answer({"total": 36})) as worker:
        await worker.drive(UUID(job["id"]))
    answer = await bill.client.get("/v1/stats")
    [stats] = answer.json()["workflows"]
    assert (stats["workflow"], stats["attempts"], stats["usable"], stats["cost"]) == ("bill", 2, 1, None)
    assert stats["rates"]["semantic_pass"] == 0.5
    assert stats["attempts_per_turn"] == [{"attempts": 2, "turns": 1, "accepted": 1}]
    assert [(share["outcome"], share["cause"]) for share in stats["outcomes"]] == [
        ("valid", None), ("semantic", "arithmetic"),
    ]  # fmt: skip
    assert stats["jobs"] == {"succeeded": 0, "failed": 0, "cancelled": 0, "live": 1}
    asked = {"workflow": "another", "since": "2026-01-31T12:30:00+02:00"}
    none = (await bill.client.get("/v1/stats", params=asked)).json()
    assert none == {"since": "2026-01-31T10:30:00Z", "workflows": []}


@pytest.mark.parametrize(
    ("asked", "parameter"),
    [({"since": "yesterday"}, "since"), ({"workflow": "\0"}, "workflow"), ({"window": "24h"}, "window")],
)
async def test_what_cannot_be_asked_for_is_named(api: Api, asked: dict[str, str], parameter: str) -> None:
    found = problem(await api.client.get("/v1/stats", params=asked), 422)
    assert [error["parameter"] for error in found["errors"]] == [parameter]
