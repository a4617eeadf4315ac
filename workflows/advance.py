"""The machine: an event, the job and the time in; a transition out.

An action without a listed transition is denied, and ends the job unless the state routes that failure. ``advance``
returns a whole transition or raises, and then nothing has happened.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, TypeAlias, assert_never

from stepladder.schemas.answer import Verdict
from stepladder.schemas.event import EventKind
from stepladder.schemas.job import Failure, JobStatus
from stepladder.schemas.outcomes import Cause, Outcome
from stepladder.validation.expressions import EvaluationFailure
from stepladder.workflows import child_calls, lists, retry, tool_calls, turns, waits
from stepladder.workflows.builder import IllegalEventError, TransitionBuilder
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
from stepladder.workflows.job import JobFailure, Turn
from stepladder.workflows.machine import EXHAUSTED, AskState, ChildState, EndState, ToolState, WaitState, evaluate
from stepladder.workflows.names import names_of
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
)
from stepladder.workflows.visits import ChildCall, SignalWait, ToolCall

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from stepladder.schemas.jsontypes import Json
    from stepladder.workflows.events import Event
    from stepladder.workflows.job import Job
    from stepladder.workflows.machine import Machine, State
    from stepladder.workflows.transition import Command, Transition

Target: TypeAlias = str | JobFailure
"""The state that a job enters next, or the failure that it meets."""

ENTERED = (Ask, RunTool, Await, AwaitSettlement, Resolve, Hold, Finished)
"""What may follow once a job has entered its next state."""

SETTLED = (AwaitSettlement, Finished)

LEGAL: Mapping[str, Mapping[type[Event], tuple[type[Command], ...]]] = {
    "not started": {Claimed: ENTERED, Cancelled: (Finished,)},
    "between visits": {Claimed: ENTERED, Cancelled: (Finished,)},
    "turn running": {Claimed: (Ask,), Judged: (Rest, *ENTERED), Cancelled: (Finished,)},
    "turn backing off": {Claimed: (Rest, *ENTERED), Cancelled: (Finished,)},
    "tool running": {
        Claimed: ENTERED,
        ToolReturned: ENTERED,
        ToolFailed: (Rest, *ENTERED),
        Cancelled: (Finished,),
    },
    "tool backing off": {Claimed: (Rest, *ENTERED), Cancelled: (Finished,)},
    "irreversible tool running": {
        Claimed: (AwaitSettlement,),
        ToolReturned: ENTERED,
        ToolFailed: ENTERED,
        ToolUnknown: (AwaitSettlement,),
        Cancelled: SETTLED,
    },
    "irreversible tool settlement": {Claimed: (AwaitSettlement,), Settled: ENTERED, Cancelled: SETTLED},
    "wait waiting": {Claimed: ENTERED, Signalled: ENTERED, Cancelled: (Finished,)},
    "call resolving": {
        Claimed: (Resolve,),
        Resolved: (TendChildren, *ENTERED),
        Unresolved: ENTERED,
        Cancelled: (Finished,),
    },
    "call running": {
        Claimed: (TendChildren,),
        ChildrenSeen: (TendChildren, AwaitChildren, *ENTERED),
        Cancelled: (Finished,),
    },
    "ended": {},
}
"""For each position of a job: the legal events, and the commands that may follow each. Any other event raises.

A job is between visits, or at its open visit, whose kind and status are named here. It enters states that need nothing
from outside (lists, empty calls, calls that another job of the lineage made) within one transition.
"""


def place_of(job: Job) -> str:
    """A job's position, as a key of ``LEGAL``."""
    visit = job.open
    if job.status.final:
        return "ended"
    if visit is None:
        return "not started" if job.state is None else "between visits"
    irreversible = "irreversible " if isinstance(visit, ToolCall) and visit.irreversible else ""
    return f"{irreversible}{visit.kind} {visit.status.replace('_', ' ')}"


def require_legal(job: Job, event: Event) -> None:
    """Raises ``IllegalEventError`` for an event that is not legal at the job's position."""
    if type(event) not in LEGAL[place_of(job)]:
        raise IllegalEventError(job, event)


def advance(
    machine: Machine,
    job: Job,
    event: Event,
    now: datetime,
    *,
    max_model_len: int | None = None,
    lengths: Mapping[str, int] | None = None,
    hold: bool = False,
) -> Transition:
    """Moves ``job`` on by ``event``.

    ``max_model_len`` is the limit in tokens of the model that is asked unless a state names another, where it is
    known, and ``lengths`` are those of models by name. ``hold`` says that the job is paused: the event is
    recorded, and no state that asks or runs anything is started.
    Raises ``IllegalEventError`` for an event that the job's state does not take.
    """
    require_legal(job, event)
    builder = TransitionBuilder(machine, job, now, max_model_len, lengths, hold=hold)
    return builder.transition(_take(builder, event))


def cancel(job: Job, now: datetime, said: Settled | None = None) -> Transition:
    """``advance`` by ``Cancelled``, for which no machine is needed: a job ends without its tools."""
    require_legal(job, Cancelled(said))
    builder = TransitionBuilder(None, job, now)
    return builder.transition(_cancel(builder, said))


def _take(builder: TransitionBuilder, event: Event) -> Command:
    match event, builder.job.open:
        case Cancelled(said), _:
            return _cancel(builder, said)
        case Claimed(), None:
            return _start(builder) if builder.job.state is None else _resume(builder, builder.job.state)
        case Claimed(), Turn() as turn:
            return _resume_turn(builder, turn)
        case Judged(verdict), Turn() as turn:
            turn = turns.judge(builder, turn, verdict)
            return _arrive(builder, _accept(builder, turn)) if verdict.ok else _decide(builder, turn)
        case Claimed(lost), ToolCall() as call:
            return _arrive(builder, tool_calls.claimed(builder, call, lost=lost))
        case ToolReturned(result), ToolCall() as call:
            return _arrive(builder, tool_calls.returned(builder, call, result))
        case ToolFailed(error), ToolCall() as call:
            return _arrive(builder, tool_calls.came_back(builder, call, error))
        case ToolUnknown(error), ToolCall() as call:
            return AwaitSettlement(tool_calls.await_settlement(builder, call, error))
        case Settled() as said, ToolCall() as call:
            return _arrive(builder, tool_calls.settled(builder, call, said))
        case Claimed(), SignalWait() as wait:
            return _arrive(builder, waits.fall_due(builder, wait) or Await(wait))
        case Signalled(signal), SignalWait() as wait:
            return _arrive(builder, waits.signalled(builder, wait, signal) or Await(wait))
        case Claimed(), ChildCall() as call:
            return child_calls.claimed(builder, call)
        case Resolved(version, refused), ChildCall() as call:
            return _arrive(builder, child_calls.resolved(builder, call, version, refused))
        case Unresolved(error), ChildCall() as call:
            return _arrive(builder, child_calls.unresolved(builder, call, error))
        case ChildrenSeen(seen), ChildCall() as call:
            return _arrive(builder, child_calls.seen(builder, call, seen))
        case _:
            raise IllegalEventError(builder.job, event)


def _start(builder: TransitionBuilder) -> Command:
    builder.change(status=JobStatus.RUNNING)
    builder.note(EventKind.JOB_STARTED)
    return _arrive(builder, turns.say_system(builder) or builder.machine.start)


def _resume(builder: TransitionBuilder, name: str) -> Command:
    """Goes through the door at which the job was paused, or at which a replay begins."""
    if builder.job.status is JobStatus.QUEUED:
        builder.change(status=JobStatus.RUNNING)
        builder.note(EventKind.JOB_STARTED, {"state": name})
    state = builder.machine.states[name]
    if isinstance(state, AskState) and lists.is_under_way(builder.job, state):
        return _arrive(builder, _further(builder, state))
    return _arrive(builder, name)


def _cancel(builder: TransitionBuilder, said: Settled | None) -> Finished | AwaitSettlement:
    """Closes what is open. An attempt in flight is recorded as aborted, and an open call has no result.

    Even a cancelled job needs a settlement, ``said``, of an effect that may have taken place.
    """
    visit = builder.job.open
    if isinstance(visit, ToolCall) and visit.irreversible:
        if said is None:
            return AwaitSettlement(tool_calls.await_settlement(builder, visit))
        visit = tool_calls.settle(builder, visit, said)
    elif isinstance(visit, ToolCall):
        visit = replace(visit, error=tool_calls.CANCELLED)
    elif isinstance(visit, ChildCall):
        visit = replace(visit, error=child_calls.CANCELLED)
    if isinstance(visit, Turn) and visit.attempts[-1].verdict is None:
        visit = turns.judge(builder, visit, Verdict(Outcome.TRANSPORT, Cause.ABORTED.value))
    if visit is not None:
        builder.put(visit.close(builder.now))
    builder.note(EventKind.JOB_CANCELLED)
    return builder.finish(JobStatus.CANCELLED)


def _resume_turn(builder: TransitionBuilder, turn: Turn) -> Command:
    """A turn whose last request is out asks for its verdict again; one that rested is asked again once it is due."""
    last = turn.attempts[-1]
    if last.verdict is None:
        return Ask(turn, last)
    if builder.job.due_at is not None and builder.now < builder.job.due_at:
        return Rest(builder.job.due_at)
    return _decide(builder, turn, rested=True)


def _decide(builder: TransitionBuilder, turn: Turn, *, rested: bool = False) -> Command:
    limits = builder.limits(builder.machine.ask(turn.state))
    key = f"{builder.job.id}/{turn.ordinal}"
    match retry.decide(turn.attempts, limits, builder.job.tokens, builder.now, key, rested=rested):
        case retry.Again() as again if again.after_s > 0:
            until = builder.now + timedelta(seconds=again.after_s)
            builder.change(due_at=until)
            data: dict[str, Json] = {"after_s": round(again.after_s, 3), "outcome": str(turn.outcome)}
            builder.note(EventKind.RETRY_SCHEDULED, data, turn=turn.ordinal)
            return Rest(until)
        case retry.Again() if builder.hold:
            return _hold(builder)
        case retry.Again() as again:
            return Ask(*turns.open_attempt(builder, turn, again))
        case JobFailure(kind, detail):
            failure = JobFailure(kind, f"state {turn.state}: {detail}")
            turns.give_up(builder, turn, failure)
            return _arrive(builder, failure)
        case other:
            assert_never(other)


def _arrive(builder: TransitionBuilder, target: Command | Target) -> Command:
    """Passes through states that need nothing from outside, until there is a command to run."""
    for _ in range(2 * len(builder.machine.states) + 2):
        if not isinstance(target, str | JobFailure):
            return target
        if isinstance(target, JobFailure):
            route = builder.route(target)
            if route is None:
                return builder.fail(target)
            target = route
        builder.change(state=target)
        target = _enter(builder, builder.machine.states[target])
    return builder.fail(
        JobFailure(Failure.LOOP, f"the edges around state {builder.job.state} lead in a circle past every action")
    )


def _accept(builder: TransitionBuilder, turn: Turn) -> Command | Target:
    target = turns.accept(builder, turn)
    if target is not None:
        return target
    return _hold(builder) if builder.hold else _enter_turn(builder, builder.machine.ask(turn.state))


def _hold(builder: TransitionBuilder) -> Hold:
    builder.change(due_at=builder.now)
    return Hold()


def _enter(builder: TransitionBuilder, state: State) -> Command | Target:
    match state:
        case AskState() | ToolState() | ChildState() if builder.hold:
            return _hold(builder)
        case AskState() | ToolState() | ChildState() if builder.is_exhausted(state) and state.exhausted is not None:
            return builder.follow(EXHAUSTED, state.exhausted)
        case AskState(each=None):
            return _enter_turn(builder, state)
        case AskState():
            return _begin_list(builder, state)
        case ChildState():
            return child_calls.open_call(builder, state)
        case ToolState():
            opened = tool_calls.open_call(builder, state)
            return RunTool(opened) if isinstance(opened, ToolCall) else opened
        case WaitState():
            wait = waits.open_wait(builder, state)
            return wait if isinstance(wait, JobFailure) else Await(wait)
        case EndState():
            return _end(builder, state)
        case _:
            assert_never(state)


def _begin_list(builder: TransitionBuilder, state: AskState) -> Command | Target:
    failure = None if state.each is None else lists.begin(builder, state, state.each)
    return failure or _further(builder, state)


def _further(builder: TransitionBuilder, state: AskState) -> Command | Target:
    return lists.next_state(builder, state) or _enter_turn(builder, state)


def _enter_turn(builder: TransitionBuilder, state: AskState) -> Command | JobFailure:
    most = builder.machine.max_turns
    if builder.job.turns_taken >= most:
        return JobFailure(
            Failure.MAX_TURNS, f"state {state.name} would be turn {most + 1}, and limits.max_turns is {most}"
        )
    match retry.first(state.max_completion_tokens, builder.limits(state), builder.job.tokens, builder.now):
        case retry.Again() as again:
            turn = turns.open_turn(builder, state)
            return turn if isinstance(turn, JobFailure) else Ask(*turns.open_attempt(builder, turn, again))
        case JobFailure(kind, detail):
            return JobFailure(kind, f"state {state.name}: {detail}")
        case other:
            assert_never(other)


def _end(builder: TransitionBuilder, state: EndState) -> Finished:
    result = None if state.result is None else evaluate(state.result, names_of(builder.job))
    if isinstance(result, EvaluationFailure):
        return builder.fail(JobFailure(Failure.EXPRESSION_ERROR, f"the result of state {state.name}: {result.reason}"))
    if state.succeeded:
        builder.note(EventKind.JOB_SUCCEEDED, {"state": state.name})
        return builder.finish(JobStatus.SUCCEEDED, result=result)
    builder.change(result=result)
    led = "" if builder.edge is None else f", to which state {builder.edge[0]} led by `{builder.edge[1]}`"
    return builder.fail(JobFailure(Failure.REJECTED, f"the machine ended in state {state.name}, a failure{led}"))
