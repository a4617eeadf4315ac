"""Random jobs through random machines: whatever happens, and in whatever order, these things hold after every step."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any, assert_never
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stepladder.schemas.event import EventKind
from stepladder.schemas.job import SETTLEMENT, JobStatus
from stepladder.schemas.outcomes import CAUSES, Cause, Outcome
from stepladder.schemas.tool import Effect
from stepladder.workflows.advance import advance
from stepladder.workflows.job import Job, Signal, ToolCall, ToolError, Turn, Wait
from stepladder.workflows.machine import AskState, Machine, ToolState, targets
from stepladder.workflows.move import IllegalMoveError
from stepladder.workflows.step import (
    Ask,
    Await,
    AwaitSettlement,
    Cancelled,
    Claimed,
    Finished,
    Judged,
    Rest,
    RunTool,
    Settled,
    Signalled,
    Step,
    ToolFailed,
    ToolReturned,
)
from support.machines import NOW, Play, accepted, play, rejected

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepladder.workflows.job import Attempt
    from stepladder.workflows.step import Trigger

# Machines -------------------------------------------------------------------------------------------------------------

WORDS = ["go", "back", "stop"]
FAILURES = [
    "attempts_exhausted",
    "token_budget",
    "max_turns",
    "loop",
    "transition_denied",
    "deadline",
    "expression_error",
]


@st.composite
def documents(draw: st.DrawFn) -> str:
    """A machine of two to nine states that holds by construction: each leads to the next one and to an end."""
    some = st.sampled_from(["ask", "ask", "ask", "always", "look", "save", "wait"])
    kinds = draw(st.lists(some, min_size=1, max_size=4))
    if draw(st.booleans()):  # what cannot be undone has a wait before it
        kinds += ["wait", "pay", draw(some)]
    names = [f"s{n}" for n in range(len(kinds))]
    free = [name for name, kind in zip(names, kinds, strict=True) if kind != "pay"]
    states: dict[str, Any] = {"done": {"end": "succeeded"}}
    for number, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        onward = names[number + 1] if number + 1 < len(names) else "done"
        anywhere = st.sampled_from([*free, "done", "bad"])
        states[name] = draw(state(kind, onward, anywhere))
    if '"bad"' in json.dumps(states):
        states["bad"] = {"end": "failed", "result": "visits"}
    loop = draw(st.sampled_from(["off", {"repeats": 2, "stale": 3}, {"repeats": 3}]))
    limits = {"max_turns": draw(st.sampled_from([*[20] * 8, 3, 1, 0])), "loop": loop}
    limits |= draw(st.sampled_from([{}, {"token_budget": 300}, {"deadline_s": 500}]))
    head = {"name": "walk", "version": 1, "start": names[0], "limits": limits, "system": "Walk."}
    return json.dumps(
        head | {"retry": {"attempts": draw(st.sampled_from([*[3] * 8, 2, 1, 0]))}, "states": states}, indent=1
    )


@st.composite
def state(draw: st.DrawFn, kind: str, onward: str, anywhere: st.SearchStrategy[str]) -> dict[str, Any]:
    visits = draw(st.sampled_from([None, 2, 1]))
    bound: dict[str, Any] = {} if visits is None else {"max_visits": visits}
    exhausted = {} if visits is None else {"exhausted": draw(anywhere)}
    action = {"type": "object", "properties": {"action": {"type": "string"}}, "required": ["action"]}
    match kind:
        case "ask" | "always":
            question = draw(st.sampled_from([*["Hi", "{{ visits | tojson }}"] * 4, "{{ last_tool.result }}"]))
            edges = {"go": onward, "back": draw(anywhere), "stop": "done"} if kind == "ask" else {"always": onward}
            failures = draw(st.dictionaries(st.sampled_from(FAILURES), anywhere, max_size=3))
            turn = {"ask": question, "output": action if kind == "ask" else {"type": "object"}, "on_failure": failures}
            return turn | bound | {"next": edges | exhausted, "history": draw(st.sampled_from(["all", "none", 1]))}
        case "wait":
            wait = {"signal": "s"} | draw(st.sampled_from([{}, {"schema": action}]))
            edges = {"go": onward, "stop": "done"}
            if draw(st.booleans()):
                return {"wait": wait | {"timeout_s": 60}, "next": edges | {"timeout": draw(anywhere)}}
            return {"wait": wait, "next": edges}
        case _:
            arguments = draw(st.sampled_from([{}, {"arguments": {"n": "visits.size()"}}]))
            error = draw(st.sampled_from([{}, {"error": "bad"}]))
            edges = {"ok": onward} | error | ({} if kind == "pay" else exhausted)
            return {"tool": kind, "next": edges} | arguments | ({} if kind == "pay" else bound)


# Triggers -------------------------------------------------------------------------------------------------------------

WRONG = [outcome for outcome in Outcome if outcome is not Outcome.VALID]
CAUSES_OF = {outcome: CAUSES.get(outcome, ()) or (None,) for outcome in WRONG}
SAID = ["go", "go", "back", "back", "stop", "nowhere", 1]
OUTPUTS = st.builds(lambda word, more: {"action": word, "n": more}, st.sampled_from(SAID), st.integers(0, 3))
ACCEPTED = st.builds(accepted, OUTPUTS, tokens=st.integers(0, 40))
VERDICTS = (
    ACCEPTED
    | ACCEPTED
    | st.sampled_from(WRONG).flatmap(
        lambda outcome: st.builds(
            rejected,
            st.just(outcome),
            st.sampled_from(CAUSES_OF[outcome]),
            content=st.none() | st.sampled_from([b"a", b"b", b"c"]),
            tokens=st.integers(0, 40),
            retry_after_s=st.none() | st.floats(0, 100),
        )
    )
)
RESULTS = st.sampled_from([None, 1, {"a": [1]}])


def signals(job: Job) -> st.SearchStrategy[Signal]:
    """Signals that name the open wait, another, or none."""
    wait = job.open
    named = {"wait_id": str(wait.wait_id)} if isinstance(wait, Wait) else {}
    payloads = st.sampled_from(
        [{"action": word} | names for word in (*WORDS, "timeout", "go") for names in (named, named, {})]
    )
    ids = st.integers(1, 10**6).map(lambda number: UUID(int=number))
    return st.builds(Signal, ids, st.sampled_from(["s"] * 5 + ["other"]), payloads | st.none(), st.just(job.created_at))


def triggers(job: Job) -> st.SearchStrategy[Trigger]:
    answers: dict[type, st.SearchStrategy[Trigger]] = {
        Turn: st.builds(Judged, VERDICTS),
        ToolCall: st.builds(ToolReturned, RESULTS) | st.builds(ToolFailed, st.just(ToolError("E", "broken"))),
        Wait: st.builds(Signalled, signals(job)),
    }
    everything = st.one_of(*answers.values(), st.builds(Settled, st.booleans(), RESULTS), st.just(Claimed()))
    fitting = answers.get(type(job.open), st.just(Claimed()))
    return st.one_of(
        fitting, fitting, fitting, st.just(Claimed()), everything, st.just(Cancelled()) if job.tokens > 90 else fitting
    )


# Invariants -----------------------------------------------------------------------------------------------------------


def visits_are_in_order(_: Machine, __: Job, step: Step) -> None:
    visits = step.job.visits
    assert [visit.visit for visit in visits] == list(range(1, len(visits) + 1))
    assert all(visit.closed_at is not None for visit in visits[:-1]), "only the last visit may be open"
    turns = [visit for visit in visits if isinstance(visit, Turn)]
    assert [turn.ordinal for turn in turns] == list(range(1, len(turns) + 1))
    for turn in turns:
        assert [attempt.ordinal for attempt in turn.attempts] == list(range(1, len(turn.attempts) + 1))
        assert all(attempt.turn == turn.ordinal for attempt in turn.attempts)
        assert all(attempt.verdict is not None for attempt in turn.attempts[:-1])


def history_only_grows(_: Machine, before: Job, step: Step) -> None:
    job = step.job
    assert [event.ordinal for event in step.events] == list(range(before.event_count + 1, job.event_count + 1))
    assert job.transcript == (*before.transcript, *step.messages)
    assert [line.ordinal for line in job.transcript] == list(range(1, len(job.transcript) + 1))
    assert job.tokens >= before.tokens
    assert len(job.visits) >= len(before.visits)
    assert all(old == new for old, new in zip(before.visits, job.visits, strict=False) if old.closed_at is not None)
    assert (job.id, job.lineage, job.input, job.created_at) == (
        before.id,
        before.lineage,
        before.input,
        before.created_at,
    )


def attempts_of(job: Job) -> dict[tuple[int, int], Attempt]:
    turns = [visit for visit in job.visits if isinstance(visit, Turn)]
    return {(attempt.turn, attempt.ordinal): attempt for turn in turns for attempt in turn.attempts}


def what_changed_is_what_is_written(_: Machine, before: Job, step: Step) -> None:
    assert list(step.visits) == [visit for visit in step.job.visits if visit not in before.visits]
    old, new = attempts_of(before), attempts_of(step.job)
    opened = [attempt for key, attempt in new.items() if key not in old]
    judged = [attempt for key, attempt in new.items() if key in old and attempt != old[key]]
    assert opened == ([] if step.opened is None else [step.opened])
    assert judged == list(step.judged)
    assert sum(a.verdict.completion.usage.total for a in judged if a.verdict and a.verdict.completion.usage) == (
        step.job.tokens - before.tokens
    )


def the_action_fits_the_job(_: Machine, __: Job, step: Step) -> None:
    job, visit = step.job, step.job.open
    match step.next:
        case Ask(turn, attempt):
            assert visit == turn
            assert turn.attempts[-1] == attempt
            assert attempt.verdict is None
            assert step.opened in (None, attempt)
            expected = JobStatus.RUNNING
        case Rest(until):
            assert isinstance(visit, Turn)
            assert visit.attempts[-1].verdict is not None
            assert job.due_at == until
            expected = JobStatus.RUNNING
        case RunTool(call):
            assert visit == call
            expected = JobStatus.RUNNING
        case Await(wait):
            assert visit == wait
            assert (job.waiting_for, job.due_at) == (wait.signal, wait.until)
            expected = JobStatus.WAITING
        case AwaitSettlement(call):
            assert visit == call
            assert (job.waiting_for, job.due_at) == (SETTLEMENT, None)
            expected = JobStatus.WAITING
        case Finished():
            assert visit is None
            assert (job.waiting_for, job.due_at) == (None, None)
            assert job.status.final
            assert (job.failure is not None) is (job.status is JobStatus.FAILED)
            expected = job.status
        case other:
            assert_never(other)
    assert job.status is expected
    assert expected is JobStatus.WAITING or job.waiting_for is None


def every_edge_is_the_documents(machine: Machine, before: Job, step: Step) -> None:
    at = before.state or (machine.start if step.job.state else None)
    for event in step.events:
        if event.kind is EventKind.TRANSITION:
            assert event.data["from"] == at
            assert (event.data["action"], event.data["to"]) in targets(machine.states[str(at)])
            at = str(event.data["to"])
    assert step.job.state == at
    spoken = [event for event in step.events if event.kind is EventKind.TURN_ACCEPTED]
    moves = [event for event in step.events if event.kind is EventKind.TRANSITION]
    if spoken and moves:
        state_ = machine.ask(str(spoken[0].data["state"]))
        word = spoken[0].data["action"]
        assert moves[0].data["action"] in (word, *state_.on_failure) or state_.always is not None


def bounds_hold(machine: Machine, _: Job, step: Step) -> None:
    job = step.job
    assert job.turn_count <= machine.max_turns
    for name, state_ in machine.states.items():
        if isinstance(state_, AskState | ToolState) and state_.max_visits is not None:
            assert sum(visit.state == name for visit in job.visits) <= state_.max_visits
    for visit in job.visits:
        if isinstance(visit, Turn):
            verdicts = [attempt.verdict for attempt in visit.attempts if attempt.verdict is not None]
            answers = [verdict for verdict in verdicts if verdict.outcome is not Outcome.TRANSPORT]
            assert len(answers) <= machine.ask(visit.state).attempts
    if step.opened is not None and job.token_budget is not None:
        assert job.tokens + step.opened.max_completion_tokens <= job.token_budget


def what_cannot_be_undone_is_confirmed_and_runs_once(_: Machine, before: Job, step: Step) -> None:
    for previous, visit in zip((None, *step.job.visits), step.job.visits, strict=False):
        if isinstance(visit, ToolCall) and visit.effect is Effect.IRREVERSIBLE:
            assert isinstance(previous, Wait)
            assert previous.signal_id is not None
            assert previous.frozen[visit.state] == {"tool": visit.tool, "arguments": visit.arguments}
    if isinstance(step.next, RunTool) and step.next.call.effect is Effect.IRREVERSIBLE:
        assert len(step.job.visits) > len(before.visits), "it is begun in the step that opened it, and in no other"
    keys = [visit.key for visit in step.job.visits if isinstance(visit, ToolCall)]
    assert len(keys) == len(set(keys))


INVARIANTS: list[Callable[[Machine, Job, Step], None]] = [
    visits_are_in_order,
    history_only_grows,
    what_changed_is_what_is_written,
    the_action_fits_the_job,
    every_edge_is_the_documents,
    bounds_hold,
    what_cannot_be_undone_is_confirmed_and_runs_once,
]

EVERY_KIND: list[Trigger] = [
    Claimed(),
    Cancelled(),
    Judged(rejected(Outcome.TRANSPORT, Cause.CONNECT)),
    ToolReturned(None),
    ToolFailed(ToolError("E", "broken")),
    Signalled(Signal(UUID(int=1), "s", {"action": "go"}, NOW)),
    Settled(True),
]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(documents(), st.data())
def test_whatever_happens_the_machine_holds(text: str, data: st.DataObject) -> None:
    it: Play = play(text)
    trigger: Trigger = Claimed()
    for _ in range(30):
        before = it.job
        it.now += timedelta(seconds=data.draw(st.sampled_from([0, 0, 1, 60])))
        try:
            step = it.send(trigger)
        except IllegalMoveError:
            assert it.job is before, "an illegal trigger changes nothing"
        else:
            assert advance(it.machine, before, trigger, it.now) == step, "the same again gives the same"
            for invariant in INVARIANTS:
                invariant(it.machine, before, step)
        if it.job.status.final:
            break
        trigger = data.draw(triggers(it.job))
    if it.job.status.final:
        for late in EVERY_KIND:
            with pytest.raises(IllegalMoveError):
                it.send(late)
