"""Whether a job can use a signal, checked before it is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepladder.workflows.machine import WaitState
from stepladder.workflows.waits import Refused, fitting, forbids, without_wait_id

if TYPE_CHECKING:
    from stepladder.schemas.actor import Actor
    from stepladder.schemas.answer import Violation
    from stepladder.schemas.jsontypes import Json
    from stepladder.workflows.machine import Machine
    from stepladder.workflows.visits import SignalWait


@dataclass(frozen=True, slots=True)
class Unfit:
    """The signal cannot end the open wait, or any wait. ``violations`` are where it breaks the wait's schema."""

    reason: str
    violations: tuple[Violation, ...] = ()


@dataclass(frozen=True, slots=True)
class Forbidden:
    """The sender may not answer the open wait, or any wait of the job. ``reason`` says who may."""

    reason: str


@dataclass(frozen=True, slots=True)
class TooEarly:
    """The job may wait for it later, before an irreversible tool; such a wait takes no early signal."""

    reason: str


def refusal(
    machine: Machine, wait: SignalWait | None, name: str, payload: Json, sender: Actor, principal: str
) -> Unfit | Forbidden | TooEarly | None:
    """Why the signal is rejected; None if the job can use it now or later. ``wait`` is the open one, and ``principal``
    the job's."""
    states = [state for state in machine.states.values() if isinstance(state, WaitState) and state.signal == name]
    if not states:
        known = dict.fromkeys(state.signal for state in machine.states.values() if isinstance(state, WaitState))
        listed = ", ".join(known) or "no signal"
        return Unfit(f"workflow {machine.name} {machine.version} never waits for {name}; it waits for {listed}")
    state = next((state for state in states if wait is not None and state.name == wait.state), None)
    forbidden = [forbids(one, sender, principal) for one in ([state] if state is not None else states)]
    if all(forbidden):
        return Forbidden(f"{forbidden[0]}; nothing was stored")
    if wait is not None and state is not None:
        found = fitting(state, wait, payload)
        return _unfit(state, found, payload) if isinstance(found, Refused) else None
    if all(state.freezes for state in states):
        return TooEarly(f"the job does not wait for {name} yet, and that wait takes no early signal")
    return None


def _unfit(state: WaitState, refused: Refused, payload: Json) -> Unfit:
    own = without_wait_id(payload) if isinstance(payload, Mapping) else payload
    return Unfit(refused.reason, () if state.schema is None else state.schema.violations(own))
