"""The way that a job took through its machine, read off its visits."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from stepladder.dashboard.conversation import Asked, Called, Ran, Waited
from stepladder.dashboard.graph import Step, Way
from stepladder.schemas.job import Failure
from stepladder.workflows.machine import ERROR, OK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepladder.dashboard.conversation import Shown
    from stepladder.schemas.responses import Job


def way_of(job: Job, shown: Sequence[Shown]) -> Way:
    """Each visit with where it led: to the next one, or to where the job stands now."""
    states = [_state(one) for one in shown]
    targets: list[str | None] = [target for _, target in pairwise(states)]
    if states:
        targets.append(job.state if job.state != states[-1] else None)
    steps = tuple(
        Step(one.visit, state, _word(one), target) for one, state, target in zip(shown, states, targets, strict=True)
    )
    return Way(
        steps,
        job.state,
        failed=job.failure is not None,
        live=not job.status.final,
        denied=_denied(job, shown),
    )


def _state(one: Shown) -> str:
    match one:
        case Asked():
            return one.turn.state
        case Ran() | Called():
            return one.call.state
        case Waited():
            return one.wait.state


def _word(one: Shown) -> str | None:
    match one:
        case Asked():
            failed = one.turn.outcome is not None and one.turn.outcome != "valid"
            return one.turn.action or (str(one.turn.outcome) if failed else None)
        case Ran() | Called():
            if one.call.closed_at is None:
                return None
            return ERROR if one.call.error is not None and one.call.result is None else OK
        case Waited():
            return one.wait.action


def _denied(job: Job, shown: Sequence[Shown]) -> str | None:
    """The action for which there was no edge."""
    if job.failure is not Failure.TRANSITION_DENIED or not shown or not isinstance(shown[-1], Asked):
        return None
    output = shown[-1].turn.output
    action = output.get("action") if isinstance(output, dict) else None
    return str(action)[:40] if action is not None else "no action"
