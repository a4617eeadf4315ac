from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from stepladder.schemas.event import EventKind
from stepladder.schemas.job import Failure, JobStatus
from stepladder.schemas.outcomes import Cause, Outcome
from stepladder.workflows.advance import advance
from stepladder.workflows.builder import IllegalEventError
from stepladder.workflows.events import Cancelled, Claimed, Judged, Settled, Signalled, ToolFailed, ToolReturned
from stepladder.workflows.job import Signal, Turn
from stepladder.workflows.transition import Ask, Await, AwaitSettlement, Finished, Rest, RunTool
from stepladder.workflows.visits import ToolError
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


# One table: where the job is, what happens, what follows ----------------------------------------------------------


def queued() -> Play:
    return game()


def asking() -> Play:
    return game().begun()


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
    it.answer("approve")
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


# A whole job ----------------------------------------------------------------------------------------------------------


def test_a_whole_job_and_its_history() -> None:
    it = game("system: Be brief.").begun()
    it.says({"action": "look"})
    it.returns({"found": 1})
    it.fails(Outcome.EMPTY)
    step = it.says({"action": "stop"})
    assert it.job.status is JobStatus.SUCCEEDED
    assert it.job.result == {"last": "stop"}
    assert [event.ordinal for s in it.steps for event in s.events] == list(range(1, it.job.event_count + 1))
    assert [kind.value for kind in it.events()] == [
        *("job_started", "turn_started", "attempt_judged", "turn_accepted", "transition"),
        *("tool_started", "tool_returned", "transition"),
        *("turn_started", "attempt_judged", "attempt_judged", "turn_accepted", "transition", "job_succeeded"),
    ]
    assert it.path() == [("look", "look"), ("ok", "one"), ("stop", "done")]
    roles = [(0, "system"), (1, "user"), (1, "assistant"), (2, "user"), (2, "assistant")]
    assert [(line.turn, line.role) for line in it.job.transcript] == roles
    assert it.job.tokens == 30
    assert step.opened is None


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


# An action without a listed transition is denied ----------------------------------------------------------------------

OPEN = """
one: {ask: Hi, output: {properties: {action: {type: string}}, required: [action]}, next: {go: done}}
done: {end: succeeded}
"""


@pytest.mark.parametrize("output", [{"action": "other"}, {"action": "always"}, {"action": 1}, {}, [], "go"])
def test_an_action_that_no_edge_lists_ends_the_job(output: Any) -> None:
    it = game(states=OPEN).begun()
    the(Finished, it.says(output))
    assert (it.job.status, it.job.failure) == (JobStatus.FAILED, Failure.TRANSITION_DENIED)
    assert "go" in (it.job.failure_detail or ""), "it says what would have been taken"
    assert it.path() == []
    turn = it.job.visits[-1]
    assert isinstance(turn, Turn)
    assert turn.accepted, "the answer was valid, the transition was not"
    routed = game(
        states=OPEN.replace("next: {go: done}", "next: {go: done}, on_failure: {transition_denied: done}")
    ).begun()
    the(Finished, routed.says(output))
    assert routed.path() == [("transition_denied", "done")]


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
    alone = game("retry: {attempts: 1}").begun()
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
    it = game("limits: {deadline_s: 60}").begun()
    the(Finished, it.says({"action": "look"}, after=60))
    assert it.job.failure is Failure.DEADLINE
    later = game("limits: {deadline_s: 60}").begun()
    later.says({"action": "look"}, after=59)
    the(Finished, later.returns({}, after=1))
    assert later.job.failure is Failure.DEADLINE
    assert later.job.visits[-1].closed_at is not None, "the result is kept, however late"
    ended = game("limits: {deadline_s: 60}").begun()
    the(Finished, ended.says({"action": "stop"}, after=999))
    assert ended.job.status is JobStatus.SUCCEEDED, "an end is reached, however late"


def test_the_models_limit_is_respected_where_it_is_known() -> None:
    it = game(max_model_len=600).begun()
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
def test_an_expression_that_cannot_be_evaluated_ends_the_job(states: str, head: str, where: str) -> None:
    word = "look" if "look" in where else "pay" if "confirm" in where or "pay" in where else "stop"
    it = game(head, states)
    step = it.claim()
    if isinstance(step.next, Ask):
        step = it.says({"action": word})
    the(Finished, step)
    assert (it.job.status, it.job.failure) == (JobStatus.FAILED, Failure.EXPRESSION_ERROR)
    assert where in (it.job.failure_detail or "")
    assert it.job.open is None
    if where == "question of state one":
        routed = game(states=states.replace("stop: done}", "stop: done}\n  on_failure: {expression_error: done}", 1))
        the(Finished, routed.claim())
        assert (routed.path(), routed.job.turn_count) == ([("expression_error", "done")], 0)


# Exhausted edges ------------------------------------------------------------------------------------------------------


def test_an_exhausted_edge_is_taken_in_place_of_the_next_visit() -> None:
    states = """
one: {ask: Hi, output: {type: object}, next: {always: one, exhausted: act}, max_visits: 2}
act: {tool: look, max_visits: 2, next: {ok: act, exhausted: done}}
done: {end: succeeded, result: {turns: visits.one.size(), results: visits.act.size()}}
"""
    it = game(states=states).begun()
    it.says({"n": 1})
    the(RunTool, it.says({"n": 2}))
    the(RunTool, it.returns(1))
    the(Finished, it.returns(2))
    assert it.job.result == {"turns": 2, "results": 2}
    assert [word for word, _ in it.path()] == ["always", "always", "exhausted", "ok", "ok", "exhausted"]


@pytest.mark.parametrize(
    ("head", "one", "two"),
    [
        (
            "",
            "{ask: Hi, output: {}, next: {always: two, exhausted: two}, max_visits: 1, on_failure: {refused: done}}",
            "{tool: look, next: {ok: one, exhausted: one}, max_visits: 1}",
        ),
        (
            "limits: {token_budget: 0}",
            "{ask: Hi, output: {type: object}, next: done, on_failure: {token_budget: two}}",
            "{ask: Hi, output: {type: object}, next: done, on_failure: {token_budget: one}}",
        ),
    ],
    ids=["exhausted", "failures"],
)
def test_transitions_in_a_circle_end(head: str, one: str, two: str) -> None:
    it = game(head, f"one: {one}\ntwo: {two}\ndone: {{end: succeeded}}\n")
    if isinstance(it.claim().next, Ask):
        it.says({})
        the(Finished, it.returns({}))
    assert (it.job.status, it.job.failure) == (JobStatus.FAILED, Failure.LOOP)
    assert "circle" in (it.job.failure_detail or "")


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
    aborted = [attempt.verdict and (attempt.verdict.outcome, attempt.verdict.cause) for attempt in step.judged]
    assert aborted == ([(Outcome.TRANSPORT, Cause.ABORTED)] if place is asking else [])
    if place is running:
        assert it.call.error is not None
        assert it.call.error.kind == "cancelled"
