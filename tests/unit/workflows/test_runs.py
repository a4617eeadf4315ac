"""How often a tool is run: after an error, after its worker was lost, and never twice where it cannot be undone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from stepladder.schemas.event import EventKind
from stepladder.schemas.job import Failure, JobStatus
from stepladder.schemas.tool import DEFAULT_TIMEOUT_S, Effect, Kit
from stepladder.workflows.retry import FIRST_BACKOFF_S, LONGEST_BACKOFF_S
from stepladder.workflows.tool_calls import MOST_LOST, SAME_AGAIN
from stepladder.workflows.transition import AwaitSettlement, Finished, Rest, RunTool
from stepladder.workflows.visits import ToolError
from support.machines import codes_of, document, machine_of, play, the, tool

if TYPE_CHECKING:
    from support.machines import Play

SAVE = """
one: {tool: save, %s next: {ok: done, error: sorry}}
done: {end: succeeded, result: tools.one}
sorry: {end: failed, result: {kind: errors.one.kind, message: errors.one.message}}
"""


def saving(policy: str = "retry: {attempts: 3},", head: str = "", **fields: Any) -> Play:
    return play(document(SAVE % policy, head), **fields).begun()


# After an error -------------------------------------------------------------------------------------------------------


def test_without_a_word_about_it_an_error_is_followed_by_no_other_run() -> None:
    it = saving(policy="")
    the(Finished, it.breaks())
    assert it.path()[-1] == ("error", "sorry")
    assert it.call.runs == 1


def test_a_tool_is_run_again_under_its_key_after_a_rest_that_grows() -> None:
    it = saving()
    key, rests = it.call.key, []
    for run in (2, 3):
        rest = the(Rest, it.breaks("OSError", "no route"))
        rests.append((rest.until - it.now).total_seconds())
        assert it.job.due_at == rest.until
        assert the(Rest, it.claim()).until == rest.until, "it is not run before it is due"
        it.now = rest.until
        call = the(RunTool, it.claim()).call
        assert (call.key, call.runs, call.failed, call.error) == (key, run, run - 1, None)
    the(Finished, it.breaks("OSError", "still none"))
    assert it.job.result == {"kind": "OSError", "message": "still none"}
    assert FIRST_BACKOFF_S / 2 <= rests[0] <= FIRST_BACKOFF_S <= rests[1] <= 2 * FIRST_BACKOFF_S < LONGEST_BACKOFF_S
    assert [data["run"] for data in it.data(EventKind.TOOL_STARTED)] == [1, 2, 3]
    assert [(data["run"], data["message"]) for data in it.data(EventKind.TOOL_FAILED)] == [
        (1, "no route"),
        (2, "no route"),
        (3, "still none"),
    ]
    assert [data["run"] for data in it.data(EventKind.RETRY_SCHEDULED)] == [2, 3]


def test_a_run_that_came_right_leaves_no_error_behind() -> None:
    it = saving()
    it.now = the(Rest, it.breaks()).until
    it.claim()
    the(Finished, it.returns({"saved": 1}))
    assert (it.job.status, it.job.result) == (JobStatus.SUCCEEDED, {"saved": 1})
    assert it.call.error is None


@pytest.mark.parametrize("kind", SAME_AGAIN)
def test_an_error_that_would_be_the_same_again_is_not_tried_again(kind: str) -> None:
    it = saving()
    the(Finished, it.breaks(kind))
    assert it.job.result == {"kind": kind, "message": "not there"}


def test_no_rest_goes_beyond_the_deadline() -> None:
    it = saving("retry: {attempts: 9},", "limits: {deadline_s: 2}")
    seen = 0
    while isinstance(rest := it.breaks("OSError").next, Rest):
        assert it.job.deadline_at is not None
        assert rest.until < it.job.deadline_at
        it.now = rest.until
        it.claim()
        seen += 1
    assert 1 <= seen < 8
    assert it.path()[-1] == ("error", "sorry")
    assert it.job.result == {"kind": "OSError", "message": "not there"}


def test_a_rest_that_ends_after_the_deadline_all_the_same_ends_the_job() -> None:
    it = saving(head="limits: {deadline_s: 60}")
    the(Rest, it.breaks("OSError", "no route"))
    the(Finished, it.claim(after=3600))
    assert it.job.failure is Failure.DEADLINE
    assert it.call.error == ToolError("OSError", "no route")
    assert it.call.closed_at is not None


def test_what_cannot_be_undone_may_have_no_retry() -> None:
    states = """
    confirm: {wait: {signal: s}, next: {go: pay}}
    pay: {tool: pay, retry: {attempts: 1}, next: {ok: done}}
    done: {end: succeeded}
    """
    lines = "\n".join(line[4:] for line in states.splitlines())
    assert codes_of(document(lines)) == [("retry_irreversible", "/states/pay/retry")]


# After a lost worker --------------------------------------------------------------------------------------------------


def test_a_tool_that_takes_its_workers_down_is_given_up_after_the_third() -> None:
    it = saving(policy="")
    for run in range(2, MOST_LOST + 1):
        call = the(RunTool, it.claim(after=5, lost=True)).call
        assert (call.runs, call.lost, call.failed) == (run, run - 1, 0)
    the(Finished, it.claim(after=5, lost=True))
    assert it.path()[-1] == ("error", "sorry")
    assert it.job.result == {"kind": "worker_lost", "message": "the worker was lost 3 times while this tool ran"}
    assert [(data["run"], data["kind"]) for data in it.data(EventKind.TOOL_FAILED)] == [
        (run, "worker_lost") for run in range(1, MOST_LOST + 1)
    ]


def test_a_worker_that_hands_a_job_back_is_not_lost() -> None:
    it = saving(policy="")
    for run in range(2, 20):
        assert the(RunTool, it.claim()).call.runs == run
    assert (it.call.lost, it.call.failed) == (0, 0)


def test_a_worker_that_is_lost_while_the_tool_rests_does_not_count() -> None:
    it = saving()
    for _ in range(2):
        it.now = the(Rest, it.breaks()).until
        it.claim(lost=True)
    assert (it.call.lost, it.call.runs) == (0, 3)


def test_errors_and_lost_workers_are_counted_apart() -> None:
    it = saving("retry: {attempts: 2},")
    it.claim(lost=True)
    it.claim(lost=True)
    it.now = the(Rest, it.breaks()).until
    call = the(RunTool, it.claim()).call
    assert (call.runs, call.lost, call.failed) == (4, 2, 1)
    the(Finished, it.breaks())


def test_a_lost_worker_does_not_make_a_job_outlive_its_deadline() -> None:
    it = saving(head="limits: {deadline_s: 60}")
    the(Finished, it.claim(after=61, lost=True))
    assert it.job.failure is Failure.DEADLINE
    assert it.call.error is not None


def test_what_cannot_be_undone_is_settled_however_often_its_workers_are_lost() -> None:
    states = """
confirm: {wait: {signal: s}, next: {go: pay}}
pay: {tool: pay, next: {ok: done, error: done}}
done: {end: succeeded}
"""
    it = play(document(states)).begun()
    wait = the(RunTool, it.answer("go")).call
    for _ in range(MOST_LOST + 1):
        the(AwaitSettlement, it.claim(lost=True))
    assert (it.call.runs, it.call.key) == (1, wait.key)


# How long -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "state", "bound"),
    [
        (None, "", DEFAULT_TIMEOUT_S),
        (2.0, "", 2.0),
        (None, "timeout_s: 900,", 900.0),
        (2.0, "timeout_s: 900,", 2.0),
        (900.0, "timeout_s: 3.5,", 3.5),
        (0.0, "timeout_s: 5,", 0.0),
        (5.0, "timeout_s: 0,", 0.0),
    ],
)
def test_the_smaller_bound_on_a_run_holds(code: float | None, state: str, bound: float) -> None:
    kit = Kit({"save": replace(tool("save", Effect.IDEMPOTENT), timeout_s=code)})
    assert machine_of(document(SAVE % state), kit).tool("one", "save").timeout_s == bound


@pytest.mark.parametrize("field", ["parameters", "returns"])
def test_a_tool_whose_schema_cannot_be_used_keeps_the_document_out(field: str) -> None:
    unusable: Any = {field: {"type": "nothing"}}
    kit = Kit({"save": replace(tool("save"), **unusable)})
    assert codes_of(document(SAVE % ""), kit) == [("bad_tool", "/states/one/tool")]


def test_a_signal_may_not_be_called_as_what_the_machine_waits_for() -> None:
    states = "one: {wait: {signal: settlement}, next: {go: done}}\ndone: {end: succeeded}"
    assert codes_of(document(states)) == [("reserved_signal", "/states/one/wait/signal")]
