from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from stepladder.schemas.event import EventKind
from stepladder.schemas.job import SETTLEMENT, Failure, JobStatus
from stepladder.schemas.outcomes import Cause, Outcome
from stepladder.workflows.advance import advance
from stepladder.workflows.builder import IllegalEventError
from stepladder.workflows.events import Cancelled, Claimed, Judged, Settled, Signalled, ToolFailed, ToolReturned
from stepladder.workflows.job import Signal, Turn
from stepladder.workflows.transition import Ask, Await, AwaitSettlement, Finished, Rest, RunTool
from stepladder.workflows.visits import ToolCall, ToolError, Wait
from support.machines import NOW, accepted, document, play, rejected, the

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepladder.workflows.events import Event
    from support.machines import Play

STATES = """
one:
  ask: Hi {{ input.name | default("you") }}
  output: {type: object, properties: {action: {enum: [look, pay, stop]}}, required: [action]}
  next: {look: look, pay: confirm, stop: done}
look: {tool: look, arguments: {q: "'x'"}, next: {ok: one, error: one}}
confirm: {wait: {signal: approval, timeout_s: 3600}, next: {approve: pay, refuse: refused, timeout: refused}}
pay: {tool: pay, arguments: {sum: "3"}, next: {ok: done, error: refused}}
done: {end: succeeded, result: {last: turns.one.action}}
refused: {end: failed}
"""


def game(head: str = "", states: str = STATES, **fields: Any) -> Play:
    return play(document(states, head), **fields)


# One table: where the job stands, what happens, what follows ----------------------------------------------------------


def queued() -> Play:
    return game()


def asking() -> Play:
    it = game()
    it.claim()
    return it


def resting() -> Play:
    it = asking()
    it.fails(Outcome.TRANSPORT, Cause.CONNECT)
    return it


def running() -> Play:
    it = asking()
    it.says({"action": "look"})
    return it


def waiting() -> Play:
    it = asking()
    it.says({"action": "pay"})
    return it


def paying() -> Play:
    it = waiting()
    wait = it.job.open
    assert isinstance(wait, Wait)
    it.signal({"action": "approve", "wait_id": str(wait.wait_id)})
    return it


def settling() -> Play:
    it = paying()
    it.claim()
    return it


def succeeded() -> Play:
    it = asking()
    it.says({"action": "stop"})
    return it


def cancelled() -> Play:
    it = asking()
    it.cancel()
    return it


CLAIMED, CANCELLED = Claimed(), Cancelled()
ANSWER, WRONG, LOST = (
    Judged(accepted({"action": "stop"})),
    Judged(rejected(Outcome.EMPTY)),
    Judged(rejected(Outcome.TRANSPORT, Cause.CONNECT)),
)
RESULT, ERROR = ToolReturned({"x": 1}), ToolFailed(ToolError("KeyError", "x"))
REFUSE = Signalled(Signal(UUID(int=7), "approval", {"action": "nothing"}, NOW))
DONE, NOT_DONE = Settled(True, 1), Settled(False)
TRIGGERS = [CLAIMED, CANCELLED, ANSWER, WRONG, LOST, RESULT, ERROR, REFUSE, DONE, NOT_DONE]

FOLLOWS: list[tuple[Callable[[], Play], dict[int, type]]] = [
    (queued, {0: Ask, 1: Finished}),
    (asking, {0: Ask, 1: Finished, 2: Finished, 3: Ask, 4: Rest}),
    (resting, {0: Rest, 1: Finished}),
    (running, {0: RunTool, 1: Finished, 5: Ask, 6: Ask}),
    (waiting, {0: Await, 1: Finished, 7: Await}),
    (paying, {0: AwaitSettlement, 1: AwaitSettlement, 5: Finished, 6: Finished}),
    (settling, {0: AwaitSettlement, 1: AwaitSettlement, 8: Finished, 9: Finished}),
    (succeeded, {}),
    (cancelled, {}),
]
TABLE = [(place, event, follows.get(n)) for place, follows in FOLLOWS for n, event in enumerate(TRIGGERS)]


@pytest.mark.parametrize(
    ("place", "event", "follows"),
    TABLE,
    ids=[f"{place.__name__}-{type(t).__name__}-{f.__name__ if f else 'illegal'}" for place, t, f in TABLE],
)
def test_what_follows_in_each_place(place: Callable[[], Play], event: Event, follows: type | None) -> None:
    it = place()
    before = it.job
    if follows is None:
        with pytest.raises(IllegalEventError, match=type(event).__name__):
            advance(it.machine, it.job, event, it.now)
    else:
        assert isinstance(it.send(event).next, follows)
    assert before == place().job, "a job is never changed in place"
    if follows is Finished:
        assert it.job.status.final
        assert it.job.open is None
        assert (it.job.due_at, it.job.waiting_for) == (None, None)


# A job's way ----------------------------------------------------------------------------------------------------------


def test_a_whole_job_and_its_history() -> None:
    it = game("system: Be brief.")
    it.claim()
    it.says({"action": "look"})
    it.returns({"found": 1})
    it.fails(Outcome.EMPTY)
    step = it.says({"action": "stop"})
    assert it.job.status is JobStatus.SUCCEEDED
    assert it.job.result == {"last": "stop"}
    assert [event.ordinal for s in it.steps for event in s.events] == list(range(1, it.job.event_count + 1))
    assert it.events() == [
        EventKind.JOB_STARTED,
        EventKind.TURN_STARTED,
        EventKind.ATTEMPT_JUDGED,
        EventKind.TURN_ACCEPTED,
        EventKind.TRANSITION,
        EventKind.TOOL_STARTED,
        EventKind.TOOL_RETURNED,
        EventKind.TRANSITION,
        EventKind.TURN_STARTED,
        EventKind.ATTEMPT_JUDGED,
        EventKind.ATTEMPT_JUDGED,
        EventKind.TURN_ACCEPTED,
        EventKind.TRANSITION,
        EventKind.JOB_SUCCEEDED,
    ]
    assert it.path() == [("look", "look"), ("ok", "one"), ("stop", "done")]
    assert [(line.turn, line.role) for line in it.job.transcript] == [
        (0, "system"),
        (1, "user"),
        (1, "assistant"),
        (2, "user"),
        (2, "assistant"),
    ]
    assert it.job.tokens == 30
    assert step.opened is None


def test_a_step_says_all_that_has_to_be_written() -> None:
    it = game("system: Be brief.")
    first = it.claim()
    ask = the(Ask, first)
    assert first.opened == ask.attempt
    assert [visit.visit for visit in first.visits] == [1]
    assert [line.role for line in first.messages] == ["system"]
    again = it.fails(Outcome.EMPTY)
    assert [attempt.ordinal for attempt in again.judged] == [1]
    assert again.opened is not None
    assert again.opened.ordinal == 2
    assert again.messages == ()
    accepted_ = it.says({"action": "look"})
    assert [type(visit) for visit in accepted_.visits] == [Turn, ToolCall]
    assert [line.role for line in accepted_.messages] == ["user", "assistant"]


def test_a_rest_ends_when_it_is_due_and_not_before() -> None:
    it = asking()
    until = the(Rest, it.fails(Outcome.TRANSPORT, Cause.CONNECT)).until
    assert it.job.due_at == until
    early = the(Rest, it.claim())
    assert early.until == until
    assert it.steps[-1].events == ()
    it.now = until
    assert the(Ask, it.claim()).attempt.ordinal == 2


def test_an_attempt_whose_worker_died_is_asked_for_again_at_once() -> None:
    it = asking()
    assert the(Ask, it.claim()).attempt.ordinal == 1, "its verdict is still missing"
    assert the(Ask, it.fails(Outcome.TRANSPORT, Cause.ABANDONED, tokens=0)).attempt.ordinal == 2
    assert EventKind.ATTEMPT_ABANDONED in it.events()


# What no edge lists is denied -----------------------------------------------------------------------------------------

OPEN = """
one: {ask: Hi, output: {properties: {action: {type: string}}, required: [action]}, next: {go: done}}
done: {end: succeeded}
"""


@pytest.mark.parametrize("output", [{"action": "other"}, {"action": "always"}, {"action": 1}, {}, [], "go"])
def test_an_action_that_no_edge_lists_ends_the_job(output: Any) -> None:
    it = game(states=OPEN)
    it.claim()
    the(Finished, it.says(output))
    assert (it.job.status, it.job.failure) == (JobStatus.FAILED, Failure.TRANSITION_DENIED)
    assert "go" in (it.job.failure_detail or ""), "it says what would have been taken"
    assert it.path() == []
    turn = it.job.visits[-1]
    assert isinstance(turn, Turn)
    assert turn.accepted, "the answer was valid, the way was not"


def test_a_denied_transition_goes_where_the_state_sends_it() -> None:
    it = game(states=OPEN.replace("next: {go: done}", "next: {go: done}, on_failure: {transition_denied: done}"))
    it.claim()
    the(Finished, it.says({"action": "other"}))
    assert it.path() == [("transition_denied", "done")]


@pytest.mark.parametrize(
    ("outcome", "cause", "failure"),
    [
        (Outcome.EMPTY, Cause.NO_CONTENT, Failure.ATTEMPTS_EXHAUSTED),
        (Outcome.SCHEMA_REJECTED, None, Failure.SCHEMA_REJECTED),
        (Outcome.REQUEST_REJECTED, Cause.AUTH, Failure.REQUEST_REJECTED),
        (Outcome.REFUSED, Cause.REFUSAL, Failure.REFUSED),
    ],
)
def test_a_turn_that_failed_goes_where_its_state_sends_it_or_ends_the_job(
    outcome: Outcome, cause: Cause | None, failure: Failure
) -> None:
    alone = game("retry: {attempts: 1}")
    alone.claim()
    the(Finished, alone.fails(outcome, cause))
    assert (alone.job.status, alone.job.failure) == (JobStatus.FAILED, failure)
    assert "state one" in (alone.job.failure_detail or "")
    sent = game(
        "retry: {attempts: 1}", STATES.replace("stop: done}", f"stop: done}}\n  on_failure: {{{failure}: done}}", 1)
    )
    sent.claim()
    the(Finished, sent.fails(outcome, cause))
    assert sent.path() == [(failure.value, "done")]
    assert EventKind.TURN_FAILED in sent.events()


# The job's bounds -----------------------------------------------------------------------------------------------------

ROUND = "one: {ask: Hi, output: {type: object}, next: one, on_failure: {refused: done}}\ndone: {end: succeeded}"


@pytest.mark.parametrize("most", [0, 1, 3])
def test_no_more_turns_than_max_turns(most: int) -> None:
    it = game(f"limits: {{max_turns: {most}}}", ROUND)
    step = it.claim()
    for number in range(most):
        the(Ask, step)
        step = it.says({"n": number})
    the(Finished, step)
    assert (it.job.failure, it.job.turn_count) == (Failure.MAX_TURNS, most)


@pytest.mark.parametrize(
    ("head", "failure"),
    [
        ("limits: {token_budget: 0}", Failure.TOKEN_BUDGET),
        ("limits: {deadline_s: 0}", Failure.DEADLINE),
        ("retry: {attempts: 0}", Failure.ATTEMPTS_EXHAUSTED),
    ],
)
def test_a_limit_of_zero_is_zero(head: str, failure: Failure) -> None:
    it = game(head)
    the(Finished, it.claim())
    assert (it.job.failure, it.job.turn_count) == (failure, 0)


def test_the_token_budget_is_the_jobs_and_clips_what_is_left() -> None:
    it = game("limits: {token_budget: 100}", ROUND)
    assert the(Ask, it.claim()).attempt.max_completion_tokens == 100
    assert the(Ask, it.says({"n": 1}, tokens=40)).attempt.max_completion_tokens == 60
    assert the(Ask, it.fails(Outcome.EMPTY, tokens=50)).attempt.max_completion_tokens == 10
    the(Finished, it.says({"n": 2}, tokens=10))
    assert (it.job.failure, it.job.tokens) == (Failure.TOKEN_BUDGET, 100)


def test_the_deadline_binds_turns_and_tools() -> None:
    it = game("limits: {deadline_s: 60}")
    it.claim()
    the(Finished, it.says({"action": "look"}, after=60))
    assert it.job.failure is Failure.DEADLINE
    later = game("limits: {deadline_s: 60}")
    later.claim()
    later.says({"action": "look"}, after=59)
    the(Finished, later.returns({}, after=1))
    assert later.job.failure is Failure.DEADLINE
    assert later.job.visits[-1].closed_at is not None, "the result is kept, however late"


def test_an_end_is_reached_however_late() -> None:
    it = game("limits: {deadline_s: 60}")
    it.claim()
    the(Finished, it.says({"action": "stop"}, after=999))
    assert it.job.status is JobStatus.SUCCEEDED


def test_the_models_limit_is_respected_where_it_is_known() -> None:
    it = game(max_model_len=600)
    it.claim()
    assert (
        the(Ask, it.fails(Outcome.TRUNCATION, Cause.BUDGET, tokens=522, prompt=10)).attempt.max_completion_tokens == 590
    )


# Expressions ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("states", "head", "where"),
    [
        (STATES.replace('input.name | default("you")', "input.name"), "", "question of state one"),
        (STATES.replace("'x'", "input.q"), "", "arguments of state look"),
        (STATES.replace("arguments: {q: \"'x'\"}", 'arguments: "1"'), "", "arguments of state look"),
        (STATES.replace("signal: approval", "signal: approval, show: input.q"), "", "state confirm shows"),
        (STATES.replace('sum: "3"', "sum: input.sum"), "", "arguments of state pay"),
        (STATES.replace("turns.one.action", "turns.one.nothing"), "", "result of state done"),
        (STATES, "system: '{{ input.who }}'", "system prompt"),
    ],
)
def test_an_expression_that_cannot_be_evaluated_ends_the_job_where_it_stands(
    states: str, head: str, where: str
) -> None:
    word = "look" if "look" in where else "pay" if "confirm" in where or "pay" in where else "stop"
    it = game(head, states)
    step = it.claim()
    if isinstance(step.next, Ask):
        step = it.says({"action": word})
    the(Finished, step)
    assert (it.job.status, it.job.failure) == (JobStatus.FAILED, Failure.EXPRESSION_ERROR)
    assert where in (it.job.failure_detail or "")
    assert it.job.open is None


def test_an_expression_error_of_a_turn_goes_where_its_state_sends_it() -> None:
    states = "one: {ask: '{{ input.x }}', output: {type: object}, next: done, on_failure: {expression_error: done}}"
    it = game(states=f"{states}\ndone: {{end: succeeded}}")
    the(Finished, it.claim())
    assert it.job.status is JobStatus.SUCCEEDED
    assert it.job.turn_count == 0


# Exhausted edges ------------------------------------------------------------------------------------------------------


def test_an_exhausted_edge_is_taken_in_place_of_the_next_visit() -> None:
    states = """
one: {ask: Hi, output: {type: object}, next: {always: one, exhausted: act}, max_visits: 2}
act: {tool: look, max_visits: 2, next: {ok: act, exhausted: done}}
done: {end: succeeded, result: {turns: visits.one.size(), results: visits.act.size()}}
"""
    it = game(states=states)
    it.claim()
    it.says({"n": 1})
    the(RunTool, it.says({"n": 2}))
    the(RunTool, it.returns(1))
    the(Finished, it.returns(2))
    assert it.job.result == {"turns": 2, "results": 2}
    assert [word for word, _ in it.path()] == ["always", "always", "exhausted", "ok", "ok", "exhausted"]


def test_exhausted_edges_in_a_circle_end() -> None:
    states = """
one: {ask: Hi, output: {type: object}, next: {always: two, exhausted: two}, max_visits: 1}
two: {tool: look, next: {ok: one, exhausted: one}, max_visits: 1}
done: {end: succeeded}
"""
    it = game(states=states.replace("max_visits: 1}\ntwo", "max_visits: 1, on_failure: {refused: done}}\ntwo"))
    it.claim()
    it.says({})
    the(Finished, it.returns({}))
    assert (it.job.status, it.job.failure) == (JobStatus.FAILED, Failure.LOOP)
    assert "circle" in (it.job.failure_detail or "")


def test_failures_sent_in_a_circle_end() -> None:
    states = """
one: {ask: Hi, output: {type: object}, next: done, on_failure: {token_budget: two}}
two: {ask: Hi, output: {type: object}, next: done, on_failure: {token_budget: one}}
done: {end: succeeded}
"""
    it = game("limits: {token_budget: 0}", states)
    the(Finished, it.claim())
    assert it.job.failure is Failure.LOOP


def test_a_machine_may_end_in_failure_with_a_result() -> None:
    it = game(states="one: {tool: look, next: {ok: bad}}\nbad: {end: failed, result: {why: tools.one}}")
    it.claim()
    the(Finished, it.returns("because"))
    assert (it.job.status, it.job.failure) == (JobStatus.FAILED, Failure.REJECTED)
    assert it.job.result == {"why": "because"}


# Cancelling -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [queued, asking, resting, running, waiting])
def test_a_job_can_be_cancelled_anywhere(place: Callable[[], Play]) -> None:
    it = place()
    opened = it.job.open
    step = it.cancel(after=5)
    the(Finished, step)
    assert it.job.status is JobStatus.CANCELLED
    assert it.job.failure is None
    assert step.events[-1].kind is EventKind.JOB_CANCELLED
    assert [visit.closed_at for visit in step.visits] == ([] if opened is None else [NOW + timedelta(seconds=5)])


def test_an_attempt_that_was_under_way_counts_as_aborted() -> None:
    it = asking()
    step = it.cancel()
    (judged,) = step.judged
    assert judged.verdict is not None
    assert (judged.verdict.outcome, judged.verdict.cause) == (Outcome.TRANSPORT, Cause.ABORTED)
    assert resting().cancel().judged == ()


@pytest.mark.parametrize("place", [paying, settling])
def test_an_effect_that_may_have_taken_place_is_settled_before_the_job_is_cancelled(place: Callable[[], Play]) -> None:
    it = place()
    the(AwaitSettlement, it.cancel())
    assert (it.job.status, it.job.waiting_for) == (JobStatus.WAITING, SETTLEMENT)


def test_a_tool_that_was_under_way_has_no_result() -> None:
    it = running()
    it.cancel()
    call = it.job.visits[-1]
    assert isinstance(call, ToolCall)
    assert call.error is not None
    assert call.error.kind == "cancelled"
