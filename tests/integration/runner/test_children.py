"""Child jobs: run and waited for, a few at a time, started once although workers die, and ended with their parent."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import pytest

import stepladder
from stepladder.models.child_jobs import cancel_orphans, children_of
from stepladder.models.ids import uuid7
from stepladder.models.records import Receipt
from stepladder.runner import children
from stepladder.runner.runner import SliceEnd
from stepladder.testing import Answer, Fault, eventually
from stepladder.workflows.advance import advance
from stepladder.workflows.events import Claimed, Resolved
from stepladder.workflows.transition import Resolve, TendChildren

from .conftest import asking

if TYPE_CHECKING:
    from uuid import UUID

    from stepladder.schemas.responses import Job
    from stepladder.testing import Line, RecordedRequest

    from .conftest import Open, Works

INPUT = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 99}}, "required": ["n"]}
WORK = {
    "double": asking(ask="Twice {{ input.n }}?", next="out"),
    "out": {"end": "succeeded", "result": {"n": "turns.double.n"}},
}


class DiedError(BaseException):
    """A worker that is gone in the middle of something, and does nothing more."""


REFUSED = Answer(None, refusal="I will not.")
DONE = {"end": "succeeded", "result": "calls.go"}
BROKEN = {"end": "failed", "result": "errors.go"}


def number(request: RecordedRequest) -> int:
    found = re.search(r"(\d+)\?", request.text)
    assert found is not None
    return int(found[1])


def twice(request: RecordedRequest) -> Line:
    return Answer({"n": 2 * number(request)})


def given(job: Job) -> Any:
    """Its result, of a shape that the test knows."""
    return job.result


async def child(w: Works, name: str, states: dict[str, Any] = WORK, **fields: Any) -> str:
    """Publishes a workflow of that name for others to call."""
    await w.publish(name, states, **({"input": INPUT} | fields))
    return name


def calling(name: str, **fields: Any) -> dict[str, Any]:
    go = {"call": name, "input": {"n": "input.n"}, "next": {"ok": "done", "error": "broken"}} | fields
    return {"go": go, "done": DONE, "broken": BROKEN}


def fan(name: str, **each: Any) -> dict[str, Any]:
    spread = {"over": "input.ns", "at_most": 200, "concurrency": 4} | each
    return calling(name, input={"n": "each.item"}, each=spread)


async def kin(w: Works, job: UUID) -> list[dict[str, Any]]:
    return await w.rows(
        "SELECT id, status, failure, parent_index AS index, cancel_requested, lineage, depth, principal, scopes"
        " FROM jobs WHERE parent = %s ORDER BY parent_visit, parent_index",
        job,
    )


async def test_a_child_runs_and_its_result_has_a_name(works: Open) -> None:
    w = await works(respond=twice)
    job_id = await w.submit(calling(await child(w, "one")), {"n": 4}, scopes=frozenset({"a"}))
    job = await w.drive(job_id)
    assert (job.status, job.result, job.turn_count) == ("succeeded", {"n": 8}, 0)
    [only] = await kin(w, job_id)
    assert (only["status"], only["index"], only["depth"], only["scopes"]) == ("succeeded", 1, 1, ["a"])
    kinds = await w.kinds(job_id)
    assert kinds[-4:] == ["call_started", "call_returned", "transition", "job_succeeded"]


async def test_a_call_over_nothing_is_done_at_once(works: Open) -> None:
    w = await works()
    job = await w.run(fan("nobody-ever-published-this"), {"ns": []})
    assert (job.status, job.result) == ("succeeded", [])


@pytest.mark.parametrize(
    ("name", "value", "kind", "words"),
    [
        ("never-published", {"n": 1}, "unknown_workflow", "no workflow never-published"),
        ("checked", {"n": 100}, "bad_input", "/n must be at most 99"),
    ],
)
async def test_what_cannot_be_started_is_an_error_and_starts_no_child(
    works: Open, name: str, value: Any, kind: str, words: str
) -> None:
    w = await works()
    await child(w, "checked")
    job = await w.run(calling(name), value)
    assert (job.status, given(job)["kind"]) == ("failed", kind)
    assert words in given(job)["message"]
    assert await kin(w, job.id) == []
    if kind == "bad_input":  # one of many keeps all from starting
        job = await w.run(fan(name), {"ns": [1, 100]})
        assert given(job)["kind"] == kind
        assert await kin(w, job.id) == []


async def test_a_failed_child_is_an_error_with_its_own_word(works: Open) -> None:
    w = await works({"n": "no"}, {"m": 1})
    job = await w.run(calling(await child(w, "failing", retry={"attempts": 2})), {"n": 1})
    [only] = await kin(w, job.id)
    assert given(job)["kind"] == "attempts_exhausted"
    assert str(only["id"]) in given(job)["message"]


async def test_the_first_failure_stops_the_others_and_starts_no_more(works: Open) -> None:
    def respond(request: RecordedRequest) -> Line:
        return REFUSED if number(request) == 2 else Fault("hang")

    w = await works(respond=respond)
    job = await w.run(fan(await child(w, "stopping"), concurrency=3), {"ns": [1, 2, 3, 4, 5]})
    assert given(job)["kind"] == "refused"
    assert given(job)["message"].startswith("child 2 of 5: job ")
    assert [(one["index"], one["status"]) for one in await kin(w, job.id)] == [
        (1, "cancelled"),
        (2, "failed"),
        (3, "cancelled"),
    ]


async def test_failures_may_be_collected_instead(works: Open) -> None:
    w = await works(respond=lambda request: REFUSED if number(request) == 2 else twice(request))
    states = fan(await child(w, "collecting"), failures="collect")
    states["done"] = {"end": "succeeded", "result": {"got": "calls.go", "lost": "errors.go.children"}}
    job = await w.run(states, {"ns": [1, 2, 100, 3]})
    assert given(job)["got"] == [{"n": 2}, None, None, {"n": 6}]
    assert [(one["index"], one["kind"]) for one in given(job)["lost"]] == [(2, "refused"), (3, "bad_input")]


async def test_what_calls_itself_comes_to_an_end(works: Open) -> None:
    w = await works()
    states = {
        "go": {"call": "echo", "next": {"ok": "done", "error": "broken"}},
        "done": DONE,
        "broken": {"end": "failed", "result": "errors.go"},
    }
    await child(w, "echo", states, input={"type": "object"})
    job = await w.run(states)
    found = await w.rows("SELECT max(depth) AS deepest FROM jobs WHERE workflow = 'echo'")
    assert (job.status, found) == ("failed", [{"deepest": 8}])
    deepest = await w.rows("SELECT result FROM jobs WHERE workflow = 'echo' AND depth = 8")
    assert deepest[0]["result"]["kind"] == "too_deep"


async def test_all_children_of_a_call_run_the_same_version(works: Open) -> None:
    w = await works(respond=twice)
    name = await child(w, "versioned")
    job_id = await w.submit(fan(name, concurrency=1), {"ns": [1, 2, 3]})
    assert (await w.runner().run_slice(job_id)).end is SliceEnd.WAITING
    await child(w, name, {"out": {"end": "succeeded", "result": "'new'"}})
    job = await w.drive(job_id)
    assert job.result == [{"n": 2}, {"n": 4}, {"n": 6}]
    assert (await w.run(calling(name), {"n": 1})).result == "new"
    [old] = await w.rows("SELECT min(version) AS v FROM jobs WHERE workflow = %s", name)
    assert (await w.run(calling(name, version=old["v"]), {"n": 1})).result == {"n": 2}


async def test_a_parent_that_is_cancelled_takes_its_children_along(works: Open) -> None:
    w = await works(respond=lambda _: Fault("hang"))
    job_id = await w.submit(fan(await child(w, "abandoned"), concurrency=2), {"ns": [1, 2, 3]})
    driving = asyncio.ensure_future(w.drive(job_id))
    await eventually(lambda: w.engine.in_flight == 2, what="two children are under way")
    assert await w.store.request_cancel(job_id) is Receipt.ACCEPTED
    await w.runner().run_slice(job_id)
    await driving
    assert (await w.job(job_id)).status == "cancelled"
    assert [one["status"] for one in await kin(w, job_id)] == ["cancelled", "cancelled"]
    await eventually(lambda: w.engine.in_flight == 0, what="the requests are cancelled")


async def test_children_whose_parents_worker_died_at_its_end_are_found(
    works: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    w = await works()
    job_id = await w.submit(fan(await child(w, "orphaned")), {"ns": [1, 2]})
    await w.runner().run_slice(job_id)
    await w.store.request_cancel(job_id)

    async def die(*_: Any) -> None:
        raise DiedError

    monkeypatch.setattr("stepladder.runner.runner.cancel_children", die)
    with pytest.raises(DiedError):
        await w.runner().run_slice(job_id)
    monkeypatch.undo()
    assert (await w.job(job_id)).status == "cancelled"
    assert [one["cancel_requested"] for one in await kin(w, job_id)] == [False, False]
    assert await cancel_orphans(w.store) == 2
    assert await cancel_orphans(w.store) == 0
    for one in await kin(w, job_id):
        await w.runner().run_slice(one["id"])
    assert [one["status"] for one in await kin(w, job_id)] == ["cancelled", "cancelled"]


async def test_a_cancelled_child_is_an_error_of_its_parent(works: Open) -> None:
    w = await works()
    job_id = await w.submit(calling(await child(w, "cancelled-alone")), {"n": 1})
    await w.runner().run_slice(job_id)
    [only] = await kin(w, job_id)
    await w.store.request_cancel(only["id"])
    job = await w.drive(job_id)
    assert (job.status, given(job)["kind"]) == ("failed", "cancelled")


@pytest.mark.parametrize("dies_in", ["resolve", "start_children", "children_of"])
async def test_a_worker_that_dies_starting_children_starts_none_twice(
    works: Open, monkeypatch: pytest.MonkeyPatch, dies_in: str
) -> None:
    w = await works(respond=twice)
    job_id = await w.submit(fan(await child(w, f"dying-{dies_in.replace('_', '-')}")), {"ns": [1, 2, 3]})
    whole = getattr(children, dies_in)

    async def die(*arguments: Any) -> None:
        await whole(*arguments)
        raise DiedError

    monkeypatch.setattr(children, dies_in, die)
    with pytest.raises(DiedError):
        await w.runner().run_slice(job_id)
    monkeypatch.undo()
    assert (await w.runner().run_slice(job_id)).end is SliceEnd.IDLE, "its lease is still held"
    await w.expire_lease(job_id)
    job = await w.drive(job_id)
    assert job.result == [{"n": 2}, {"n": 4}, {"n": 6}]
    assert [one["index"] for one in await kin(w, job_id)] == [1, 2, 3]
    assert len(w.engine.requests) == 3


async def test_a_worker_whose_lease_is_over_starts_no_child(works: Open) -> None:
    w = await works()
    job_id = await w.submit(fan(await child(w, "fenced")), {"ns": [1, 2]})
    claim = await w.store.claim("slow", 0.0, job_id)
    assert claim is not None
    assert await w.store.claim("quick", 60.0, job_id) is not None
    machine = await w.runner().machines.get(claim.workflow, claim.version)
    now = w.runner().now()
    step = advance(machine, claim.job, Claimed(), now)
    assert isinstance(step.next, Resolve)
    resolved = await children.resolve(w.store, step.next)
    assert isinstance(resolved, Resolved)
    step = advance(machine, step.job, resolved, now)
    assert isinstance(step.next, TendChildren)
    assert await children.tend(w.store, claim, step.job, step.next, now, lambda _: None) is None
    assert await kin(w, job_id) == []


async def test_the_end_of_a_child_always_wakes_its_parent(works: Open) -> None:
    """The child ends after its parent looked at it and before the parent has let go: the parent is due at once."""
    w = await works(respond=twice)
    job_id = await w.submit(calling(await child(w, "quick")), {"n": 1})
    runner = w.runner()
    committed = 0

    async def between(*_: Any) -> None:
        [only] = await kin(w, job_id)
        await w.drive(only["id"])

    seen = children_of

    async def slow(*arguments: Any) -> Any:
        nonlocal committed
        found = await seen(*arguments)
        if not committed:
            committed = 1
            await between()
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(children, "children_of", slow)
        assert (await runner.run_slice(job_id)).end is SliceEnd.WAITING
    assert (await runner.run_slice(job_id)).end is SliceEnd.FINISHED


async def test_a_child_that_waits_for_a_person_makes_its_parent_wait(works: Open) -> None:
    w = await works()
    states = {
        "ask": {"wait": {"signal": "word"}, "next": {"go": "out"}},
        "out": {"end": "succeeded", "result": "signals.ask"},
    }
    job_id = await w.submit(calling(await child(w, "patient", states)), {"n": 1})
    job = await w.drive(job_id)
    assert (job.status, job.waiting_for) == ("waiting", "children")
    [only] = await kin(w, job_id)
    assert await w.store.signal(only["id"], uuid7(), "word", {"action": "go"}) is Receipt.ACCEPTED
    assert (await w.drive(job_id)).result == {"action": "go"}


async def test_an_answer_given_beforehand_serves_a_child(works: Open) -> None:
    w = await works()
    states = {"ask": {"wait": {"signal": "word"}, "next": {"go": "out"}}, "out": {"end": "succeeded"}}
    job_id = await w.submit(calling(await child(w, "served", states)), {"n": 1})
    assert (await w.drive(job_id, {"word": [{"action": "go"}]})).status == "succeeded"


async def test_the_deadline_stands_still_while_children_run(works: Open) -> None:
    w = await works(respond=twice)
    states = calling(await child(w, "timeless"))
    job_id = await w.submit(states, {"n": 1}, limits={"deadline_s": 100})
    await w.runner().run_slice(job_id)
    before = (await w.job(job_id)).deadline_at
    [only] = await kin(w, job_id)
    await w.drive(only["id"])
    await w.rows("UPDATE visits SET opened_at = opened_at - interval '1 hour' WHERE job_id = %s", job_id)
    job = await w.drive(job_id)
    assert job.status == "succeeded"
    assert before is not None
    assert job.deadline_at is not None
    assert (job.deadline_at - before).total_seconds() > 3000


async def test_idempotency_keys_of_a_child_derive_from_its_parent(works: Open) -> None:
    """A second job of the same lineage, as a fork makes one, leads to the same keys; a job of another does not."""
    keys: list[str] = []

    @stepladder.tool("note", effect="idempotent")
    def note(idempotency_key: str) -> None:
        keys.append(idempotency_key)

    w = await works()
    states = {"act": {"tool": "note", "next": {"ok": "out"}}, "out": {"end": "succeeded"}}
    call = calling(await child(w, "effectful", states))
    first = await w.submit(call, {"n": 1})
    await w.drive(first)
    fork = await w.submit(call, {"n": 1})
    await w.rows("UPDATE jobs SET lineage = %s WHERE id = %s", first, fork)
    await w.drive(fork)
    await w.run(call, {"n": 1})
    assert keys[0] == keys[1] != keys[2]


async def test_two_calls_of_one_state_have_children_of_their_own(works: Open) -> None:
    w = await works(respond=twice)
    go = {
        "call": await child(w, "twice-called"),
        "input": {"n": "1"},
        "next": {"ok": "go", "error": "broken", "exhausted": "done"},
        "max_visits": 2,
    }
    done = {"end": "succeeded", "result": "visits.go"}
    job = await w.run({"go": go, "done": done, "broken": BROKEN})
    assert job.result == [{"n": 2}, {"n": 2}]
    lineages = {one["lineage"] for one in await kin(w, job.id)}
    assert len(lineages) == 2
