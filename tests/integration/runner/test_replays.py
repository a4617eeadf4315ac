"""Replays: a job that goes on where another stopped, what is never done twice, and answers judged again."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

import stepladder
from stepladder.models.ids import uuid7
from stepladder.models.records import Receipt, Settling, Submitted
from stepladder.runner.machines import Machines
from stepladder.schemas.actor import LOCAL
from stepladder.schemas.document import Workflow
from stepladder.schemas.job_filter import JobFilter
from stepladder.schemas.replay import Mode
from stepladder.sdk import kit
from stepladder.services.replays import Prepared, Replays, Wanted
from stepladder.services.revalidation import By, Revalidation
from stepladder.services.submission import submit
from stepladder.testing import Fault, eventually
from stepladder.workflows.advance import advance
from stepladder.workflows.events import Claimed, Settled
from stepladder.workflows.replay import Refused
from stepladder.workflows.transition import RunTool
from stepladder.workflows.visits import ToolCall

from .conftest import asking

if TYPE_CHECKING:
    from uuid import UUID

    from stepladder.schemas.jsontypes import Json
    from stepladder.schemas.responses import Job, OpenSettlement

    from .conftest import Open, Works

BAD = {"n": 5000}
GOOD = {"n": 7}
CONFIRM: dict[str, Any] = {"wait": {"signal": "word"}, "next": {"go": "pay", "stop": "broken"}}
PAYING: dict[str, Any] = {
    "ask_first": asking(next="confirm"),
    "confirm": CONFIRM,
    "pay": {"tool": "pay", "arguments": {"cents": "turns.ask_first.n"}, "next": {"ok": "report", "error": "broken"}},
    "report": asking(ask="The receipt is {{ tools.pay.receipt }}. Which number?", retry={"attempts": 1}),
    "done": {"end": "succeeded", "result": {"receipt": "tools.pay.receipt", "n": "turns.report.n"}},
    "broken": {"end": "failed", "result": "errors.pay.kind"},
}
GO = {"word": [{"action": "go"}]}


UNKNOWN = stepladder.EffectUnknownError("the bank broke off")


def ledger(error: Exception | None = None) -> list[int]:
    """What the tool ``pay`` was run for. Its first run raises ``error``, if there is one."""
    paid: list[int] = []

    @stepladder.tool("pay", effect="irreversible", permissions=["money"])
    def pay(cents: int) -> dict[str, Any]:
        paid.append(cents)
        if error is not None and len(paid) == 1:
            raise error
        return {"receipt": f"R-{len(paid)}"}

    return paid


def replays(w: Works) -> Replays:
    return Replays(w.store.database, w.store, Machines(w.store, kit.registered()))


async def prepared(w: Works, job: UUID, mode: Mode, **wanted: Any) -> Prepared | Refused:
    found = await replays(w).prepared(job, Wanted(mode, **wanted), LOCAL, datetime.now(UTC))
    assert found is not None
    return found


async def replay(w: Works, job: UUID, mode: Mode, **wanted: Any) -> UUID:
    found = await prepared(w, job, mode, **wanted)
    assert isinstance(found, Prepared), found
    await replays(w).keep(found.definition, wanted.get("changes", {}))
    assert isinstance(await w.store.submit_many([found.new]), Submitted)
    return found.new.job.id


async def carried(w: Works, job: UUID) -> list[tuple[str, bool, int]]:
    return [(turn.state, turn.carried, len(turn.attempts)) for turn in await w.reads.turns(job)]


async def settle(w: Works, job: Job, result: dict[str, Json] | None) -> OpenSettlement:
    """A person says that the effect took place, with this result, or, without one, that it did not."""
    found = await w.unsettled(job.id)
    said = Settled(result is not None, result, "local")
    assert await w.store.settle(job.id, found.key, said) is Settling.ACCEPTED
    return found


async def failed_after_paying(w: Works) -> Job:
    job = await w.drive(await w.submit(PAYING, system="Be brief."), GO)
    assert (job.status, job.failure, job.state) == ("failed", "attempts_exhausted", "report")
    return job


async def test_a_resume_goes_on_from_the_failed_turn_and_pays_nothing_twice(works: Open) -> None:
    paid = ledger()
    w = await works(GOOD, BAD, GOOD)
    old = await failed_after_paying(w)
    before = await w.dump(old.id)
    new = await w.drive(await replay(w, old.id, Mode.RESUME))
    assert (new.status, new.result) == ("succeeded", {"receipt": "R-1", "n": 7})
    assert paid == [7]
    assert (new.replay_of, new.version, new.variant) == (old.id, old.version, None)
    assert await carried(w, new.id) == [("ask_first", True, 0), ("report", False, 1)]
    assert await w.dump(old.id) == before
    _, first, again = [request.body["messages"] for request in w.engine.requests]
    assert again == first
    [created, *_] = await w.reads.events(new.id)
    assert created.data == {"replay_of": str(old.id), "mode": "resume", "from_turn": 2, "set": {}}


async def test_a_fork_takes_the_result_of_the_effect_and_runs_it_no_second_time(works: Open) -> None:
    paid = ledger()
    w = await works(GOOD, BAD, GOOD, GOOD)
    old = await failed_after_paying(w)
    new = await w.drive(await replay(w, old.id, Mode.FORK), GO)
    assert (new.status, new.result) == ("succeeded", {"receipt": "R-1", "n": 7})
    assert paid == [7]
    assert await carried(w, new.id) == [("ask_first", False, 1), ("report", False, 1)]
    assert "tool_carried" in await w.kinds(new.id)


async def test_other_arguments_are_another_effect(works: Open) -> None:
    """The key has the arguments in it: who confirms another payment means another payment."""
    paid = ledger()
    w = await works(GOOD, BAD, {"n": 8}, GOOD)
    old = await failed_after_paying(w)
    new = await w.drive(await replay(w, old.id, Mode.FORK), GO)
    assert (new.status, new.result) == ("succeeded", {"receipt": "R-2", "n": 7})
    assert paid == [7, 8]


async def test_of_forks_that_run_at_once_one_pays_and_all_have_its_receipt(works: Open) -> None:
    paid = ledger()
    w = await works(*[GOOD] * 9)
    old = await w.submit(PAYING)
    await w.store.request_cancel(old)
    assert (await w.drive(old)).status == "cancelled"
    forks = [await replay(w, old, Mode.FORK) for _ in range(4)]
    ended = await asyncio.gather(*(w.drive(fork, GO) for fork in forks))
    for job in ended:
        if job.waiting_for == "settlement":  # it found the other's call still open
            await settle(w, job, {"receipt": "R-1"})
    ended = [await w.drive(job.id) for job in ended]
    assert [(job.status, job.result) for job in ended] == [("succeeded", {"receipt": "R-1", "n": 7})] * 4
    assert paid == [7]


async def test_an_unknown_effect_is_settled_in_the_fork_and_not_run(works: Open) -> None:
    runs = ledger(UNKNOWN)
    w = await works(GOOD, GOOD, GOOD)
    old = await w.drive(await w.submit(PAYING), GO)
    assert old.waiting_for == "settlement"
    new = await w.drive(await replay(w, old.id, Mode.FORK), GO)
    assert new.waiting_for == "settlement"
    found = await settle(w, new, {"receipt": "R-9"})
    assert str(old.id) in str(found.reason)
    ended = await w.drive(new.id)
    assert (ended.status, ended.result) == ("succeeded", {"receipt": "R-9", "n": 7})
    assert runs == [7]


async def test_what_took_no_effect_by_a_persons_word_may_be_begun_again(works: Open) -> None:
    runs = ledger(UNKNOWN)
    w = await works(GOOD, GOOD)
    states = PAYING | {"pay": PAYING["pay"] | {"next": {"ok": "report"}}, "broken": {"end": "failed"}}
    old = await w.drive(await w.submit(states), GO)
    await settle(w, old, None)
    assert (await w.drive(old.id)).failure == "tool_failed"
    new = await w.drive(await replay(w, old.id, Mode.RESUME))
    assert (new.status, new.result) == ("succeeded", {"receipt": "R-2", "n": 7})
    assert runs == [7, 7]


async def test_an_error_of_what_cannot_be_undone_stands_in_a_resume(works: Open) -> None:
    runs = ledger(ValueError("no such account"))
    w = await works(GOOD)
    states = PAYING | {"pay": PAYING["pay"] | {"next": {"ok": "report"}}, "broken": {"end": "failed"}}
    old = await w.drive(await w.submit(states), GO)
    assert old.failure == "tool_failed"
    new = await w.drive(await replay(w, old.id, Mode.RESUME))
    assert (new.failure, new.failure_detail) == ("tool_failed", old.failure_detail)
    assert runs == [7]


async def test_a_job_cancelled_in_a_wait_waits_again(works: Open) -> None:
    ledger()
    w = await works(GOOD, GOOD)
    old = await w.submit(PAYING)
    assert (await w.drive(old)).waiting_for == "word"
    assert await w.store.request_cancel(old) is Receipt.ACCEPTED
    assert (await w.drive(old)).status == "cancelled"
    new = await replay(w, old, Mode.RESUME)
    assert (await w.drive(new)).waiting_for == "word"
    assert (await w.drive(new, GO)).status == "succeeded"
    assert await carried(w, new) == [("ask_first", True, 0), ("report", False, 1)]


async def test_a_job_cancelled_after_its_effect_was_settled_goes_on_behind_it(works: Open) -> None:
    runs = ledger(UNKNOWN)
    w = await works(GOOD, GOOD)
    old = await w.drive(await w.submit(PAYING), GO)
    await w.store.request_cancel(old.id)
    assert (await w.drive(old.id)).waiting_for == "settlement"
    await settle(w, old, {"receipt": "R-1"})
    assert (await w.drive(old.id)).status == "cancelled"
    new = await w.drive(await replay(w, old.id, Mode.RESUME))
    assert (new.status, new.result) == ("succeeded", {"receipt": "R-1", "n": 7})
    assert runs == [7]


async def test_limits_start_anew_and_what_was_taken_over_counts_for_none(works: Open) -> None:
    w = await works(GOOD, GOOD, GOOD, GOOD)
    states = {"one": asking(next="two"), "two": asking(next="three"), "three": asking()}
    old = await w.run(states, limits={"max_turns": 2, "token_budget": 100_000})
    assert (old.failure, old.state, old.turn_count) == ("max_turns", "three", 2)
    new = await w.drive(await replay(w, old.id, Mode.RESUME))
    assert (new.status, new.turn_count, new.token_budget) == ("succeeded", 3, 100_000)
    [last] = [turn for turn in await w.reads.turns(new.id) if not turn.carried]
    usage = last.attempts[0].usage
    assert usage is not None
    assert new.tokens == usage.total


@pytest.mark.parametrize("state", [asking(), {"end": "failed"}])
async def test_what_went_as_its_document_says_cannot_be_resumed(works: Open, state: Any) -> None:
    w = await works(GOOD)
    old = await w.run({"first": state})
    refused = await prepared(w, old.id, Mode.RESUME)
    assert isinstance(refused, Refused)
    assert "fork" in refused.remedy
    assert isinstance(await prepared(w, old.id, Mode.FORK), Prepared)


async def test_a_fork_runs_by_the_changed_document_and_no_version_changes(works: Open) -> None:
    w = await works(GOOD, GOOD, {"n": 8})
    states = {"one": asking(next="two"), "two": asking()}
    old = await w.run(states)
    changes = {"states.two.ask": "And the next one after {{ turns.one.n }}?", "sampling.seed": 11}
    new = await w.drive(await replay(w, old.id, Mode.FORK, from_turn=2, changes=changes))
    assert new.status == "succeeded"
    assert new.variant is not None
    last = w.engine.requests[-1].body
    assert last["messages"][-1]["content"].startswith("And the next one after 7?")
    assert last["seed"] == 11
    row = await w.store.workflow("w", old.version)
    assert row is not None
    assert Workflow.model_validate(row.document).definition()["states"]["two"]["ask"] == "Which number?"
    again = await prepared(w, new.id, Mode.FORK, from_turn=2)
    assert isinstance(again, Prepared)
    assert again.new.variant == new.variant  # a fork of a fork is by the same document


async def test_a_change_that_is_none_is_the_published_version_itself(works: Open) -> None:
    w = await works(GOOD)
    old = await w.run({"one": asking()})
    same = await prepared(w, old.id, Mode.FORK, changes={"states.one.ask": "Which number?"})
    assert isinstance(same, Prepared)
    assert same.new.variant is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"states.on.ask": "x"}, "did you mean `one`"),
        ({"states.one.rules.3.check": "true"}, ""),
        ({"states.one.next": "nowhere"}, "nowhere"),
        ({"name": "other"}, "cannot be changed"),
        ({"version": 99_999}, "no version 99999"),
        ({"version": "two"}, "cannot be"),
        ({"": 1}, "names no place"),
    ],
)
async def test_what_cannot_be_set_is_refused_with_what_to_write(works: Open, changes: Any, words: str) -> None:
    w = await works(GOOD)
    old = await w.run({"one": asking()})
    refused = await prepared(w, old.id, Mode.FORK, changes=changes)
    assert isinstance(refused, Refused)
    assert words in " ".join([refused.reason, *map(str, refused.findings)])


async def test_another_input_begins_at_the_beginning(works: Open) -> None:
    w = await works(*[GOOD] * 4)
    states = {"one": asking(ask="Number {{ input.x }}?", next="two"), "two": asking()}
    old = await w.run(states, {"x": 1}, input={"type": "object", "properties": {"x": {"type": "integer"}}})
    refused = await prepared(w, old.id, Mode.FORK, from_turn=2, input=({"x": 2},))
    assert isinstance(refused, Refused)
    assert "start at the beginning" in refused.remedy
    bad = await prepared(w, old.id, Mode.FORK, input=({"x": "two"},))
    assert isinstance(bad, Refused)
    assert bad.field == "input"
    new = await w.drive(await replay(w, old.id, Mode.FORK, from_turn=1, input=({"x": 2},)))
    assert (new.status, new.input) == ("succeeded", {"x": 2})
    assert w.engine.requests[-2].text.startswith("Number 2?")


async def test_a_list_goes_on_at_the_element_that_failed(works: Open) -> None:
    w = await works({"n": 1}, {"n": 2}, BAD, {"n": 3}, {"n": 4})
    states = {
        "items": asking(
            ask="Number {{ each.index }} of {{ each.count }}?",
            each={"count": "4", "at_most": 10},
            retry={"attempts": 1},
        ),
        "done": {"end": "succeeded", "result": "lists.items.map(one, one.n)"},
    }
    old = await w.run(states)
    assert (old.failure, old.turn_count) == ("attempts_exhausted", 3)
    new = await w.drive(await replay(w, old.id, Mode.RESUME))
    assert (new.status, new.result) == ("succeeded", [1, 2, 3, 4])
    assert await carried(w, new.id) == [("items", True, 0)] * 2 + [("items", False, 1)] * 2


async def test_revalidation_finds_no_drift_and_with_a_tighter_rule_exactly_what_breaks_it(works: Open) -> None:
    w = await works({"n": 3}, BAD, {"n": 9}, "no JSON", {"n": 4})
    states = {"one": asking()}
    first = await w.submit(states)
    version = (await w.job(first)).version
    jobs = [await w.drive(first)]
    machine = await Machines(w.store, kit.registered()).get("w", version)
    others = [await submit(w.store, machine, {}, datetime.now(UTC)) for _ in range(2)]
    jobs += [await w.drive(other.id) for other in others]
    before = [await w.dump(job.id) for job in jobs]
    wanted = JobFilter(created_after=jobs[0].created_at)
    same = await Revalidation(w.store, replays(w), By()).of(wanted)
    assert (same.judged, same.jobs_seen, same.total) == (5, 3, 0)
    rule = {"id": "small", "check": "output.n < 5", "pointer": "/n", "reason": "must be small"}
    tighter = await Revalidation(w.store, replays(w), By(changes={"states.one.rules": [rule]})).of(wanted)
    assert tighter.jobs == {"rejected": [jobs[1].id], "accepted": [], "otherwise": []}
    looser = {"states.one.output.properties.n.maximum": 9999}
    wider = await Revalidation(w.store, replays(w), By(changes=looser)).of(wanted)
    assert wider.jobs == {"rejected": [], "accepted": [jobs[1].id], "otherwise": []}
    assert [await w.dump(job.id) for job in jobs] == before


async def test_what_has_no_bytes_is_told_and_is_no_drift(works: Open) -> None:
    w = await works(Fault("hang"), GOOD)
    job = await w.submit({"one": asking()})
    lost = asyncio.create_task(w.drive(job, owner="lost"))
    await eventually(lambda: len(w.engine.requests) == 1, 30, what="the request is out")
    lost.cancel()
    await asyncio.wait((lost,))
    await w.drive(job)
    found = await replays(w).revalidated(job, {})
    assert isinstance(found, tuple)
    assert [(one.was.cause, one.changed, one.why) for one in found] == [
        ("abandoned", False, "broken_off"),
        (None, False, None),
    ]
    assert await replays(w).revalidated(uuid7(), {}) is None
    gone = await replays(w).revalidated(job, {"states.one": None, "states.other": asking(), "start": "other"})
    assert isinstance(gone, tuple)
    assert [(one.now, one.why) for one in gone] == [(None, "broken_off"), (None, "no_state")]


async def test_a_carried_call_keeps_its_key_and_its_row_says_so(works: Open) -> None:
    ledger()
    w = await works(GOOD, BAD, GOOD)
    old = await failed_after_paying(w)
    new = await replay(w, old.id, Mode.RESUME)
    claim = await w.store.claim("worker", 60, new)
    assert claim is not None
    [call] = [visit for visit in claim.job.visits if isinstance(visit, ToolCall)]
    assert (call.carried, call.result) == (True, {"receipt": "R-1"})
    assert claim.job.lineage == old.id
    assert list(claim.job.spent) == [call.key]


async def test_of_two_that_begin_the_same_effect_at_the_same_moment_the_store_lets_one(works: Open) -> None:
    """Neither knew of the other when it was claimed."""
    paid = ledger()
    w = await works(GOOD, GOOD, GOOD)
    old = await w.drive(await w.submit(PAYING, scopes=frozenset()), GO)
    assert old.status == "failed"
    assert old.failure == "permission_denied"
    first, second = [await replay(w, old.id, Mode.RESUME) for _ in range(2)]
    machine = await Machines(w.store, kit.registered()).get("w", old.version)
    claims = [await w.store.claim("worker", 60, job) for job in (first, second)]
    written = []
    for claim in claims:
        assert claim is not None
        assert (claim.job.state, claim.job.spent) == ("pay", {})
        step = advance(machine, claim.job, Claimed(), datetime.now(UTC))
        assert isinstance(step.next, RunTool)
        written.append(await w.store.commit(claim, step))
    assert written == [True, False]
    found = await w.drive(second)  # it was let go of, and finds the other's call
    assert found.waiting_for == "settlement"
    assert paid == []
