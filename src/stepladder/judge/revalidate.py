"""Stored answers judged again: the ladder's verdict on the same bytes now, compared with the stored one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, TypeAlias

from stepladder.schemas.canonical import exact_hash
from stepladder.schemas.replay import JudgedAgain
from stepladder.workflows.job import Turn
from stepladder.workflows.judging import judged
from stepladder.workflows.machine import AskState

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from stepladder.schemas.answer import Arrival, Verdict, Violation
    from stepladder.workflows.job import Attempt, Job
    from stepladder.workflows.machine import Machine

Change: TypeAlias = Literal["accepted", "rejected", "otherwise"]
"""Accepted now and not then, the other way round, or rejected both times and for another reason."""


class Unjudged(StrEnum):
    """Why an answer cannot be judged again. Its verdict then remains."""

    BROKEN_OFF = "broken_off"
    """Its worker was lost, or the job cancelled, before an answer could be judged: the verdict is not the ladder's."""
    GONE = "gone"
    """Retention removed its bytes."""
    NO_STATE = "no_state"
    """The workflow asks nothing in a state of that name."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The stored part of a judged attempt. ``why`` says why ``arrival`` is missing, if it is."""

    id: UUID
    turn: int
    attempt: Attempt
    arrival: Arrival | None
    why: Unjudged | None = None


@dataclass(frozen=True, slots=True)
class Rejudged:
    """One attempt with both verdicts. ``now`` is None if it could not be judged again, for the reason ``why``."""

    id: UUID
    turn: int
    attempt: int
    state: str
    was: Verdict
    now: Verdict | None
    why: Unjudged | None = None

    @property
    def changed(self) -> bool:
        """Whether it is another verdict: another outcome, cause or rung, other places or rules, another output.

        The wording of a reason is none of these.
        """
        return self.now is not None and _core(self.was) != _core(self.now)

    @property
    def reworded(self) -> bool:
        """Whether the verdict is the same with a different wording."""
        return self.now is not None and not self.changed and self.was.errors != self.now.errors

    @property
    def change(self) -> Change | None:
        if self.now is None or not self.changed:
            return None
        if self.was.ok == self.now.ok:
            return "otherwise"
        return "accepted" if self.now.ok else "rejected"


def revalidate(machine: Machine, job: Job, answers: Iterable[Answer]) -> tuple[Rejudged, ...]:
    """Judges each answer by ``machine``, with the job's memory as it was in the answer's turn.

    Every turn is judged with the stored history, even if an earlier turn would now end differently. Pure, and never
    raises because of an answer.
    """
    places = {visit.ordinal: (place, visit) for place, visit in enumerate(job.visits) if isinstance(visit, Turn)}
    return tuple(_again(machine, job, answer, *places[answer.turn]) for answer in answers)


def _again(machine: Machine, job: Job, answer: Answer, place: int, turn: Turn) -> Rejudged:
    was = answer.attempt.verdict
    if was is None:
        raise ValueError(f"attempt {answer.id} was never judged")
    now, why = None, answer.why
    if answer.arrival is not None and isinstance(machine.states.get(turn.state), AskState):
        then = replace(job, visits=job.visits[:place])
        bad = was.schema_known_bad
        now = judged(machine, then, turn, answer.attempt, answer.arrival, schema_known_bad=bad)
    elif answer.arrival is not None:
        why = Unjudged.NO_STATE
    return Rejudged(answer.id, answer.turn, answer.attempt.ordinal, turn.state, was, now, why)


def _core(verdict: Verdict) -> object:
    output = exact_hash(verdict.output) if verdict.ok else None
    return verdict.outcome, verdict.cause, verdict.rungs, _places(verdict.errors), _places(verdict.observed), output


def _places(violations: Iterable[Violation]) -> list[tuple[str, str]]:
    return [(one.pointer, one.source) for one in violations]


def report_of(one: Rejudged) -> JudgedAgain:
    """In the terms of the HTTP API."""
    was, now = one.was, one.now
    errors = {"was_errors": was.errors, "now_errors": now.errors} if now is not None and one.changed else {}
    return JudgedAgain(
        id=one.id,
        turn=one.turn,
        attempt=one.attempt,
        state=one.state,
        was=was.outcome,
        now=None if now is None else now.outcome,
        was_cause=was.cause,
        now_cause=None if now is None else now.cause,
        changed=one.changed,
        unjudged=one.why,
        **errors,
    )
