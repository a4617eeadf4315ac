"""Jobs as workers that a test plays hold them: what a worker has of one, and what must be true of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from stepladder.models.ids import uuid7
from stepladder.schemas.answer import Completion, Verdict
from stepladder.schemas.outcomes import Cause, Outcome
from stepladder.workflows.events import Cancelled, Claimed, Judged, Signalled
from stepladder.workflows.job import Job, Turn
from stepladder.workflows.visits import SignalWait, ToolCall
from support.machines import accepted, document, machine_of, rejected

if TYPE_CHECKING:
    from uuid import UUID

    from stepladder.models.records import Claim
    from stepladder.schemas.answer import Arrival
    from stepladder.workflows.events import Event
    from stepladder.workflows.machine import Machine
    from stepladder.workflows.transition import Command

ASK = """
  ask: "Which?"
  output: {type: object, properties: {n: {type: integer}}, required: [n], additionalProperties: false}
"""
PAYING = f"""
one:{ASK}  next: save
save: {{tool: save, effect: idempotent, retry: {{attempts: 2}}, next: {{ok: confirm, error: confirm}}}}
confirm: {{wait: {{signal: go, timeout_s: 600}}, next: {{go: pay, timeout: left}}}}
pay: {{tool: pay, effect: irreversible, next: {{ok: done, error: left}}}}
done: {{end: succeeded, result: turns.one}}
left: {{end: failed}}
"""
WAITING = f"""
one:{ASK}  next: news
news: {{wait: {{signal: news}}, next: {{told: two}}}}
two:{ASK}  next: done
done: {{end: succeeded, result: turns.two}}
"""
MACHINES = [machine_of(document(states)) for states in (PAYING, WAITING)]


@dataclass
class Held:
    """A job as a worker has it: what it is about to do, and whether the answer to that is stored already."""

    claim: Claim
    job: Job
    next: Command
    arrived: bool = False


@dataclass
class Known:
    """What must hold of a job."""

    machine: Machine
    job: Job
    fence: int = 0
    holder: str | None = None
    lost: bool = False
    """A worker lost it since the last step."""
    paused: bool = False
    cancelled: bool = False
    paid: Counter[str] = field(default_factory=Counter)
    signals: set[UUID] = field(default_factory=set)


def as_loaded(job: Job) -> Job:
    """The machine's memory without the texts that stay in the database."""

    def turn(visit: Turn) -> Turn:
        attempts = [
            one
            if one.verdict is None
            else replace(one, verdict=replace(one.verdict, completion=completion(one.verdict.completion, visit)))
            for one in visit.attempts
        ]
        return replace(visit, attempts=tuple(attempts))

    def completion(said: Completion, visit: Turn) -> Completion:
        return Completion(
            said.content if visit.closed_at is None else None, finish_reason=said.finish_reason, usage=said.usage
        )

    return replace(job, visits=tuple(turn(visit) if isinstance(visit, Turn) else visit for visit in job.visits))


def first_event(claim: Claim) -> Event:
    """As the runner does it."""
    match claim.job.open:
        case Turn() if claim.pending is not None:
            came = claim.pending.arrival
            return Judged(Verdict(Outcome.TRANSPORT, Cause.ABANDONED.value) if came is None else verdict_on(came))
        case ToolCall() if claim.settled is not None:
            return Cancelled(claim.settled) if claim.cancel_requested else claim.settled
        case _ if claim.cancel_requested:
            return Cancelled()
        case SignalWait() as wait:
            signal = next((signal for signal in claim.signals if signal.name == wait.signal), None)
            return Claimed() if signal is None else Signalled(signal)
        case _:
            return Claimed(claim.taken_over)


def verdict_on(came: Arrival) -> Verdict:
    """Follows from what is stored, so each worker that takes the job over comes to the same."""
    match came.body:
        case b"right":
            return accepted({"n": 1})
        case b"wrong":
            return rejected(Outcome.EMPTY, "no_content", finish_reason="stop")
        case _:
            return rejected(Outcome.PARSE_FAILURE, "syntax", content=uuid7().bytes, finish_reason="stop")
