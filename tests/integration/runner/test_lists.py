"""Lists: a turn for each element, one of which is tried again alone, and which a lost worker costs nothing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from stepladder.testing import Answer

if TYPE_CHECKING:
    from stepladder.schemas.responses import Job
    from stepladder.testing import RecordedRequest

    from .conftest import Open

LINE: dict[str, Any] = {
    "type": "object",
    "properties": {"sku": {"type": "string", "maxLength": 8}, "amount": {"type": "integer", "minimum": 0}},
    "required": ["sku", "amount"],
    "additionalProperties": False,
}
LINES: dict[str, Any] = {
    "ask": "Line {{ each.index }} of {{ each.count }}: {{ each.item }}, after {{ each.elements | length }}.",
    "output": LINE,
    "each": {"over": "input.lines", "at_most": 20, "unique": ["/sku"]},
    "next": "done",
}
DONE = {"end": "succeeded", "result": {"lines": "lists.lines", "total": "sum(lists.lines.map(l, l.amount))"}}


def element(request: RecordedRequest) -> int:
    found = re.search(r"Line (\d+) of", request.text)
    assert found is not None
    return int(found[1])


def given(job: Job) -> Any:
    """Its result, of a shape that the test knows."""
    return job.result


async def test_each_item_is_a_turn_that_sees_what_came_before(works: Open) -> None:
    w = await works(respond=lambda request: Answer({"sku": f"s{element(request)}", "amount": element(request)}))
    job = await w.run({"lines": LINES, "done": DONE}, {"lines": ["pen", "ink", "nib"]})
    assert job.result == {"lines": [{"sku": f"s{n}", "amount": n} for n in (1, 2, 3)], "total": 6}
    questions = [request.text.splitlines()[0] for request in w.engine.requests]
    assert questions == [f"Line {n} of 3: {item}, after {n - 1}." for n, item in enumerate(("pen", "ink", "nib"), 1)]
    assert [turn.ordinal for turn in await w.reads.turns(job.id)] == [1, 2, 3]


async def test_a_duplicate_element_is_asked_again(works: Open) -> None:
    w = await works(
        {"sku": "a", "amount": 1},
        {"sku": "b", "amount": 1},
        {"sku": "a", "amount": 2},
        {"sku": "c", "amount": 2},
    )
    job = await w.run({"lines": LINES, "done": DONE}, {"lines": [1, 2, 3]})
    assert given(job)["total"] == 4
    assert await w.outcomes(job.id) == [("valid", None), ("valid", None), ("semantic", "unique"), ("valid", None)]
    [broken] = [attempt for attempt in await w.attempts(job.id) if attempt.outcome == "semantic"]
    assert [(error.pointer, error.reason) for error in broken.errors] == [("/sku", "must differ from element 1")]
    assert "must differ from element 1" in w.engine.requests[-1].text


async def test_an_element_may_refer_to_earlier_elements(works: Open) -> None:
    rules = [
        {"id": "known", "check": "output.sku in input.known", "pointer": "/sku", "reason": "must be known"},
        {
            "id": "rising",
            "check": "each.elements.all(e, e.amount < output.amount)",
            "pointer": "/amount",
            "reason": "must rise",
        },
    ]
    w = await works(
        {"sku": "x", "amount": 1}, {"sku": "a", "amount": 1}, {"sku": "b", "amount": 1}, {"sku": "b", "amount": 2}
    )
    states = {"lines": LINES | {"rules": rules}, "done": DONE}
    job = await w.run(states, {"lines": [1, 2], "known": ["a", "b"]})
    assert given(job)["total"] == 3
    causes = [cause for _, cause in await w.outcomes(job.id)]
    assert causes == ["known", None, "rising", None]


async def test_the_model_ends_the_list_or_its_bound_does(works: Open) -> None:
    output = {
        "type": "object",
        "properties": {"action": {"enum": ["more", "finish"]}, "n": {"type": "integer"}},
        "required": ["action"],
    }
    lines = {
        "ask": "Next after {{ each.elements | length }}?",
        "output": output,
        "each": {"until": "finish", "at_most": 3},
        "next": {"finish": "done", "exhausted": "broken"},
    }
    states = {
        "lines": lines,
        "done": {"end": "succeeded", "result": "lists.lines"},
        "broken": {"end": "failed", "result": "lists.lines"},
    }
    more = {"action": "more", "n": 1}
    w = await works(more, more, {"action": "finish"})
    assert (await w.run(states)).result == [more, more]
    w = await works(more, more, more)
    job = await w.run(states)
    assert (job.status, job.failure, job.result) == ("failed", "rejected", [more, more, more])


async def test_a_failed_element_takes_on_failure_and_keeps_the_rest(works: Open) -> None:
    w = await works({"sku": "a", "amount": 1}, {"n": 1})
    lines = LINES | {"retry": {"attempts": 1}, "on_failure": {"attempts_exhausted": "part"}}
    part = {"end": "failed", "result": "lists.lines"}
    job = await w.run({"lines": lines, "done": DONE, "part": part}, {"lines": [1, 2, 3]})
    assert (job.failure, job.result) == ("rejected", [{"sku": "a", "amount": 1}])


async def test_equal_elements_are_no_loop_but_equal_lists_are(works: Open) -> None:
    w = await works(respond=lambda _: Answer({"sku": "a", "amount": 1}))
    lines = LINES | {"each": {"over": "input.lines", "at_most": 30}, "history": "none"}
    job = await w.run({"lines": lines, "done": DONE}, {"lines": [0] * 30})
    assert (job.status, given(job)["total"]) == ("succeeded", 30)
    again = lines | {"next": "lines_again"}
    output = {"type": "object", "properties": {"action": {"enum": ["again", "stop"]}}, "required": ["action"]}
    ask = {"ask": "Again?", "output": output, "next": {"again": "lines", "stop": "done"}}
    w = await works(
        respond=lambda request: Answer({"action": "again"} if "Again" in request.text else {"sku": "a", "amount": 1})
    )
    job = await w.run({"lines": again, "lines_again": ask, "done": DONE}, {"lines": [0] * 6})
    assert job.failure == "loop"


async def test_with_no_history_the_requests_do_not_grow(works: Open) -> None:
    w = await works(respond=lambda request: Answer({"sku": f"s{element(request)}", "amount": 1}))
    await w.run({"lines": LINES | {"history": "none"}, "done": DONE}, {"lines": [0] * 5})
    assert {len(request.body["messages"]) for request in w.engine.requests} == {1}
    w = await works(respond=lambda request: Answer({"sku": f"s{element(request)}", "amount": 1}))
    await w.run({"lines": LINES, "done": DONE}, {"lines": [0] * 5})
    assert [len(request.body["messages"]) for request in w.engine.requests] == [1, 3, 5, 7, 9]


async def test_what_a_list_is_built_over_is_read_once(works: Open) -> None:
    """The list is built over what stood before it, and what its own turns add changes nothing of that."""
    lines = LINES | {"each": {"over": "has(visits.lines) ? visits.lines : [1, 2]", "at_most": 9}}
    w = await works(respond=lambda request: Answer({"sku": f"s{element(request)}", "amount": 1}))
    job = await w.run({"lines": lines, "done": DONE})
    assert job.turn_count == 2
