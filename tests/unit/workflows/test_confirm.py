"""Who may do what in a job: its tools by the principal's scopes, and its waits by who sends the signal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepladder.lint.graph import nobody_else
from stepladder.schemas.actor import Actor
from stepladder.schemas.event import EventKind
from stepladder.schemas.finding import Severity
from stepladder.schemas.job import Failure, JobStatus
from stepladder.schemas.tool import Effect, Kit
from stepladder.workflows.load import Loaded, load_document
from stepladder.workflows.transition import Await, Finished, Hold, RunTool
from support.machines import codes_of, document, loaded, machine_of, play, the, tool

if TYPE_CHECKING:
    from support.machines import Play

CI, BOSS = Actor("ci", frozenset()), Actor("boss", frozenset({"refund:approve"}))

ASKS = """
confirm:
  wait: {signal: approval, by: other, scopes: [refund:approve]}
  next: {approve: done}
done: {end: succeeded}
"""
PAYS = """
ask: {ask: Hi, output: {type: object}, next: pay}
pay: {tool: look, arguments: {q: "'x'"}, next: {ok: again, error: done}}
again: {tool: save, arguments: {}, next: {ok: done, error: done}}
done: {end: succeeded}
"""


def asked(states: str = ASKS, principal: str = "ci") -> Play:
    return play(document(states), principal=principal, scopes=frozenset()).begun()


@pytest.mark.parametrize(
    ("sender", "said"),
    [
        (Actor("ci"), "must not come from ci, whose job it is"),
        (Actor("boss", frozenset({"refund:read"})), "boss lacks refund:approve"),
        (Actor("boss", frozenset()), "needs the scope refund:approve"),
        (Actor("ci", frozenset({"refund:approve"})), "this one comes from ci"),
    ],
)
def test_a_signal_of_the_wrong_sender_is_refused_and_the_wait_goes_on(sender: Actor, said: str) -> None:
    it = asked()
    the(Await, it.signal({"action": "approve"}, sender=sender))
    event = it.steps[-1].events[-1]
    assert (event.kind, event.data["by"]) == (EventKind.SIGNAL_REFUSED, sender.name)
    assert said in str(event.data["reason"])
    assert "state confirm" in str(event.data["reason"])
    the(Finished, it.signal({"action": "approve"}, sender=BOSS))


def test_the_history_says_who_answered() -> None:
    it = asked()
    it.signal({"action": "approve"}, sender=BOSS)
    assert [data["by"] for data in it.data(EventKind.SIGNAL_TAKEN)] == ["boss"]


def test_an_early_signal_of_the_wrong_sender_does_not_count() -> None:
    the(Await, asked().signal({"action": "approve"}, received=3600, sender=CI))


@given(st.sampled_from(["anyone", "other"]), st.lists(st.sampled_from("abc"), unique=True), st.sampled_from("pq"),
       st.none() | st.frozensets(st.sampled_from("abc")))  # fmt: skip
def test_a_wait_takes_a_signal_exactly_where_its_sender_may_answer(
    by: str, scopes: list[str], name: str, has: frozenset[str] | None
) -> None:
    states = ASKS.replace("by: other", f"by: {by}").replace("[refund:approve]", f"[{', '.join(scopes)}]")
    it = asked(states, principal="p")
    it.signal({"action": "approve"}, sender=Actor(name, has))
    may = not (by == "other" and name == "p") and (has is None or set(scopes) <= has)
    assert it.job.status.final is may


def test_who_may_answer_is_part_of_the_definition() -> None:
    hashes = {machine_of(document(ASKS.replace("by: other", f"by: {by}"))).hash for by in ("anyone", "other")}
    assert len(hashes) == 2
    assert (
        machine_of(document(ASKS.replace(", by: other, scopes: [refund:approve]", ""))).hash
        == machine_of(document(ASKS.replace("by: other, scopes: [refund:approve]", "by: anyone, scopes: []"))).hash
    )


@pytest.mark.parametrize("field", ["by: somebody", "by: self", "scopes: refund", 'scopes: [""]'])
def test_a_wait_with_an_unusable_sender_is_refused(field: str) -> None:
    assert not isinstance(load_document(document(ASKS.replace("by: other, scopes: [refund:approve]", field))), Loaded)
    assert codes_of(document(ASKS)) == []


def test_without_keys_a_wait_for_somebody_else_is_worth_a_warning() -> None:
    [finding] = nobody_else(loaded(document(ASKS)).document)
    assert (finding.code, finding.pointer, finding.severity) == (
        "nobody_else",
        "/states/confirm/wait/by",
        Severity.WARNING,
    )
    assert list(nobody_else(loaded(document(ASKS.replace("other", "anyone"))).document)) == []


DENIED = """
pick: {ask: Which?, tools: [pick_a, pick_b], next: {pick_a: act, pick_b: act}}
act: {tool: {from: pick}, next: {ok: done, error: done}}
done: {end: succeeded}
"""


@pytest.mark.parametrize(("chosen", "missing"), [("pick_a", ["a:x"]), ("pick_b", ["b:x", "b:y"])])
def test_a_tool_that_the_model_chose_is_denied_before_it_runs(chosen: str, missing: list[str]) -> None:
    rights = {"pick_a": ("a:x", "ok"), "pick_b": ("b:x", "b:y")}
    kit = Kit({name: tool(name, Effect.READ, permissions=needs) for name, needs in rights.items()})
    it = play(document(DENIED), kit, principal="ci", scopes=frozenset({"ok"})).begun()
    the(Finished, it.says({"action": chosen, "arguments": {}}))
    assert it.job.failure is Failure.PERMISSION_DENIED
    assert it.data(EventKind.PERMISSION_DENIED) == [
        {"state": "act", "tool": chosen, "principal": "ci", "missing": missing}
    ]
    assert EventKind.TOOL_STARTED not in it.events()
    for word in ("state act", f"the tool {chosen}", *missing, "ci"):
        assert word in str(it.job.failure_detail)


def test_pausing_while_a_tool_runs_keeps_its_result_and_starts_no_other() -> None:
    it = play(document(PAYS)).begun()
    the(RunTool, it.says({}))
    the(Hold, it.returns({"found": 1}, hold=True))
    assert (it.job.state, it.job.open, it.job.status) == ("again", None, JobStatus.RUNNING)
    assert [event.kind for event in it.steps[-1].events] == [EventKind.TOOL_RETURNED, EventKind.TRANSITION]
    assert the(RunTool, it.claim()).call.tool == "save"
    the(Finished, it.returns({}))


def test_a_job_paused_before_its_start_starts_nothing() -> None:
    it = play(document(PAYS))
    the(Hold, it.claim(hold=True))
    assert it.job.visits == ()
    it.claim()
    it.says({})
    assert it.job.turn_count == 1


def test_a_tool_in_backoff_is_not_run_while_the_job_is_paused() -> None:
    states = PAYS.replace("next: {ok: again", "retry: {attempts: 3}, next: {ok: again")
    it = play(document(states)).begun()
    it.says({})
    it.breaks()
    the(Hold, it.claim(after=3600, hold=True))
    again = the(RunTool, it.claim())
    assert (again.call.runs, again.call.failed, again.call.lost) == (2, 1, 0)
