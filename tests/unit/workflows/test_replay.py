"""Replays, pure: wherever a job is cut, with the same answers it comes to the same end; and what limits count."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepladder.schemas.job import Failure, JobStatus
from stepladder.schemas.outcomes import Outcome
from stepladder.schemas.replay import Mode
from stepladder.workflows.job import Job, Spent, Turn
from stepladder.workflows.replay import Carried, Cut, Refused, carry, cut
from stepladder.workflows.transition import Ask, Await, AwaitSettlement, Finished, RunTool
from stepladder.workflows.visits import SignalWait, ToolCall, ToolError
from support.machines import JOB, NOW, Play, document, machine_of, the

if TYPE_CHECKING:
    from stepladder.workflows.machine import Machine
    from stepladder.workflows.transition import Transition

NEW = UUID("018f0000-0000-7000-8000-000000000002")
NUMBER = "{type: object, properties: {n: {type: integer}}, required: [n], additionalProperties: false}"
ACTION = (
    "{type: object, properties: {action: {enum: [more, look, pay, stop]}, n: {type: integer}}, required: [action, n]}"
)
HEAD = "system: Be brief.\nlimits: {max_turns: 40, loop: off}"
WALK = f"""
ask_on:
  ask: "After {{{{ visits.ask_on | default([]) | length }}}}?"
  output: {ACTION}
  next: {{more: ask_on, look: search, pay: confirm, stop: last}}
search: {{tool: look, arguments: {{q: "'x'"}}, next: {{ok: ask_on, error: ask_on}}}}
confirm: {{wait: {{signal: word}}, next: {{go: pay, no: ask_on}}}}
pay: {{tool: pay, next: {{ok: ask_on, error: ask_on}}}}
last:
  ask: "How many?"
  output: {NUMBER}
  next: done
done: {{end: succeeded, result: {{n: "turns.last.n", all: "visits.ask_on.map(one, one.n)"}}}}
"""
WALK_TEXT = document(WALK, HEAD)
MACHINE = machine_of(WALK_TEXT)


def begin(machine: Machine = MACHINE) -> Play:
    return Play(machine, Job(JOB, JOB, {}, NOW))


def answer(walk: Play, step: Transition, actions: list[str]) -> Transition | None:
    """What the world says to a step; None once there is nothing more to say."""
    match step.next:
        case Ask(turn, _) if turn.state == "last":
            return walk.says({"n": turn.ordinal})
        case Ask(turn, _):
            action = actions[turn.ordinal - 1] if turn.ordinal <= len(actions) else "stop"
            return walk.says({"action": action, "n": turn.ordinal})
        case RunTool(call):
            return walk.returns({"key": call.key})
        case Await():
            return walk.answer("go")
        case _:
            return None


def walked(walk: Play, actions: list[str]) -> list[Transition]:
    steps = [walk.claim()]
    while (following := answer(walk, steps[-1], actions)) is not None:
        steps.append(following)
    return steps


def cut_at(walk: Play, mode: Mode, turn: int | None) -> Cut:
    at = cut(walk.job, walk.machine, mode, turn)
    assert isinstance(at, Cut), at
    return at


def again(walk: Play, at: Cut, spent: dict[str, Spent] | None = None) -> Play:
    """A new job that begins at the cut, as the runner would write it."""
    carried = carry(walk.job, at, walk.machine)
    assert isinstance(carried, Carried), carried
    job = Job(NEW, walk.job.lineage, walk.job.input, walk.now, principal=walk.job.principal)
    job = replace(job, state=carried.state, visits=carried.visits, transcript=carried.transcript, spent=spent or {})
    return Play(walk.machine, job, walk.now)


def told(job: Job) -> list[Any]:
    """What a job came to, without times and ids."""
    visits: list[Any] = []
    for visit in job.visits:
        match visit:
            case Turn():
                visits.append((visit.state, visit.ordinal, visit.question, visit.output))
            case ToolCall():
                visits.append((visit.state, visit.key, visit.result))
            case SignalWait():
                visits.append((visit.state, visit.action, visit.frozen))
            case _:
                visits.append(visit)
    lines = [(line.ordinal, line.turn, line.role, line.content) for line in job.transcript]
    return [job.status, job.state, job.result, job.failure, visits, lines]


@given(st.lists(st.sampled_from(["more", "look", "pay"]), max_size=8), st.data())
def test_a_fork_from_any_turn_with_the_same_answers_comes_to_the_same_end(actions: list[str], data: Any) -> None:
    walk = begin()
    walked(walk, actions)
    turn = data.draw(st.integers(1, walk.job.turn_count))
    at = cut_at(walk, Mode.FORK, turn)
    fork = again(walk, at)
    steps = walked(fork, actions)
    assert told(fork.job) == told(walk.job)
    asked = [visit.ordinal for visit in fork.job.visits if isinstance(visit, Turn) and not visit.carried]
    assert asked == list(range(turn, walk.job.turn_count + 1))
    assert isinstance(steps[-1].next, Finished)


@given(st.lists(st.sampled_from(["more", "look", "pay"]), max_size=8), st.data())
def test_a_job_cancelled_at_any_step_and_resumed_comes_to_the_same_end(actions: list[str], data: Any) -> None:
    """Whatever was open is done again: under the same key, where it was a tool."""
    whole = begin()
    steps = walked(whole, actions)
    where = data.draw(st.integers(0, len(steps) - 2))
    walk = begin()
    step = walk.claim()
    for _ in range(where):
        following = answer(walk, step, actions)
        assert following is not None
        step = following
    unknown = isinstance(walk.cancel().next, AwaitSettlement)
    if unknown:
        open_call = walk.job.open
        assert isinstance(open_call, ToolCall)
        walk.settle(done=True, result={"key": open_call.key})
        walk.job = replace(walk.job, status=JobStatus.CANCELLED) if not walk.job.status.final else walk.job
    if not walk.job.status.final or walk.job.state != step.job.state:
        return  # settled and gone on: the job was no longer to be cancelled
    at = cut_at(walk, Mode.RESUME, None)
    resumed = again(walk, at)
    walked(resumed, actions)
    assert told(resumed.job) == told(whole.job)


def test_nothing_that_was_taken_over_counts_against_max_turns() -> None:
    walk = begin(machine_of(WALK_TEXT.replace("max_turns: 40", "max_turns: 2")))
    walked(walk, ["more", "more"])
    assert walk.job.failure is Failure.MAX_TURNS
    at = cut(walk.job, walk.machine, Mode.RESUME, None)
    assert at == Cut(2, "ask_on", 3)
    resumed = again(walk, at)
    walked(resumed, ["more", "more", "stop"])
    assert (resumed.job.status, resumed.job.turn_count, resumed.job.turns_taken) == (JobStatus.SUCCEEDED, 4, 2)


@pytest.mark.parametrize(
    ("spent", "goes_on"),
    [
        (Spent(JOB, closed=True, result={"paid": 1}), True),
        (Spent(JOB, closed=True, error=ToolError("ValueError", "no")), True),
        (Spent(JOB, closed=False), False),
    ],
)
def test_a_call_that_the_lineage_began_is_never_run(spent: Spent, goes_on: bool) -> None:
    walk = begin()
    walked(walk, ["pay"])
    [key] = [visit.key for visit in walk.job.visits if isinstance(visit, ToolCall)]
    fork = again(walk, Cut(0, None), {key: spent})
    steps = walked(fork, ["pay"])
    assert not any(isinstance(step.next, RunTool) for step in steps)
    [call] = [visit for visit in fork.job.visits if isinstance(visit, ToolCall)]
    assert (call.carried, call.runs, call.key) == (True, 0, key)
    if goes_on:
        assert (call.result, call.error) == (spent.result, spent.error)
        assert fork.job.status is JobStatus.SUCCEEDED
    else:
        assert isinstance(steps[-1].next, AwaitSettlement)
        assert str(JOB) in str(call.error)
        after = fork.settle(done=True, result={"paid": 1})
        assert the(Ask, after).turn.state == "ask_on"


def test_a_turn_that_failed_is_asked_again_and_one_that_led_nowhere_too() -> None:
    walk = begin().begun()
    walk.says({"action": "more", "n": 1})
    walk.fails(Outcome.REFUSED)
    assert walk.job.failure is Failure.REFUSED
    assert cut(walk.job, walk.machine, Mode.RESUME, None) == Cut(1, "ask_on", 2)


@pytest.mark.parametrize(("status", "failure"), [("succeeded", None), ("failed", "rejected"), ("running", None)])
def test_what_ended_as_its_document_says_or_lives_is_not_resumed(status: str, failure: str | None) -> None:
    walk = begin().begun()
    word = None if failure is None else Failure(failure)
    job = replace(walk.job, status=JobStatus(status), failure=word)
    refused = cut(job, walk.machine, Mode.RESUME, None)
    assert isinstance(refused, Refused)
    assert refused.field is None
    assert "fork" in refused.remedy


def test_a_state_that_the_changed_document_lacks_is_named() -> None:
    walk = begin()
    walked(walk, ["more"])
    at = Cut(1, "gone", 2)
    refused = carry(walk.job, at, walk.machine)
    assert isinstance(refused, Refused)
    assert "gone" in refused.reason


def test_outputs_that_break_their_schema_now_are_told_and_kept() -> None:
    walk = begin()
    walked(walk, ["more"])
    wide, narrow = "n: {type: integer}}, required: [action", "n: {type: integer, maximum: 0}}, required: [action"
    narrower = machine_of(WALK_TEXT.replace(wide, narrow))
    at = cut_at(walk, Mode.FORK, 2)
    carried = carry(walk.job, at, narrower)
    assert isinstance(carried, Carried)
    assert [(turn, one.pointer) for turn, one in carried.misfits] == [(1, "/n")]
    assert len(carried.visits) == 1


def test_a_failed_answer_is_no_line_of_the_transcript_that_is_taken_over() -> None:
    walk = begin().begun()
    walk.fails(Outcome.EMPTY, "no_content", content=b"")
    walk.says({"action": "more", "n": 1})
    at = cut_at(walk, Mode.FORK, 2)
    carried = carry(walk.job, at, walk.machine)
    assert isinstance(carried, Carried)
    assert [(line.ordinal, line.turn, line.role) for line in carried.transcript] == [
        (1, 0, "system"),
        (2, 1, "user"),
        (3, 1, "assistant"),
    ]
