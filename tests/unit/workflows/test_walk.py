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
from stepladder.schemas.job import CHILDREN, SETTLEMENT, Failure, JobStatus
from stepladder.schemas.outcomes import CAUSES, Cause, Outcome
from stepladder.schemas.tool import Effect
from stepladder.workflows.advance import LEGAL, advance, place_of
from stepladder.workflows.builder import IllegalEventError
from stepladder.workflows.events import (
    Cancelled,
    ChildrenSeen,
    Claimed,
    Judged,
    Resolved,
    Settled,
    Signalled,
    ToolFailed,
    ToolReturned,
    ToolUnknown,
    Unresolved,
)
from stepladder.workflows.job import Child, Job, Signal, Turn
from stepladder.workflows.lists import building
from stepladder.workflows.machine import EXHAUSTED, AskState, ChildState, Machine, ToolState, targets
from stepladder.workflows.names import names_of
from stepladder.workflows.tool_calls import MOST_LOST
from stepladder.workflows.transition import (
    Ask,
    Await,
    AwaitChildren,
    AwaitSettlement,
    Finished,
    Hold,
    Resolve,
    Rest,
    RunTool,
    TendChildren,
    Transition,
)
from stepladder.workflows.visits import ChildCall, ChildFailure, ListRun, SignalWait, ToolCall, ToolError
from support.machines import NOW, Play, accepted, play, rejected

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepladder.workflows.events import Event
    from stepladder.workflows.job import Attempt

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
    some = st.sampled_from(["ask", "ask", "ask", "always", "list", "until", "look", "save", "wait", "call", "fan"])
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
        case "list" | "until":
            plan: dict[str, Any] = {"until": "stop"}
            if kind == "list":
                plan = draw(st.sampled_from([{"over": "[1, 2, 3]"}, {"over": "[]"}, {"over": "1"}, {"count": "2.0"}]))
            failures = draw(st.dictionaries(st.sampled_from(FAILURES), anywhere, max_size=3))
            turn = {"ask": "{{ each.index }} {{ each.elements }}", "output": action, "on_failure": failures}
            edges = {"always": onward} if kind == "list" else {"stop": onward, "exhausted": draw(anywhere)}
            unique = draw(st.sampled_from([[], ["/n"]]))
            return turn | bound | {"next": edges | exhausted, "each": plan | {"at_most": 3, "unique": unique}}
        case "call" | "fan":
            each = {"over": "[1, 2, 3]", "at_most": 3, "concurrency": draw(st.sampled_from([1, 2, 9]))}
            each |= draw(st.sampled_from([{}, {"failures": "collect"}]))
            spread = {} if kind == "call" else {"each": each, "input": "each.item"}
            edges = {"ok": onward, "error": draw(anywhere)}
            return {"call": "other"} | spread | bound | {"next": edges | exhausted}
        case _:
            arguments = draw(st.sampled_from([{}, {"arguments": {"n": "visits.size()"}}]))
            error = draw(st.sampled_from([{}, {"error": "bad"}]))
            edges = {"ok": onward} | error | ({} if kind == "pay" else exhausted)
            policy = bound | draw(st.sampled_from([{}, {"retry": {"attempts": 2}}, {"retry": {"attempts": 3}}]))
            return {"tool": kind, "next": edges} | arguments | ({} if kind == "pay" else policy)


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
    named = {"wait_id": str(wait.wait_id)} if isinstance(wait, SignalWait) else {}
    payloads = st.sampled_from(
        [{"action": word} | names for word in (*WORDS, "timeout", "go") for names in (named, named, {})]
    )
    ids = st.integers(1, 10**6).map(lambda number: UUID(int=number))
    return st.builds(Signal, ids, st.sampled_from(["s"] * 5 + ["other"]), payloads | st.none(), st.just(job.created_at))


def children(call: ChildCall) -> st.SearchStrategy[tuple[Child, ...]]:
    """How the children of a call may stand: any of them started, and each anywhere on its way."""
    ends = [JobStatus.SUCCEEDED, JobStatus.SUCCEEDED, JobStatus.CANCELLED, JobStatus.RUNNING, JobStatus.QUEUED]

    def one(index: int) -> st.SearchStrategy[Child]:
        failed = st.just((JobStatus.FAILED, Failure.DEADLINE))
        ended = st.sampled_from(ends).map(lambda status: (status, None)) | failed
        return st.builds(
            lambda end, asked: Child(UUID(int=index), index, end[0], index, end[1], None, cancel_requested=asked),
            ended,
            st.booleans(),
        )

    started = st.lists(st.sampled_from(range(1, len(call.inputs) + 1)), unique=True) if call.inputs else st.just([])
    return started.flatmap(lambda indices: st.tuples(*map(one, sorted(indices))))


def events(job: Job) -> st.SearchStrategy[Event]:
    call = job.open if isinstance(job.open, ChildCall) else ChildCall(1, "s0", NOW, "other", (1, 2))
    refused = st.sampled_from([(), (), (), (ChildFailure(1, "bad_input", "no"),)])
    looked: st.SearchStrategy[Event] = st.builds(ChildrenSeen, children(call))
    found: st.SearchStrategy[Event] = st.builds(Resolved, st.just(1), refused) | st.just(
        Unresolved(ToolError("unknown_workflow", "none"))
    )
    answers: dict[type, st.SearchStrategy[Event]] = {
        Turn: st.builds(Judged, VERDICTS),
        ToolCall: st.builds(ToolReturned, RESULTS)
        | st.builds(ToolFailed, st.just(ToolError("E", "broken")))
        | st.builds(ToolUnknown, st.just(ToolError("timeout", "no answer"))),
        SignalWait: st.builds(Signalled, signals(job)),
        ChildCall: found if call.version is None else looked,
    }
    settled = st.builds(Settled, st.booleans(), RESULTS)
    claimed = st.builds(Claimed, st.booleans())
    everything = st.one_of(*answers.values(), settled, claimed)
    fitting = answers.get(type(job.open), st.just(Claimed()))
    cancelled = st.builds(Cancelled, st.none() | settled)
    return st.one_of(fitting, fitting, fitting, claimed, everything, cancelled if job.tokens > 90 else fitting)


# Invariants -----------------------------------------------------------------------------------------------------------


def visits_are_in_order(_: Machine, __: Job, step: Transition) -> None:
    visits = step.job.visits
    assert [visit.visit for visit in visits] == list(range(1, len(visits) + 1))
    assert all(visit.closed_at is not None for visit in visits[:-1]), "only the last visit may be open"
    turns = [visit for visit in visits if isinstance(visit, Turn)]
    assert [turn.ordinal for turn in turns] == list(range(1, len(turns) + 1))
    for turn in turns:
        assert [attempt.ordinal for attempt in turn.attempts] == list(range(1, len(turn.attempts) + 1))
        assert all(attempt.turn == turn.ordinal for attempt in turn.attempts)
        assert all(attempt.verdict is not None for attempt in turn.attempts[:-1])


def history_only_grows(_: Machine, before: Job, step: Transition) -> None:
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


def what_changed_is_what_is_written(_: Machine, before: Job, step: Transition) -> None:
    assert list(step.visits) == [visit for visit in step.job.visits if visit not in before.visits]
    old, new = attempts_of(before), attempts_of(step.job)
    opened = [attempt for key, attempt in new.items() if key not in old]
    judged = [attempt for key, attempt in new.items() if key in old and attempt != old[key]]
    assert opened == ([] if step.opened is None else [step.opened])
    assert judged == list(step.judged)
    assert sum(a.verdict.completion.usage.total for a in judged if a.verdict and a.verdict.completion.usage) == (
        step.job.tokens - before.tokens
    )


def the_action_fits_the_job(_: Machine, __: Job, step: Transition) -> None:
    job, visit = step.job, step.job.open
    match step.next:
        case Ask(turn, attempt):
            assert visit == turn
            assert turn.attempts[-1] == attempt
            assert attempt.verdict is None
            assert step.opened in (None, attempt)
            expected = JobStatus.RUNNING
        case Rest(until):
            assert isinstance(visit, Turn | ToolCall)
            assert (visit.error if isinstance(visit, ToolCall) else visit.attempts[-1].verdict) is not None
            assert job.due_at == until
            expected = JobStatus.RUNNING
        case RunTool(call):
            assert visit == call
            assert call.error is None
            expected = JobStatus.RUNNING
        case Await(wait):
            assert visit == wait
            assert (job.waiting_for, job.due_at) == (wait.signal, wait.until)
            expected = JobStatus.WAITING
        case AwaitSettlement(call):
            assert visit == call
            assert (job.waiting_for, job.due_at) == (SETTLEMENT, None)
            assert call.error is not None, "the settlement shows why"
            expected = JobStatus.WAITING
        case Resolve(called) | TendChildren(called) | AwaitChildren(called):
            assert visit == called
            expected = JobStatus.WAITING if isinstance(step.next, AwaitChildren) else job.status
            assert (job.status is JobStatus.WAITING) is (job.waiting_for == CHILDREN)
        case Finished():
            assert visit is None
            assert (job.waiting_for, job.due_at) == (None, None)
            assert job.status.final
            assert (job.failure is not None) is (job.status is JobStatus.FAILED)
            expected = job.status
        case Hold():
            raise AssertionError("held without a pause")
        case other:
            assert_never(other)
    assert job.status is expected
    assert expected is JobStatus.WAITING or job.waiting_for is None


def every_edge_is_the_documents(machine: Machine, before: Job, step: Transition) -> None:
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
        by = moves[0].data["action"]
        assert by in (word, *state_.on_failure) or state_.always is not None or (state_.each and by == EXHAUSTED)


def bounds_hold(machine: Machine, _: Job, step: Transition) -> None:
    job = step.job
    assert job.turn_count <= machine.max_turns
    for name, state_ in machine.states.items():
        if isinstance(state_, AskState | ToolState | ChildState) and state_.max_visits is not None:
            kind = ListRun if isinstance(state_, AskState) and state_.each else Turn | ToolCall | ChildCall
            assert sum(visit.state == name and isinstance(visit, kind) for visit in job.visits) <= state_.max_visits
    for visit in job.visits:
        if isinstance(visit, Turn):
            verdicts = [attempt.verdict for attempt in visit.attempts if attempt.verdict is not None]
            answers = [verdict for verdict in verdicts if verdict.outcome is not Outcome.TRANSPORT]
            assert len(answers) <= machine.ask(visit.state).attempts
    if step.opened is not None and job.token_budget is not None:
        assert job.tokens + step.opened.max_completion_tokens <= job.token_budget


def tool_runs_are_recorded_bounded_and_confirmed(machine: Machine, before: Job, step: Transition) -> None:
    for previous, visit in zip((None, *step.job.visits), step.job.visits, strict=False):
        if isinstance(visit, ToolCall) and visit.effect is Effect.IRREVERSIBLE:
            assert isinstance(previous, SignalWait)
            assert previous.signal_id is not None
            assert previous.frozen[visit.state] == {"tool": visit.tool, "arguments": visit.arguments}
    if isinstance(step.next, RunTool) and step.next.call.effect is Effect.IRREVERSIBLE:
        assert len(step.job.visits) > len(before.visits), "it is begun in the step that opened it, and in no other"
    if isinstance(step.next, RunTool):
        assert step.next.call in step.visits, "every run is written before it is begun"
        assert any(event.kind is EventKind.TOOL_STARTED for event in step.events)
    for visit in step.job.visits:
        if isinstance(visit, ToolCall):
            assert visit.runs == 1 or visit.effect is not Effect.IRREVERSIBLE
            state_ = machine.states[visit.state]
            assert isinstance(state_, ToolState)
            assert visit.failed <= state_.attempts
            assert visit.lost <= MOST_LOST
            assert visit.failed + visit.lost <= visit.runs
    keys = [visit.key for visit in step.job.visits if isinstance(visit, ToolCall)]
    assert len(keys) == len(set(keys))


def lists_are_built_in_order_and_within_their_bound(machine: Machine, _: Job, step: Transition) -> None:
    names = names_of(step.job)
    for name, state_ in machine.states.items():
        if isinstance(state_, AskState) and state_.each is not None:
            for turn in (visit for visit in step.job.visits if isinstance(visit, Turn) and visit.state == name):
                before = step.job.visits[turn.visit - 2]
                assert isinstance(before, ListRun) or (isinstance(before, Turn) and before.accepted)
                assert before.state == name
            if (found := building(step.job, name)) is not None:
                assert len(found.elements) <= min(state_.each.at_most, found.run.count or state_.each.at_most)
                assert names["lists"][name] == list(found.elements)  # type: ignore[call-overload, index]  # plain dicts


def children_are_started_once_and_no_more_than_may_run(machine: Machine, _: Job, step: Transition) -> None:
    if isinstance(step.next, TendChildren):
        state_ = machine.states[step.next.call.state]
        assert isinstance(state_, ChildState)
        assert len(step.next.start) <= state_.concurrency
        assert step.next.call.version is not None, "the version is written before the first child starts"
        refused = {failure.index for failure in step.next.call.failed}
        assert not refused & set(step.next.start)
        assert not (step.next.stop and (step.next.start or state_.collect))


INVARIANTS: list[Callable[[Machine, Job, Transition], None]] = [
    visits_are_in_order,
    history_only_grows,
    what_changed_is_what_is_written,
    the_action_fits_the_job,
    every_edge_is_the_documents,
    bounds_hold,
    tool_runs_are_recorded_bounded_and_confirmed,
    lists_are_built_in_order_and_within_their_bound,
    children_are_started_once_and_no_more_than_may_run,
]

EVERY_KIND: list[Event] = [
    Claimed(),
    Cancelled(),
    Judged(rejected(Outcome.TRANSPORT, Cause.CONNECT)),
    ToolReturned(None),
    ToolFailed(ToolError("E", "broken")),
    ToolUnknown(ToolError("E", "broken")),
    Signalled(Signal(UUID(int=1), "s", {"action": "go"}, NOW)),
    Settled(True),
    Resolved(1),
    Unresolved(ToolError("E", "broken")),
    ChildrenSeen(()),
]


@pytest.mark.long
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(documents(), st.data())
def test_the_invariants_hold_after_every_transition(text: str, data: st.DataObject) -> None:
    it: Play = play(text)
    event: Event = Claimed()
    for _ in range(30):
        before = it.job
        it.now += timedelta(seconds=data.draw(st.sampled_from([0, 0, 1, 60])))
        try:
            step = it.send(event)
        except IllegalEventError:
            assert it.job is before, "an illegal event changes nothing"
        else:
            assert type(step.next) in LEGAL[place_of(before)][type(event)]
            assert advance(it.machine, before, event, it.now) == step, "the same again gives the same"
            for invariant in INVARIANTS:
                invariant(it.machine, before, step)
        if it.job.status.final:
            break
        event = data.draw(events(it.job))
    if it.job.status.final:
        for late in EVERY_KIND:
            with pytest.raises(IllegalEventError):
                it.send(late)
