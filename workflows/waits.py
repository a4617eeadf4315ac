"""A wait's life: opened with what it shows, ended by a matching signal or by its timeout."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from stepladder.schemas.event import EventKind
from stepladder.schemas.job import Failure, JobStatus
from stepladder.validation.expressions import EvaluationFailure
from stepladder.workflows.job import JobFailure
from stepladder.workflows.machine import TIMEOUT, ToolState, WaitState, evaluate
from stepladder.workflows.names import names_of
from stepladder.workflows.tool_calls import call_of
from stepladder.workflows.visits import SignalWait, VisitStatus

if TYPE_CHECKING:
    from stepladder.schemas.actor import Actor
    from stepladder.schemas.jsontypes import Json, JsonObject
    from stepladder.workflows.builder import TransitionBuilder
    from stepladder.workflows.job import Signal


def open_wait(builder: TransitionBuilder, state: WaitState) -> SignalWait | JobFailure:
    """Opens a wait, with the calls of irreversible tools behind it frozen as they would run."""
    frozen: dict[str, Json] = {}
    for name in state.freezes:
        tool = builder.machine.states[name]
        if not isinstance(tool, ToolState):
            raise TypeError(f"state {name} runs no tool")
        call = call_of(builder, tool)
        if isinstance(call, JobFailure):
            return call
        frozen[name] = {"tool": call[0], "arguments": call[1]}
    show = None if state.show is None else evaluate(state.show, names_of(builder.job))
    if isinstance(show, EvaluationFailure):
        return JobFailure(Failure.EXPRESSION_ERROR, f"what state {state.name} shows: {show.reason}")
    visit = builder.next_visit()
    wait = SignalWait(
        visit=visit,
        state=state.name,
        signal=state.signal,
        wait_id=uuid.uuid5(builder.job.id, f"wait/{visit}"),
        show=show,
        opened_at=builder.now,
        status=VisitStatus.WAITING,
        until=None if state.timeout_s is None else builder.now + timedelta(seconds=state.timeout_s),
        frozen=frozen,
        by_other=state.by_other,
        scopes=state.scopes,
    )
    builder.put(wait)
    builder.change(status=JobStatus.WAITING, waiting_for=state.signal, due_at=wait.until)
    data = {"state": state.name, "signal": state.signal, "wait_id": str(wait.wait_id)}
    builder.note(EventKind.WAIT_STARTED, data)
    return wait


def forbids(wait: SignalWait | WaitState, sender: Actor, principal: str) -> str | None:
    """Why this sender may not answer, in a job of that principal; None if they may."""
    itself, lacking = wait.by_other and sender.name == principal, sender.lacks(wait.scopes)
    if not itself and not lacking:
        return None
    rules = [f"must not come from {principal}, whose job it is"] if wait.by_other else []
    if wait.scopes:
        rules.append(f"needs the scope{'' if len(wait.scopes) == 1 else 's'} {', '.join(wait.scopes)}")
    name = wait.state if isinstance(wait, SignalWait) else wait.name
    why = f"{sender.name} lacks {', '.join(lacking)}" if lacking else f"this one comes from {sender.name}"
    return f"in state {name} the signal {wait.signal} {' and '.join(rules)}; {why}"


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a signal does not end a wait; the wait stays open."""

    reason: str


def fitting(state: WaitState, wait: SignalWait, payload: Json) -> str | Refused:
    """The edge that a payload takes. ``wait_id`` is not one of the author's own fields."""
    if not isinstance(payload, Mapping):
        return Refused(f"the payload of signal {state.signal} is a map with an `action`")
    named = payload.get("wait_id")
    if (wait.frozen or named is not None) and named != str(wait.wait_id):
        return Refused(f"the signal has to name the wait that it answers: wait_id {wait.wait_id}")
    own = without_wait_id(payload)
    violations = () if state.schema is None else state.schema.violations(own)
    if violations:
        broken = "; ".join(f"{violation.pointer or '/'} {violation.reason}" for violation in violations[:5])
        return Refused(f"the payload breaks the signal's schema: {broken}")
    action = own.get("action")
    if not isinstance(action, str) or action not in state.edges or action == TIMEOUT:
        listed = ", ".join(word for word in state.edges if word != TIMEOUT)
        return Refused(f"the payload's `action` is {str(action)[:100]!r}; state {state.name} takes {listed}")
    return action


def without_wait_id(payload: Mapping[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in payload.items() if name != "wait_id"}


def signalled(builder: TransitionBuilder, wait: SignalWait, signal: Signal) -> str | None:
    """Takes a signal. One that does not match the schema is consumed and recorded, and the wait stays open.

    A signal that arrived after the wait's timeout is not taken, even if it is read first: the timeout came earlier.
    """
    state = _state(builder, wait)
    if wait.until is not None and wait.until <= signal.received_at and wait.until <= builder.now:
        return fall_due(builder, wait)
    builder.taken = signal.id
    sent: JsonObject = {"signal": signal.name, "id": str(signal.id), "by": signal.sender.name}
    action = _answer(builder, state, wait, signal)
    if isinstance(action, Refused):
        builder.note(EventKind.SIGNAL_REFUSED, {**sent, "reason": action.reason})
        return None
    payload = without_wait_id(signal.payload) if isinstance(signal.payload, Mapping) else signal.payload
    closed = wait.close(builder.now, payload=payload, signal_id=signal.id, action=action)
    builder.note(EventKind.SIGNAL_TAKEN, {**sent, "action": action})
    return _leave(builder, closed, action, state)


def _answer(builder: TransitionBuilder, state: WaitState, wait: SignalWait, signal: Signal) -> str | Refused:
    if signal.name != wait.signal:
        return Refused("it has another name")
    forbidden = forbids(wait, signal.sender, builder.job.principal)
    return fitting(state, wait, signal.payload) if forbidden is None else Refused(forbidden)


def fall_due(builder: TransitionBuilder, wait: SignalWait) -> str | None:
    """Ends a wait that has timed out."""
    if wait.until is None or builder.now < wait.until:
        return None
    builder.note(EventKind.WAIT_TIMED_OUT, {"state": wait.state, "signal": wait.signal})
    return _leave(builder, wait.close(builder.now, action=TIMEOUT), TIMEOUT, _state(builder, wait))


def _leave(builder: TransitionBuilder, wait: SignalWait, action: str, state: WaitState) -> str:
    builder.put(wait)
    builder.change(
        status=JobStatus.RUNNING, waiting_for=None, deadline_at=builder.after_waiting(wait), due_at=builder.now
    )
    return builder.follow(action, state.edges[action])


def _state(builder: TransitionBuilder, wait: SignalWait) -> WaitState:
    state = builder.machine.states[wait.state]
    if not isinstance(state, WaitState):
        raise TypeError(f"state {wait.state} waits for nothing")
    return state
