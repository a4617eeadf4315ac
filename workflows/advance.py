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
from stepladder.workflows import calls, retry, turns, waits
from stepladder.workflows.job import ToolCall, Turn, Wait
from stepladder.workflows.machine import EXHAUSTED, AskState, EndState, ToolState, WaitState, evaluate
from stepladder.workflows.move import Fault, IllegalMoveError, Move
from stepladder.workflows.names import names_of
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
    ToolFailed,
    ToolReturned,
)

if TYPE_CHECKING:
    from datetime import datetime

    from stepladder.schemas.jsontypes import Json
    from stepladder.workflows.job import Job
    from stepladder.workflows.machine import Machine, State
    from stepladder.workflows.step import Action, Step, Trigger

Way: TypeAlias = str | Fault
"""Where a job goes: into the state of that name, or into a failure."""


def advance(machine: Machine, job: Job, trigger: Trigger, now: datetime, *, max_model_len: int | None = None) -> Step:
    """Moves ``job`` on by ``trigger``. ``max_model_len`` is the engine's limit in tokens, where it is known.

    Raises ``IllegalMoveError`` for a trigger that the job's state does not take.
    """
    if job.status.final:
        raise IllegalMoveError(job, trigger)
    move = Move(machine, job, now, max_model_len)
    return move.step(_take(move, trigger))


def cancel(job: Job, now: datetime) -> Step:
    """``advance`` by ``Cancelled``, for which no machine is needed: nobody has to know a job's tools to end it."""
    if job.status.final:
        raise IllegalMoveError(job, Cancelled())
    move = Move(None, job, now)
    return move.step(_cancel(move))


def _take(move: Move, trigger: Trigger) -> Action:
    match trigger, move.job.open:
        case Cancelled(), _:
            return _cancel(move)
        case Claimed(), None if move.job.state is None:
            return _start(move)
        case Claimed(), Turn() as turn:
            return _resume_turn(move, turn)
        case Claimed(), ToolCall() as call:
            return _resume_call(move, call)
        case Claimed(), Wait() as wait:
            return _arrive_or_wait(move, waits.fall_due(move, wait), wait)
        case Signalled(signal), Wait() as wait:
            return _arrive_or_wait(move, waits.signalled(move, wait, signal), wait)
        case Judged(verdict), Turn() as turn if turn.attempts[-1].verdict is None:
            turn = turns.judge(move, turn, verdict)
            return _arrive(move, turns.accept(move, turn)) if verdict.ok else _decide(move, turn)
        case ToolReturned(result), ToolCall() as call if move.job.waiting_for is None:
            return _arrive(move, calls.returned(move, call, result))
        case ToolFailed(error), ToolCall() as call if move.job.waiting_for is None:
            return _arrive(move, calls.failed(move, call, error))
        case Settled(done, result), ToolCall() as call if move.job.waiting_for is not None:
            return _arrive(move, calls.settled(move, call, result, done=done))
        case _:
            raise IllegalMoveError(move.job, trigger)


def _start(move: Move) -> Action:
    move.change(status=JobStatus.RUNNING)
    move.note(EventKind.JOB_STARTED)
    return _arrive(move, turns.say_system(move) or move.machine.start)


def _cancel(move: Move) -> Finished | AwaitSettlement:
    """Closes what is open. An attempt whose request is under way is an aborted one, and an open call has no result."""
    visit = move.job.open
    if isinstance(visit, ToolCall) and calls.is_unknowable(visit):
        return _settle_first(move, visit)
    if isinstance(visit, Turn) and visit.attempts[-1].verdict is None:
        visit = turns.judge(move, visit, Verdict(Outcome.TRANSPORT, Cause.ABORTED.value))
    if isinstance(visit, ToolCall):
        visit = replace(visit, error=calls.CANCELLED)
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
        case retry.Again() as again:
            return Ask(*turns.open_attempt(move, turn, again))
        case retry.GiveUp(failure, detail):
            fault = Fault(failure, f"state {turn.state}: {detail}")
            turns.give_up(move, turn, fault)
            return _arrive(move, fault)
        case other:
            assert_never(other)


def _resume_call(move: Move, call: ToolCall) -> Action:
    return _settle_first(move, call) if calls.is_unknowable(call) else RunTool(call)


def _settle_first(move: Move, call: ToolCall) -> AwaitSettlement:
    """Not even a request to cancel makes a job forget an effect that may have taken place."""
    calls.await_settlement(move, call)
    return AwaitSettlement(call)


def _arrive_or_wait(move: Move, target: str | None, wait: Wait) -> Action:
    return Await(wait) if target is None else _arrive(move, target)


def _arrive(move: Move, way: Way) -> Action:
    """Goes on through states that need nothing from outside, until there is something to do."""
    for _ in range(2 * len(move.machine.states) + 1):
        if isinstance(way, Fault):
            routed = move.route(way)
            if routed is None:
                return move.fail(way)
            way = routed
        move.change(state=way)
        arrived = _enter(move, move.machine.states[way])
        if not isinstance(arrived, str | Fault):
            return arrived
        way = arrived
    return move.fail(Fault(Failure.LOOP, f"the edges around state {move.job.state} lead in a circle past every action"))


def _enter(move: Move, state: State) -> Action | Way:
    match state:
        case AskState() | ToolState() if move.is_exhausted(state) and state.exhausted is not None:
            return move.follow(EXHAUSTED, state.exhausted)
        case AskState():
            return _enter_turn(move, state)
        case ToolState():
            call = calls.open_call(move, state)
            return call if isinstance(call, Fault) else RunTool(call)
        case WaitState():
            wait = waits.open_wait(move, state)
            return wait if isinstance(wait, Fault) else Await(wait)
        case EndState():
            return _end(move, state)
        case _:
            assert_never(state)


def _enter_turn(move: Move, state: AskState) -> Action | Fault:
    most = move.machine.max_turns
    if move.job.turn_count >= most:
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
    return move.fail(Fault(Failure.REJECTED, f"the machine ended in state {state.name}"))
