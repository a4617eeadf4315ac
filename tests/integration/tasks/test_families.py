"""Lists and children under real workers, which are killed in the middle of them."""

from __future__ import annotations

import re
import signal
from typing import TYPE_CHECKING, Any

import pytest

from stepladder.models.database import Database
from stepladder.models.store import Store
from stepladder.schemas.document import Workflow
from stepladder.testing import Answer, Fault, wait_until
from support.deployment import NUMBER, PATIENT_S, Deployment

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from stepladder.testing import Line, RecordedRequest

    Open = Callable[..., AbstractContextManager[Deployment]]

pytestmark = pytest.mark.long

CHILD = Workflow.model_validate(
    {
        "name": "work",
        "version": 1,
        "input": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
        "start": "ask",
        "states": {
            "ask": {"ask": "What is {{ input.n }}?", "output": NUMBER, "next": "done"},
            "done": {"end": "succeeded", "result": "turns.ask.n"},
        },
    }
)


def calling(count: int, concurrency: int) -> Workflow:
    items = ", ".join(map(str, range(1, count + 1)))
    go: dict[str, Any] = {
        "call": "work",
        "input": {"n": "each.item"},
        "each": {"over": f"[{items}]", "at_most": count, "concurrency": concurrency},
        "next": {"ok": "done", "error": "broken"},
    }
    ends = {"done": {"end": "succeeded", "result": "calls.go"}, "broken": {"end": "failed", "result": "errors.go"}}
    head = {"name": "family", "version": 1, "start": "go"}
    return Workflow.model_validate(head | {"states": {"go": go} | ends})


LIST = Workflow.model_validate(
    {
        "name": "list",
        "version": 1,
        "start": "lines",
        "states": {
            "lines": {
                "ask": "What is {{ each.item }}?",
                "output": NUMBER,
                "each": {"over": "[1, 2, 3, 4, 5, 6]", "at_most": 6, "unique": ["/n"]},
                "next": "done",
            },
            "done": {"end": "succeeded", "result": "lists.lines.map(l, l.n)"},
        },
    }
)


def number(request: RecordedRequest) -> int:
    found = re.search(r"What is (\d+)\?", request.text)
    assert found is not None
    return int(found[1])


class Engine:
    """Answers with the number that it is asked for, except that it keeps ``holding`` for ever."""

    def __init__(self, *holding: int, delay_s: float = 0.0) -> None:
        self.holding = set(holding)
        self.delay_s = delay_s

    def __call__(self, request: RecordedRequest) -> Line:
        n = number(request)
        return Fault("hang") if n in self.holding else Answer({"n": n}, delay_s=self.delay_s)


def result(d: Deployment, name: str) -> Any:
    [row] = d.rows("SELECT status, result FROM jobs WHERE workflow = %s", name)
    return row["result"] if row["status"] == "succeeded" else None


async def publish_child(d: Deployment) -> None:
    async with Database(d.database_url) as database:
        await Store(database).publish(CHILD.name, CHILD.version, CHILD.hash(), CHILD.definition())


async def test_a_worker_killed_within_a_list_loses_no_element(deployment: Open) -> None:
    engine = Engine(4)
    with deployment(respond=engine) as d:
        killed = d.start_worker()
        killed.wait_until_ready()
        await d.submit(LIST)
        wait_until(lambda: d.engine.in_flight == 1 and len(d.engine.requests) == 4, PATIENT_S, what="line 4 is asked")
        killed.end(signal.SIGKILL)
        engine.holding.clear()
        d.start_worker()
        wait_until(lambda: result(d, "list") is not None, PATIENT_S, what="the list is built")
        assert result(d, "list") == [1, 2, 3, 4, 5, 6]
        assert sorted(map(number, d.engine.requests)) == [1, 2, 3, 4, 4, 5, 6]


async def test_a_worker_killed_within_a_fan_out_starts_no_child_twice(deployment: Open) -> None:
    engine = Engine(3, 4)
    with deployment(respond=engine) as d:
        killed = d.start_worker()
        killed.wait_until_ready()
        await publish_child(d)
        await d.submit(calling(9, concurrency=3))
        wait_until(lambda: d.engine.in_flight == 2, PATIENT_S, what="two children hang")
        killed.end(signal.SIGKILL)
        engine.holding.clear()
        d.start_worker()
        wait_until(lambda: result(d, "family") is not None, PATIENT_S, what="the parent goes on")
        assert result(d, "family") == list(range(1, 10))
        [row] = d.rows(
            "SELECT count(*) AS n, count(DISTINCT parent_index) AS indices FROM jobs WHERE workflow = 'work'"
        )
        assert row == {"n": 9, "indices": 9}


async def test_a_hundred_children_over_two_workers_keep_to_their_bound(deployment: Open) -> None:
    with deployment(respond=Engine(delay_s=0.05)) as d:
        for worker in (d.start_worker(), d.start_worker()):
            worker.wait_until_ready()
        await publish_child(d)
        await d.submit(calling(100, concurrency=8))
        wait_until(lambda: result(d, "family") is not None, PATIENT_S, what="the parent ends")
        assert result(d, "family") == list(range(1, 101))
        assert 4 <= d.engine.peak_in_flight <= 8
        assert len(d.engine.requests) == 100
