"""The machine's one move: what happened and what time it is, in; what must be written and what to do next, out.

Nothing is decided by silence: an action that no edge lists is denied, and ends the job unless the state routes that
failure. A move gives a whole step or raises, and then nothing has happened.
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
from stepladder.workflows import calls, children, lists, retry, runs, turns, waits
from stepladder.workflows.job import ChildCall, ToolCall, Turn, Wait
from stepladder.workflows.machine import EXHAUSTED, AskState, ChildState, EndState, ToolState, WaitState, evaluate
from stepladder.workflows.move import Fault, IllegalMoveError, Move
from stepladder.workflows.names import names_of
from stepladder.workflows.step import (
    Ask,
    Await,
    AwaitSettlement,
    Cancelled,
    ChildrenSeen,
    Claimed,
    Finished,
    Hold,
    Judged,
    Resolved,
    Rest,
    RunTool,
    Settled,
    Signalled,
    ToolFailed,
    ToolReturned,
    ToolUnknown,
    Unresolved,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from stepladder.schemas.jsontypes import Json
    from stepladder.workflows.job import Job
    from stepladder.workflows.machine import Machine, State
    from stepladder.workflows.step import Action, Step, Trigger

Way: TypeAlias = str | Fault
"""Where a job goes: into the state of that name, or into a failure."""


def advance(
    machine: Machine,
    job: Job,
    trigger: Trigger,
    now: datetime,
    *,
    max_model_len: int | None = None,
    lengths: Mapping[str, int] | None = None,
    hold: bool = False,
) -> Step:
    """Moves ``job`` on by ``trigger``.

    ``max_model_len`` is the limit in tokens of the model that is asked unless a state names another, where it is
    known, and ``lengths`` are those of models by name. ``hold`` says that somebody paused the job: what the trigger
    brings is taken in, and no state that asks or runs anything is begun.
    Raises ``IllegalMoveError`` for a trigger that the job's state does not take.
    """
    if job.status.final:
        raise IllegalMoveError(job, trigger)
    move = Move(machine, job, now, max_model_len, lengths, hold=hold)
    return move.step(_take(move, trigger))


def cancel(job: Job, now: datetime, said: Settled | None = None) -> Step:
    """``advance`` by ``Cancelled``, for which no machine is needed: nobody has to know a job's tools to end it."""
    if job.status.final:
        raise IllegalMoveError(job, Cancelled(said))
    move = Move(None, job, now)
    return move.step(_cancel(move, said))


def _take(move: Move, trigger: Trigger) -> Action:
    match trigger, move.job.open:
        case Cancelled(said), _:
            return _cancel(move, said)
        case Claimed(), None if move.job.state is None:
            return _start(move)
        case Claimed(), None if move.job.state is not None:
            return _go_on(move, move.job.state)
        case Claimed(), Turn() as turn:
            return _resume_turn(move, turn)
        case Claimed(lost), ToolCall() as call:
            return _arrive(move, runs.taken_up(move, call, lost=lost))
        case Claimed(), Wait() as wait:
            return _arrive(move, waits.fall_due(move, wait) or Await(wait))
        case Signalled(signal), Wait() as wait:
            return _arrive(move, waits.signalled(move, wait, signal) or Await(wait))
        case Judged(verdict), Turn() as turn if turn.attempts[-1].verdict is None:
            turn = turns.judge(move, turn, verdict)
            return _arrive(move, _accept(move, turn)) if verdict.ok else _decide(move, turn)
        case ToolReturned(result), ToolCall() as call if call.error is None:
            return _arrive(move, calls.returned(move, call, result))
        case ToolFailed(error), ToolCall() as call if call.error is None:
            return _arrive(move, runs.came_back(move, call, error))
        case ToolUnknown(error), ToolCall() as call if call.error is None and calls.is_unknowable(call):
            return AwaitSettlement(calls.await_settlement(move, call, error))
        case Settled() as said, ToolCall() as call if move.job.waiting_for is not None:
            return _arrive(move, calls.settled(move, call, said))
        case Claimed(), ChildCall() as call:
            return children.taken_up(move, call)
        case Resolved(version, refused), ChildCall() as call if call.version is None:
            return _arrive(move, children.resolved(move, call, version, refused))
        case Unresolved(error), ChildCall() as call if call.version is None:
            return _arrive(move, children.unresolved(move, call, error))
        case ChildrenSeen(seen), ChildCall() as call if call.version is not None:
            return _arrive(move, children.seen(move, call, seen))
        case _:
            raise IllegalMoveError(move.job, trigger)


def _start(move: Move) -> Action:
    move.change(status=JobStatus.RUNNING)
    move.note(EventKind.JOB_STARTED)
    return _arrive(move, turns.say_system(move) or move.machine.start)


def _go_on(move: Move, name: str) -> Action:
    """Goes through the door at which the job was paused, or at which a replay begins."""
    if move.job.status is JobStatus.QUEUED:
        move.change(status=JobStatus.RUNNING)
        move.note(EventKind.JOB_STARTED, {"state": name})
    state = move.machine.states[name]
    if isinstance(state, AskState) and lists.is_under_way(move.job, state):
        return _arrive(move, _further(move, state))
    return _arrive(move, name)


def _cancel(move: Move, said: Settled | None) -> Finished | AwaitSettlement:
    """Closes what is open. An attempt whose request is under way is an aborted one, and an open call has no result.

    Not even a request to cancel makes a job forget an effect that may have taken place: ``said`` has to come first.
    """
    visit = move.job.open
    if isinstance(visit, ToolCall) and calls.is_unknowable(visit):
        if said is None:
            return AwaitSettlement(calls.await_settlement(move, visit))
        visit = calls.settle(move, visit, said)
    elif isinstance(visit, ToolCall):
        visit = replace(visit, error=calls.CANCELLED)
    elif isinstance(visit, ChildCall):
        visit = replace(visit, error=children.CANCELLED)
    if isinstance(visit, Turn) and visit.attempts[-1].verdict is None:
        visit = turns.judge(move, visit, Verdict(Outcome.TRANSPORT, Cause.ABORTED.value))
    if visit is not None:
        move.put(replace(visit, closed_at=move.now))
    move.note(EventKind.JOB_CANCELLED)
    return move.finish(JobStatus.CANCELLED)


def _resume_turn(move: Move, turn: Turn) -> Action:
    """A turn whose last request is out asks for its verdict again; one that rested is asked again once it is due."""
    last = turn.attempts[-1]
    if last.verdict is None:
        return Ask(turn, last)
    if move.job.due_at is not None and move.now < move.job.due_at:
        return Rest(move.job.due_at)
    return _decide(move, turn, rested=True)


def _decide(move: Move, turn: Turn, *, rested: bool = False) -> Action:
    limits = move.limits(move.machine.ask(turn.state))
    key = f"{move.job.id}/{turn.ordinal}"
    match retry.decide(turn.attempts, limits, move.job.tokens, move.now, key, rested=rested):
        case retry.Again() as again if again.after_s > 0:
            until = move.now + timedelta(seconds=again.after_s)
            move.change(due_at=until)
            data: dict[str, Json] = {"after_s": round(again.after_s, 3), "outcome": str(turn.outcome)}
            move.note(EventKind.RETRY_SCHEDULED, data, turn=turn.ordinal)
            return Rest(until)
        case retry.Again() if move.hold:
            return _hold(move)
        case retry.Again() as again:
            return Ask(*turns.open_attempt(move, turn, again))
        case retry.GiveUp(failure, detail):
            fault = Fault(failure, f"state {turn.state}: {detail}")
            turns.give_up(move, turn, fault)
            return _arrive(move, fault)
        case other:
            assert_never(other)


def _arrive(move: Move, way: Action | Way) -> Action:
    """Goes on through states that need nothing from outside, until there is something to do."""
    for _ in range(2 * len(move.machine.states) + 2):
        if not isinstance(way, str | Fault):
            return way
        if isinstance(way, Fault):
            routed = move.route(way)
            if routed is None:
                return move.fail(way)
            way = routed
        move.change(state=way)
        way = _enter(move, move.machine.states[way])
    return move.fail(Fault(Failure.LOOP, f"the edges around state {move.job.state} lead in a circle past every action"))


def _accept(move: Move, turn: Turn) -> Action | Way:
    way = turns.accept(move, turn)
    if way is not None:
        return way
    return _hold(move) if move.hold else _enter_turn(move, move.machine.ask(turn.state))


def _hold(move: Move) -> Hold:
    move.change(due_at=move.now)
    return Hold()


def _enter(move: Move, state: State) -> Action | Way:
    match state:
        case AskState() | ToolState() | ChildState() if move.hold:
            return _hold(move)
        case AskState() | ToolState() | ChildState() if move.is_exhausted(state) and state.exhausted is not None:
            return move.follow(EXHAUSTED, state.exhausted)
        case AskState(each=None):
            return _enter_turn(move, state)
        case AskState():
            return _begin_list(move, state)
        case ChildState():
            return children.open_call(move, state)
        case ToolState():
            opened = calls.open_call(move, state)
            return RunTool(opened) if isinstance(opened, ToolCall) else opened
        case WaitState():
            wait = waits.open_wait(move, state)
            return wait if isinstance(wait, Fault) else Await(wait)
        case EndState():
            return _end(move, state)
        case _:
            assert_never(state)


def _begin_list(move: Move, state: AskState) -> Action | Way:
    fault = None if state.each is None else lists.begin(move, state, state.each)
    return fault or _further(move, state)


def _further(move: Move, state: AskState) -> Action | Way:
    return lists.onward(move, state) or _enter_turn(move, state)


def _enter_turn(move: Move, state: AskState) -> Action | Fault:
    most = move.machine.max_turns
    if move.job.turns_taken >= most:
        return Fault(Failure.MAX_TURNS, f"state {state.name} would be turn {most + 1}, and limits.max_turns is {most}")
    match retry.first(state.max_completion_tokens, move.limits(state), move.job.tokens, move.now):
        case retry.Again() as again:
            turn = turns.open_turn(move, state)
            return turn if isinstance(turn, Fault) else Ask(*turns.open_attempt(move, turn, again))
        case retry.GiveUp(failure, detail):
            return Fault(failure, f"state {state.name}: {detail}")
        case other:
            assert_never(other)


def _end(move: Move, state: EndState) -> Finished:
    result = None if state.result is None else evaluate(state.result, names_of(move.job))
    if isinstance(result, EvaluationFailure):
        return move.fail(Fault(Failure.EXPRESSION_ERROR, f"the result of state {state.name}: {result.reason}"))
    if state.succeeded:
        move.note(EventKind.JOB_SUCCEEDED, {"state": state.name})
        return move.finish(JobStatus.SUCCEEDED, result=result)
    move.change(result=result)
    led = "" if move.edge is None else f", to which state {move.edge[0]} led by `{move.edge[1]}`"
    return move.fail(Fault(Failure.REJECTED, f"the machine ended in state {state.name}, a failure{led}"))
