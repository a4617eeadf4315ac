from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from stepladder.schemas.event import EventKind
from stepladder.schemas.job import SETTLEMENT, Failure, JobStatus
from stepladder.schemas.tool import Effect
from stepladder.workflows.builder import IllegalEventError
from stepladder.workflows.events import Cancelled, Settled, ToolUnknown
from stepladder.workflows.transition import Ask, AwaitSettlement, Finished, RunTool
from stepladder.workflows.visits import ToolCall, ToolError
from support.machines import NOW, document, play, the

if TYPE_CHECKING:
    from stepladder.schemas.jsontypes import Json
    from support.machines import Play

TOOL = """
look: {tool: look, arguments: {q: input.q}, next: {ok: done, error: again}}
again: {tool: save, next: {ok: look}}
done: {end: succeeded, result: {found: tools.look, last: last_tool.tool}}
"""

PAYMENT = """
confirm: {wait: {signal: approval}, next: {approve: pay}}
pay: {tool: pay, arguments: {sum: input.sum}, next: {ok: one, error: sorry}}
one: {ask: 'Paid {{ tools.pay }}', output: {type: object}, next: done}
sorry: {end: failed, result: {kind: errors.pay.kind, message: errors.pay.message}}
done: {end: succeeded}
"""

CHOICE = """
act: {ask: Hi, tools: [look, save], next: {look: call, save: call}}
call: {tool: {from: act}, next: {ok: act, error: done}}
done: {end: succeeded}
"""


def looking(**fields: Any) -> Play:
    return play(document(TOOL), value={"q": "x"}, **fields).begun()


def paying(head: str = "", **fields: Any) -> Play:
    it = play(document(PAYMENT, head), value={"sum": 3}, **fields).begun()
    it.answer("approve")
    return it


# Results and errors ---------------------------------------------------------------------------------------------------


def test_a_call_is_written_with_its_arguments_and_key_before_it_runs() -> None:
    it = looking()
    step = it.steps[-1]
    call = the(RunTool, step).call
    assert step.visits == (call,)
    assert (call.tool, call.arguments, call.effect) == ("look", {"q": "x"}, Effect.READ)
    assert step.events[-1].data["key"] == call.key


@pytest.mark.parametrize("result", [[1, 2], None])
def test_a_result_goes_by_ok_and_has_a_name(result: Json) -> None:
    it = looking()
    the(Finished, it.returns(result))
    assert it.job.result == {"found": result, "last": "look"}


def test_an_error_goes_by_error() -> None:
    it = looking()
    assert the(RunTool, it.breaks("KeyError", "no x")).call.tool == "save"
    [failed] = it.data(EventKind.TOOL_FAILED)
    assert (failed["kind"], failed["message"]) == ("KeyError", "no x")
    the(RunTool, it.returns(None))
    the(Finished, it.returns("found"))
    assert it.path() == [("error", "again"), ("ok", "look"), ("ok", "done")]


def test_an_error_without_an_edge_ends_the_job() -> None:
    it = play(document("one: {tool: look, next: {ok: done}}\ndone: {end: succeeded}")).begun()
    the(Finished, it.breaks("KeyError", "no x"))
    assert (it.job.status, it.job.failure) == (JobStatus.FAILED, Failure.TOOL_FAILED)
    assert it.job.failure_detail == "state one, tool look: KeyError: no x; the state has no edge `error`"


# Permissions ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scopes", [frozenset(), frozenset({"other"})])
def test_a_tool_that_the_principal_may_not_run_is_not_run(scopes: frozenset[str]) -> None:
    it = paying(scopes=scopes)
    the(Finished, it.steps[-1])
    assert it.job.failure is Failure.PERMISSION_DENIED
    assert "money" in (it.job.failure_detail or "")
    assert EventKind.TOOL_STARTED not in it.events()


@pytest.mark.parametrize("scopes", [None, frozenset({"money"}), frozenset({"money", "more"})])
def test_a_principal_with_the_scope_or_with_all_of_them_may(scopes: frozenset[str] | None) -> None:
    the(RunTool, paying(scopes=scopes).steps[-1])
    the(RunTool, looking(scopes=frozenset()).steps[-1])  # which needs none


# What the turn chose --------------------------------------------------------------------------------------------------


def test_the_tool_that_the_turn_chose_runs_with_its_arguments() -> None:
    it = play(document(CHOICE)).begun()
    call = the(RunTool, it.says({"action": "look", "arguments": {"q": "x"}})).call
    assert (call.tool, call.arguments, call.effect) == ("look", {"q": "x"}, Effect.READ)
    it.returns({})
    call = the(RunTool, it.says({"action": "save", "arguments": {"all": True}})).call
    assert (call.tool, call.arguments, call.effect) == ("save", {"all": True}, Effect.IDEMPOTENT)


@pytest.mark.parametrize("action", ["stop", "pay"])
def test_a_word_that_names_no_tool_of_the_turn_is_denied(action: str) -> None:
    states = CHOICE.replace(
        "tools: [look, save],",
        "tools: [look, save], output: {properties: {action: {enum: [stop]}}, required: [action]},",
    )
    it = play(document(states.replace("save: call}", "save: call, stop: call}"))).begun()
    the(Finished, it.says({"action": action}))
    assert it.job.failure is Failure.TRANSITION_DENIED
    assert it.job.open is None


def test_a_choice_that_was_never_made_is_denied() -> None:
    it = play(document(CHOICE, "start: call"))
    the(Finished, it.claim())
    assert it.job.failure is Failure.TRANSITION_DENIED


# Keys -----------------------------------------------------------------------------------------------------------------


def key(state: str = TOOL, **fields: Any) -> str:
    it = play(document(state), **({"value": {"q": "x"}} | fields)).begun()
    return it.call.key


def test_a_key_is_the_same_for_the_same_call_in_every_job_of_a_lineage() -> None:
    fork = UUID(int=9)
    first, again = looking(), play(document(TOOL), value={"q": "x"})
    again.job = replace(again.job, id=fork)
    again.claim(after=3600)
    assert again.call.key == first.call.key
    stranger = play(document(TOOL), value={"q": "x"})
    stranger.job = replace(stranger.job, id=fork, lineage=fork)
    stranger.claim()
    assert stranger.call.key != first.call.key


def test_a_key_is_another_for_other_arguments_another_state_and_another_tool() -> None:
    renamed = (
        TOOL.replace("look: {tool", "find: {tool").replace("ok: look", "ok: find").replace("tools.look", "tools.find")
    )
    keys = {key(), key(value={"q": "y"}), key(renamed), key(TOOL.replace("tool: look", "tool: save"))}
    assert len(keys) == 4


def test_a_key_is_another_at_each_visit() -> None:
    it = looking()
    keys = [it.call.key]
    for _ in range(3):
        it.breaks()
        it.returns(None)
        keys.append(it.call.key)
    assert len(set(keys)) == 4


def test_a_call_that_is_taken_up_again_keeps_its_key_and_is_written_before_it_runs() -> None:
    it = looking()
    first = it.call
    step = it.claim(after=60)
    assert the(RunTool, step).call == replace(first, runs=2) == step.visits[0]
    [begun] = step.events
    assert (begun.kind, begun.data["key"], begun.data["run"]) == (EventKind.TOOL_STARTED, first.key, 2)


def test_a_key_knows_no_order_of_arguments() -> None:
    one = TOOL.replace("{q: input.q}", "{a: '1', b: '2'}")
    other = TOOL.replace("{q: input.q}", "{b: '2', a: '1'}")
    assert key(one) == key(other)


# Settlement -----------------------------------------------------------------------------------------------------------


def settling(head: str = "") -> Play:
    it = paying(head)
    it.claim(after=10, lost=True)
    return it


def test_what_cannot_be_undone_waits_for_a_person_after_a_crash() -> None:
    it = settling()
    the(AwaitSettlement, it.steps[-1])
    assert (it.job.status, it.job.waiting_for, it.job.due_at) == (JobStatus.WAITING, SETTLEMENT, None)
    assert it.call.closed_at is None
    the(AwaitSettlement, it.claim())
    assert it.events().count(EventKind.SETTLEMENT_NEEDED) == 1


def test_settled_as_done_the_call_returns_and_the_history_names_the_person() -> None:
    it = settling()
    key = it.call.key
    step = it.settle(done=True, result={"receipt": 7}, by="kim")
    assert the(Ask, step).turn.question.startswith('Paid {"receipt": 7}')
    assert (it.job.status, it.job.waiting_for) == (JobStatus.RUNNING, None)
    assert it.events()[-4:-1] == [EventKind.SETTLED, EventKind.TOOL_RETURNED, EventKind.TRANSITION]
    assert it.data(EventKind.SETTLED) == [
        {"state": "pay", "tool": "pay", "key": key, "by": "kim", "done": True, "result": {"receipt": 7}}
    ]


def test_settled_as_not_done_the_call_fails() -> None:
    it = settling()
    the(Finished, it.settle(done=False, result="ignored", by="lee"))
    [settled] = it.data(EventKind.SETTLED)
    assert (settled["by"], settled["done"], "result" in settled) == ("lee", False, False)
    assert it.path()[-1] == ("error", "sorry")
    assert it.job.result == {"kind": "not_done", "message": "a person says that it did not take effect"}


def test_the_deadline_stands_still_while_a_person_is_asked() -> None:
    it = settling("limits: {deadline_s: 60}")
    the(Ask, it.settle(done=True, after=86_400))
    assert it.job.deadline_at is not None
    assert it.job.deadline_at >= NOW + timedelta(seconds=60 + 86_400)


def test_a_settlement_comes_before_the_end_that_somebody_asked_for() -> None:
    for said, result, kind in (
        (Settled(True, {"receipt": 7}), {"receipt": 7}, None),
        (Settled(False), None, "not_done"),
    ):
        it = settling()
        the(AwaitSettlement, it.cancel())
        the(Finished, it.send(Cancelled(said)))
        call = it.call
        assert it.job.status is JobStatus.CANCELLED
        assert (call.result, call.error and call.error.kind) == (result, kind)
        assert call.closed_at is not None
        assert it.events()[-2:] == [EventKind.SETTLED, EventKind.JOB_CANCELLED]


def test_why_nobody_knows_is_kept_with_the_call_until_it_is_settled() -> None:
    it = paying()
    step = it.send(ToolUnknown(ToolError("timeout", "no answer within 5 s")))
    the(AwaitSettlement, step)
    assert (step.events[-1].data["kind"], step.events[-1].data["message"]) == ("timeout", "no answer within 5 s")
    assert it.call.error == ToolError("timeout", "no answer within 5 s")
    the(AwaitSettlement, it.claim(lost=True))
    assert it.call.error == ToolError("timeout", "no answer within 5 s")
    it.settle(done=True)
    call = next(visit for visit in it.job.visits if isinstance(visit, ToolCall))
    assert (call.error, call.runs) == (None, 1)


def test_what_may_run_again_is_never_settled() -> None:
    it = looking()
    with pytest.raises(IllegalEventError):
        it.send(ToolUnknown(ToolError("timeout", "")))
    with pytest.raises(IllegalEventError):
        it.settle(done=True)
