from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from stepladder.schemas.event import EventKind
from stepladder.schemas.job import Failure, JobStatus
from stepladder.workflows.transition import Ask, Await, Finished, RunTool
from stepladder.workflows.visits import ToolCall
from support.machines import NOW, document, play, the

if TYPE_CHECKING:
    from stepladder.schemas.jsontypes import Json
    from support.machines import Play

PLAIN = """
pause:
  wait:
    signal: approval
    schema:
      type: object
      properties: {action: {enum: [approve, refuse]}, note: {type: string}}
      required: [action]
      additionalProperties: false
    show: {who: input.name}
    timeout_s: 60
  next: {approve: done, refuse: refused, timeout: late}
done: {end: succeeded, result: signals.pause}
refused: {end: failed}
late: {end: failed}
"""

PAYMENT = """
one: {ask: Hi, output: {type: object}, next: confirm}
confirm: {wait: {signal: approval, timeout_s: 60}, next: {approve: pay, again: one, timeout: late}}
pay: {tool: pay, arguments: {sum: turns.one.sum}, next: {ok: done, error: confirm}}
done: {end: succeeded}
late: {end: failed}
"""


def plain(head: str = "", states: str = PLAIN) -> Play:
    return play(document(states, head), value={"name": "Ada"}).begun()


def payment(**fields: Any) -> Play:
    it = play(document(PAYMENT, "limits: {loop: 'off'}"), **fields).begun()
    it.says({"sum": 3})
    return it


def test_a_wait_says_what_it_waits_for_and_shows_what_it_is_about() -> None:
    it = plain()
    wait = the(Await, it.steps[-1]).wait
    assert wait.show == {"who": "Ada"}
    assert wait.until == NOW + timedelta(seconds=60)
    assert (it.job.status, it.job.waiting_for, it.job.due_at) == (JobStatus.WAITING, "approval", wait.until)


def test_a_wait_without_a_timeout_waits_for_ever() -> None:
    it = plain(
        states=PLAIN.replace("    timeout_s: 60\n", "")
        .replace(", timeout: late", "")
        .replace("late: {end: failed}", "")
    )
    assert it.wait.until is None
    assert it.job.due_at is None
    the(Await, it.claim(after=10**9))


def test_a_signal_that_fits_takes_its_edge_and_is_used_up() -> None:
    it = plain()
    step = it.signal({"action": "approve", "note": "fine"})
    the(Finished, step)
    assert step.taken is not None
    assert it.job.result == {"action": "approve", "note": "fine"}
    assert it.path() == [("approve", "done")]


@pytest.mark.parametrize(
    "payload",
    [
        None,
        [],
        "approve",
        {},
        {"action": "pay"},
        {"action": "timeout"},
        {"action": 1},
        {"action": "approve", "more": 1},
        {"action": "approve", "note": 1},
        {"action": "approve", "wait_id": "00000000-0000-0000-0000-000000000000"},
        {"action": "approve", "wait_id": 3},
    ],
)
def test_a_signal_that_does_not_fit_is_used_up_and_noted_and_the_wait_goes_on(payload: Json) -> None:
    it = plain()
    before = it.wait
    step = it.signal(payload)
    assert the(Await, step).wait == before
    assert step.taken is not None
    assert [event.kind for event in step.events] == [EventKind.SIGNAL_REFUSED]
    assert step.events[0].data["reason"]
    assert step.visits == ()
    assert (it.job.status, it.job.waiting_for, it.job.due_at) == (JobStatus.WAITING, "approval", before.until)
    the(Finished, it.signal({"action": "approve"}))


def test_no_signal_says_timeout_or_goes_by_another_name() -> None:
    it = plain(states=PLAIN.replace("enum: [approve, refuse]", "type: string"))
    the(Await, it.signal({"action": "timeout"}))
    the(Await, it.signal({"action": "approve"}, name="other"))


def test_a_signal_may_name_the_wait_and_the_name_is_no_part_of_it() -> None:
    it = plain()
    the(Finished, it.answer("approve"))
    assert it.job.result == {"action": "approve"}


# Time -----------------------------------------------------------------------------------------------------------------


def test_a_wait_times_out_when_it_is_due_and_not_before() -> None:
    it = plain()
    the(Await, it.claim(after=59.9))
    assert it.steps[-1].events == ()
    the(Finished, it.claim(after=0.1))
    assert it.path() == [("timeout", "late")]
    assert EventKind.WAIT_TIMED_OUT in it.events()
    zero = plain(states=PLAIN.replace("timeout_s: 60", "timeout_s: 0"))
    the(Finished, zero.claim())
    assert zero.path() == [("timeout", "late")]


@pytest.mark.parametrize(
    ("after", "received", "edge"),
    [
        (0, 3600, ("approve", "done")),  # it came before the wait opened
        (600, 541, ("approve", "done")),  # in time, however late it is read
        (600, 540, ("timeout", "late")),  # too late, though the timeout was not yet taken
    ],
)
def test_a_signal_counts_by_the_time_it_was_received(after: float, received: float, edge: tuple[str, str]) -> None:
    it = plain()
    step = it.signal({"action": "approve"}, after=after, received=received)
    the(Finished, step)
    assert it.path() == [edge]
    assert (step.taken is None) is (edge[0] == "timeout")


def test_the_deadline_stands_still_while_the_job_waits() -> None:
    it = play(document(PAYMENT, "limits: {deadline_s: 100}"), scopes=None).begun()
    it.says({"sum": 3}, after=30)
    it.signal({"action": "nothing"}, after=20)
    the(Ask, it.signal({"action": "again", "wait_id": str(it.wait.wait_id)}, after=30))
    assert it.job.deadline_at == NOW + timedelta(seconds=150)
    the(Await, it.says({"sum": 4}, after=69.9))
    the(Finished, it.claim(after=10**6))
    assert it.path()[-1] == ("timeout", "late")
    assert it.job.failure is Failure.REJECTED


# In front of what cannot be undone ------------------------------------------------------------------------------------


def test_the_wait_freezes_and_shows_the_call_and_that_is_what_runs() -> None:
    it = payment()
    assert it.wait.frozen == {"pay": {"tool": "pay", "arguments": {"sum": 3}}}
    call = the(RunTool, it.answer("approve")).call
    assert (call.tool, call.arguments) == ("pay", {"sum": 3})


def test_what_is_frozen_is_what_runs_whatever_the_names_say_by_then() -> None:
    """The signal itself is a name: a call that reads it would not be the call that was confirmed."""
    states = PAYMENT.replace("sum: turns.one.sum", "sum: 'has(signals.confirm) ? 999 : 3'")
    it = play(document(states)).begun()
    it.says({})
    assert the(RunTool, it.answer("approve")).call.arguments == {"sum": 3}


@pytest.mark.parametrize("wait_id", [None, "", "x", str(UUID(int=0))])
def test_its_signal_names_the_wait(wait_id: str | None) -> None:
    it = payment()
    the(Await, it.signal({"action": "approve"} | ({} if wait_id is None else {"wait_id": wait_id})))
    the(RunTool, it.answer("approve"))


def test_each_wait_freezes_anew_and_no_earlier_signal_confirms_it() -> None:
    it = payment()
    old = {"action": "approve", "wait_id": str(it.wait.wait_id)}
    it.answer("again")
    it.says({"sum": 5})
    the(Await, it.signal(old))
    assert str(it.wait.wait_id) != old["wait_id"]
    assert the(RunTool, it.answer("approve")).call.arguments == {"sum": 5}


def test_a_chosen_tool_is_frozen_with_the_arguments_of_its_turn() -> None:
    states = """
act: {ask: Hi, tools: [look, pay], next: {look: call, pay: confirm}}
call: {tool: look, next: {ok: act}}
confirm: {wait: {signal: s}, next: {approve: pay, stop: done}}
pay: {tool: {from: act}, next: {ok: done}}
done: {end: succeeded}
"""
    it = play(document(states)).begun()
    it.says({"action": "pay", "arguments": {"sum": 7}})
    assert it.wait.frozen == {"pay": {"tool": "pay", "arguments": {"sum": 7}}}
    call = the(RunTool, it.answer("approve")).call
    assert isinstance(call, ToolCall)
    assert (call.tool, call.arguments) == ("pay", {"sum": 7})
