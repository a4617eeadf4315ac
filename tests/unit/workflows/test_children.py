from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepladder.schemas.job import CHILDREN, Failure, JobStatus
from stepladder.workflows.child_calls import DEEPEST, child_id, child_lineage
from stepladder.workflows.events import ChildrenSeen, Resolved, Unresolved
from stepladder.workflows.job import Child
from stepladder.workflows.names import names_of
from stepladder.workflows.transition import AwaitChildren, Finished, Resolve, TendChildren
from stepladder.workflows.visits import ChildCall, ChildFailure, ToolError
from support.machines import Play, codes_of, document, play, the

if TYPE_CHECKING:
    from stepladder.workflows.transition import Transition

ENDS = """
done: {end: succeeded, result: calls.go}
broken: {end: failed, result: errors.go}
"""
EDGES = "{ok: done, error: broken}"


def one(**fields: Any) -> Play:
    return play(document(f"go: {{call: other, input: {{n: input.n}}, next: {EDGES}}}" + ENDS), value={"n": 1}, **fields)


def many(count: int, *, concurrency: int = 2, more: str = "") -> Play:
    each = f"{{over: input.items, at_most: 99, concurrency: {concurrency}{more}}}"
    text = f"go: {{call: other, input: {{at: each.index, of: each.count, it: each.item}}, each: {each}, next: {EDGES}}}"
    return play(document(text + ENDS), value={"items": list(range(10, 10 + count))})


def child(index: int, status: str = "succeeded", failure: Failure | None = None, **fields: Any) -> Child:
    return Child(UUID(int=index), index, JobStatus(status), {"r": index}, failure, **fields)


def gave(it: Play) -> Any:
    """The job's result, of a shape that the test knows."""
    return it.job.result


def sees(it: Play, *children: Child) -> Transition:
    return it.send(ChildrenSeen(children))


def test_a_call_is_opened_resolved_started_awaited_and_returned() -> None:
    it = one()
    assert the(Resolve, it.claim()).call.inputs == ({"n": 1},)
    assert the(TendChildren, it.send(Resolved(3))).start == (1,)
    the(AwaitChildren, sees(it, child(1, "running")))
    assert (it.job.status, it.job.waiting_for, it.job.due_at) == (JobStatus.WAITING, CHILDREN, None)
    assert the(TendChildren, it.claim()).start == (), "a worker reads the children first"
    the(Finished, sees(it, child(1)))
    assert it.job.result == {"r": 1}
    assert it.path() == [("ok", "done")]


def test_each_item_has_an_input_of_its_own_and_its_place_among_the_results() -> None:
    it = many(3, concurrency=9)
    call = the(Resolve, it.claim()).call
    assert call.inputs == tuple({"at": n, "of": 3, "it": 9 + n} for n in (1, 2, 3))
    assert the(TendChildren, it.send(Resolved(1))).start == (1, 2, 3)
    the(Finished, sees(it, child(1), child(2), child(3)))
    assert it.job.result == [{"r": 1}, {"r": 2}, {"r": 3}]


def test_a_place_that_is_free_is_taken_by_the_next_in_order() -> None:
    it = many(4).begun()
    assert the(TendChildren, it.send(Resolved(1))).start == (1, 2)
    the(AwaitChildren, sees(it, child(1, "running"), child(2, "queued")))
    assert the(TendChildren, sees(it, child(1, "running"), child(2))).start == (3,)
    assert the(TendChildren, sees(it, child(1), child(2), child(3, "running"))).start == (4,)
    the(AwaitChildren, sees(it, child(1), child(2), child(3, "waiting"), child(4, "running")))
    the(Finished, sees(it, *map(child, (1, 2, 3, 4))))


def test_the_first_failure_stops_the_others_and_the_call_ends_when_all_have() -> None:
    it = many(5, concurrency=3).begun()
    it.send(Resolved(1))
    failed = child(2, "failed", Failure.DEADLINE, failure_detail="too late")
    step = sees(it, child(1, "running"), failed, child(3, "running", cancel_requested=True))
    assert (the(TendChildren, step).start, the(TendChildren, step).stop) == ((), True)
    asked = [child(n, "running", cancel_requested=True) for n in (1, 3)]
    the(AwaitChildren, sees(it, asked[0], failed, asked[1]))
    the(Finished, sees(it, child(1, "cancelled"), failed, child(3)))
    assert gave(it)["kind"] == "deadline", "and not the one that was stopped because of it"
    assert gave(it)["message"] == f"child 2 of 5: job {UUID(int=2)} failed: too late"
    assert it.path() == [("error", "broken")]


def test_collected_failures_leave_holes_and_a_list() -> None:
    it = many(3, concurrency=9, more=", failures: collect").begun()
    refused = ChildFailure(1, "bad_input", "no")
    assert the(TendChildren, it.send(Resolved(1, (refused,)))).start == (2, 3)
    the(AwaitChildren, sees(it, child(2, "failed", Failure.LOOP), child(3, "running")))
    sees(it, child(2, "failed", Failure.LOOP), child(3))
    assert it.job.result == [None, None, {"r": 3}]
    errors: Any = names_of(it.job)["errors"]
    assert (errors["go"]["kind"], errors["go"]["message"]) == (
        "children_failed",
        "2 of 3 gave no result: child 1: bad_input; child 2: loop",
    )
    assert [failure["index"] for failure in errors["go"]["children"]] == [1, 2]
    assert it.path() == [("ok", "done")]


def test_a_bad_input_starts_no_child() -> None:
    it = many(2).begun()
    the(Finished, it.send(Resolved(1, (ChildFailure(2, "bad_input", "no"),))))
    assert gave(it)["kind"] == "bad_input"


def test_a_workflow_that_is_not_there_is_an_error() -> None:
    it = one().begun()
    the(Finished, it.send(Unresolved(ToolError("unknown_workflow", "none"))))
    assert (it.job.failure, gave(it)["kind"]) == (Failure.REJECTED, "unknown_workflow")


def test_calls_within_calls_have_an_end() -> None:
    it = one(depth=DEEPEST)
    the(Finished, it.claim())
    assert gave(it)["kind"] == "too_deep"
    the(Resolve, one(depth=DEEPEST - 1).claim())


def test_an_empty_list_starts_no_child() -> None:
    it = many(0)
    the(Finished, it.claim())
    assert (it.job.status, it.job.result) == (JobStatus.SUCCEEDED, [])


def test_a_cancelled_job_ends_at_once_and_leaves_its_call_closed() -> None:
    it = one().begun()
    it.send(Resolved(1))
    sees(it, child(1, "running"))
    the(Finished, it.cancel())
    [call] = it.job.visits
    assert isinstance(call, ChildCall)
    assert (it.job.status, call.error and call.error.kind, call.closed_at) == (JobStatus.CANCELLED, "cancelled", it.now)


def test_the_deadline_stands_still_meanwhile() -> None:
    it = one()
    it.job = replace(it.job, deadline_at=it.now.replace(hour=23))
    it.claim()
    it.send(Resolved(1))
    before = it.job.deadline_at
    it.send(ChildrenSeen((child(1),)), after=3600 * 30)
    assert it.job.deadline_at is not None
    assert before is not None
    assert (it.job.deadline_at - before).total_seconds() == 3600 * 30
    assert it.job.status is JobStatus.SUCCEEDED


def test_a_childs_id_is_its_parents_and_its_lineage_that_of_its_parents_lineage() -> None:
    it = one()
    call = the(Resolve, it.claim()).call
    fork = replace(it.job, id=uuid4())
    assert child_id(it.job, call, 1) == child_id(it.job, call, 1) != child_id(it.job, call, 2)
    assert child_id(fork, call, 1) != child_id(it.job, call, 1)
    assert child_lineage(fork, call, 1) == child_lineage(it.job, call, 1) != child_lineage(it.job, call, 2)
    later = replace(call, visit=call.visit + 1)
    again = replace(it.job, visits=(*it.job.visits, later))
    assert child_lineage(again, later, 1) != child_lineage(it.job, call, 1)
    assert child_lineage(again, call, 1) == child_lineage(it.job, call, 1)


@given(st.data(), st.integers(0, 9), st.integers(1, 4), st.booleans())
def test_however_children_fare_no_more_run_than_may_and_each_starts_once(
    data: st.DataObject, count: int, concurrency: int, collect: bool
) -> None:
    it = many(count, concurrency=concurrency, more=", failures: collect" if collect else "")
    step = it.claim()
    if count:
        step = it.send(Resolved(1))
    children: dict[int, Child] = {}
    ends = st.sampled_from([("succeeded", None)] * 5 + [("failed", Failure.LOOP), ("cancelled", None)])
    for _ in range(200):
        if isinstance(step.next, TendChildren):
            assert not set(step.next.start) & children.keys(), "started twice"
            children |= {index: child(index, "running") for index in step.next.start}
            if step.next.stop:
                children = {n: replace(c, cancel_requested=True) for n, c in children.items()}
        elif isinstance(step.next, Finished):
            break
        else:
            the(AwaitChildren, step)
            running = [index for index, one in children.items() if not one.status.final]
            assert running, "no child is left to wait for"
            index = data.draw(st.sampled_from(running))
            status, failure = data.draw(ends)
            children[index] = replace(children[index], status=JobStatus(status), failure=failure)
        assert sum(not one.status.final for one in children.values()) <= concurrency
        step = it.send(ChildrenSeen(tuple(children.values())))
    assert it.job.status.final
    assert all(one.status.final for one in children.values()), "it went on beside a child"
    bad = [index for index, one in children.items() if one.status is not JobStatus.SUCCEEDED]
    if collect or not bad:
        expected = [None if n in bad else {"r": n} for n in range(1, count + 1)]
        assert (it.job.status, it.job.result) == (JobStatus.SUCCEEDED, expected)
    else:
        assert it.job.status is JobStatus.FAILED


@pytest.mark.parametrize(
    ("state", "code", "place"),
    [
        ("{call: other, next: {ok: done}}", "no_edge", "next"),
        ("{call: other, next: {error: done}}", "no_edge", "next"),
        ("{call: other, next: {ok: done, error: done, timeout: done}}", "impossible_word", "next/timeout"),
        ("{call: other, next: {ok: done, error: done, exhausted: done}}", "impossible_word", "next/exhausted"),
        ("{call: other, max_visits: 1, next: {ok: done, error: done}}", "no_edge", "next"),
        ("{call: other, input: each.item, next: {ok: done, error: done}}", "unknown_name", "input"),
        ("{call: other, input: each.elements, each: {over: '[1]', at_most: 1}, next: {ok: done, error: done}}",
         "unknown_name", "input"),
        ("{call: other, input: {a: '1 +'}, next: {ok: done, error: done}}", "bad_expression", "input/a"),
        ("{call: other, input: tools.go, next: {ok: done, error: done}}", "unknown_name", "input"),
        ("{call: other, input: calls.done, next: {ok: done, error: done}}", "unknown_name", "input"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_call_is_found(state: str, code: str, place: str) -> None:
    assert (code, f"/states/go/{place}") in codes_of(document(f"go: {state}\ndone: {{end: succeeded}}"))


def test_an_irreversible_tool_is_not_reached_from_a_call() -> None:
    text = """
    go: {call: other, next: {ok: pay, error: done}}
    pay: {tool: pay, next: {ok: done}}
    done: {end: succeeded}
    """
    assert ("unconfirmed", "/states/go/next/ok") in codes_of(document(text.replace("\n    ", "\n")))
