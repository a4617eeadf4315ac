"""One job's slice: claim, decide, do, commit, until there is nothing to do now or the job is in other hands."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, assert_never

import structlog

from stepladder.models.records import Pulse, Stamp
from stepladder.runner.lease import kept_alive
from stepladder.runner.tools import run_tool
from stepladder.schemas.answer import Verdict
from stepladder.schemas.errors import UnreachableError
from stepladder.schemas.finding import BadDocumentError
from stepladder.schemas.outcomes import Cause, Outcome
from stepladder.schemas.tool import Effect
from stepladder.validation.ladder import Rubric, judge
from stepladder.workflows.advance import advance, cancel
from stepladder.workflows.job import Turn, Wait
from stepladder.workflows.names import names_of
from stepladder.workflows.request import body_of
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
    Signalled,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from stepladder.engine.client import EngineClient
    from stepladder.engine.identity import Identity
    from stepladder.models.records import Claim
    from stepladder.models.store import Store
    from stepladder.runner.lease import Lease
    from stepladder.runner.machines import Machines
    from stepladder.schemas.answer import Arrival
    from stepladder.workflows.job import Attempt, Job
    from stepladder.workflows.machine import Machine
    from stepladder.workflows.step import Step, Trigger

log = structlog.get_logger("stepladder.runner")

LEASE_S = 3.0  # with a sweep every second, a job whose worker died goes on within five seconds
HAND_BACK_S = 10.0
SHORT_REST_S = 5.0  # a backoff this short is slept through; a longer one lets go of the job


class SliceEnd(StrEnum):
    """How a slice of a job ended."""

    IDLE = "idle"
    """There was nothing to claim: the job is not due, or another worker has it."""
    FINISHED = "finished"
    RESTING = "resting"
    WAITING = "waiting"
    HANDED_BACK = "handed_back"
    """``is_over`` said so, between two turns: the job is due, and its last answer stored and not yet judged."""
    LOST = "lost"
    """The job fell into other hands on the way. Nothing was written after that."""


@dataclass(frozen=True, slots=True)
class Slice:
    """What a slice came to. ``job`` is the machine's memory as it was last committed; None if nothing was claimed."""

    end: SliceEnd
    job: Job | None = None


def owner_name() -> str:
    """This worker's name on its leases, for people: host and process."""
    return f"{socket.gethostname()}:{os.getpid()}"


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs slices of jobs. ``observe`` is called with every step that was committed, for those who watch.

    ``is_over`` is asked of a job whenever an answer of the engine has been stored: that is the one moment at which no
    request and no tool is under way and none is opened. If so, the job is handed back, and whoever claims it next
    judges the answer and goes on.

    One runner serves any number of slices at once; it holds no state between them.
    """

    store: Store
    machines: Machines
    engine: EngineClient
    identity: Identity
    owner: str = field(default_factory=owner_name)
    lease_s: float = LEASE_S
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    observe: Callable[[Step], None] = lambda _: None
    is_over: Callable[[UUID], bool] = lambda _: False

    async def run_slice(self, job_id: UUID | None = None) -> Slice:
        """Claims a job (the one named, or the next that is due) and drives it as far as it goes now.

        Raises ``UnreachableError`` when the database breaks, and ``BadDocumentError`` where this process lacks a tool
        of the job's workflow; the job is handed back then, or its lease runs out.
        """
        claim = await self.store.claim(self.owner, self.lease_s, job_id)
        if claim is None:
            return Slice(SliceEnd.IDLE)
        with structlog.contextvars.bound_contextvars(job=str(claim.job.id), workflow=claim.workflow):
            try:
                machine = await self._machine(claim)
                if machine is None:
                    return await self._cancel(claim)
                async with kept_alive(self.store, claim) as lease:
                    return await self._drive(claim, machine, lease)
            except asyncio.CancelledError:
                await asyncio.shield(self._hand_back(claim, None))
                raise
            except Exception:  # a bug, or a tool that this process lacks: another worker may do better, but not at once
                await self._hand_back(claim, self.now() + timedelta(seconds=HAND_BACK_S))
                raise

    async def _machine(self, claim: Claim) -> Machine | None:
        """None where this process lacks what the document names, and the job is only to end."""
        try:
            return await self.machines.get(claim.workflow, claim.version)
        except BadDocumentError:
            if claim.cancel_requested:
                return None
            raise

    async def _cancel(self, claim: Claim) -> Slice:
        step = cancel(claim.job, self.now())
        if not await self.store.commit(claim, step):
            return Slice(SliceEnd.LOST, claim.job)
        self.observe(step)
        return Slice(SliceEnd.FINISHED if step.job.status.final else SliceEnd.WAITING, step.job)

    async def _hand_back(self, claim: Claim, due_at: datetime | None) -> None:
        with contextlib.suppress(UnreachableError):  # then the lease runs out
            await self.store.release(claim, due_at)

    async def _drive(self, claim: Claim, machine: Machine, lease: Lease) -> Slice:
        job = claim.job
        trigger = _first_trigger(claim, machine)
        while True:
            step = advance(machine, job, trigger, self.now(), max_model_len=self.identity.max_model_len)
            if not await self._commit(claim, machine, step):
                log.warning("job lost", fence=claim.fence)
                return Slice(SliceEnd.LOST, job)
            self.observe(step)
            job = step.job
            if claim.cancel_requested and isinstance(step.next, Ask | RunTool):
                trigger = Cancelled()  # a stored answer came first: it was paid for
                continue
            match step.next:
                case Ask() | RunTool():
                    # What cannot be undone is waited for, whoever asks for the end: its result is not to be lost.
                    to_its_end = isinstance(step.next, RunTool) and step.next.call.effect is Effect.IRREVERSIBLE
                    came = await lease.during(self._do(claim, machine, job, step.next), to_its_end=to_its_end)
                case Rest(until) if not self._is_long(until):
                    came = await lease.during(self._sleep(until))
                case Rest():
                    return Slice(SliceEnd.RESTING, job)
                case Await() | AwaitSettlement():
                    log.info("job waits", signal=job.waiting_for, state=job.state)
                    return Slice(SliceEnd.WAITING, job)
                case Finished():
                    log.info("job ended", status=job.status, failure=job.failure, tokens=job.tokens)
                    return Slice(SliceEnd.FINISHED, job)
                case other:
                    assert_never(other)
            if came is None or came is Pulse.LOST:
                log.warning("job lost", fence=claim.fence)
                return Slice(SliceEnd.LOST, job)
            if isinstance(came, Judged) and self.is_over(job.id):
                await self._hand_back(claim, None)
                return Slice(SliceEnd.HANDED_BACK, job)
            trigger = Cancelled() if isinstance(came, Pulse) else came

    async def _commit(self, claim: Claim, machine: Machine, step: Step) -> bool:
        stamp = None
        if step.opened is not None and isinstance(step.next, Ask):
            identity = self.identity
            model = self._model(machine, step.next.turn.state)
            stamp = Stamp(request_id(step.job, step.opened), model, identity.version, identity.backend)
        if not isinstance(step.next, AwaitSettlement):
            claim = replace(claim, cancel_requested=False)  # not followed yet: wherever the job is let go of, it is due
        if isinstance(step.next, Await) and _early(claim, step, step.next.wait):
            claim = replace(claim, known_signals=0)  # and so the job is due again at once
        long = isinstance(step.next, Rest) and self._is_long(step.next.until)
        return await self.store.commit(claim, step, stamp, release=not isinstance(step.next, Rest) or long)

    async def _do(self, claim: Claim, machine: Machine, job: Job, action: Ask | RunTool) -> Trigger | None:
        """Does what the machine wants, with no connection to the database held meanwhile. None: the job is lost."""
        if isinstance(action, RunTool):
            tool = machine.tool(action.call.state, action.call.tool)
            log.info("tool runs", state=action.call.state, tool=tool.name, effect=tool.effect)
            return await run_tool(tool, action.call)
        with structlog.contextvars.bound_contextvars(turn=action.turn.ordinal, attempt=action.attempt.ordinal):
            return await self._ask(claim, machine, job, action)

    async def _ask(self, claim: Claim, machine: Machine, job: Job, action: Ask) -> Judged | None:
        state = machine.ask(action.turn.state)
        body = body_of(state, self._model(machine, state.name), job.transcript, action.turn, action.attempt)
        left_s = None if job.deadline_at is None else (job.deadline_at - self.now()).total_seconds()
        exchange = await self.engine.ask(body, request_id=request_id(job, action.attempt), timeout_s=left_s)
        timing = exchange.timing
        written = await self.store.arrived(
            claim, action.attempt, exchange.arrival, ttft_ms=timing.ttft_ms, duration_ms=timing.duration_ms
        )
        if not written:
            return None
        verdict = judged(machine, job, action.turn, action.attempt, exchange.arrival)
        log.info(
            "attempt judged",
            state=state.name,
            outcome=verdict.outcome,
            cause=verdict.cause,
            duration_ms=round(timing.duration_ms),
            ttft_ms=None if timing.ttft_ms is None else round(timing.ttft_ms),
        )
        return Judged(verdict)

    async def _sleep(self, until: datetime) -> Claimed:
        await asyncio.sleep(max(0.0, (until - self.now()).total_seconds()))
        return Claimed()

    def _is_long(self, until: datetime) -> bool:
        return (until - self.now()).total_seconds() > SHORT_REST_S

    def _model(self, machine: Machine, state: str) -> str:
        return machine.ask(state).model or self.identity.model


def judged(machine: Machine, job: Job, turn: Turn, attempt: Attempt, arrival: Arrival) -> Verdict:
    """The ladder's verdict on what arrived for an attempt."""
    state = machine.ask(turn.state)
    return judge(arrival, Rubric(state.schema, state.rules, attempt.max_completion_tokens), names_of(job))


def request_id(job: Job, attempt: Attempt) -> str:
    """The ``X-Request-Id`` of an attempt, by which it is found in the engine's own log."""
    return f"stepladder-{job.id}-{attempt.turn}-{attempt.ordinal}"


def _first_trigger(claim: Claim, machine: Machine) -> Trigger:
    """What a claim finds: an answer that waits for its verdict, an attempt never heard of again, a signal, or time."""
    job, pending = claim.job, claim.pending
    match job.open:
        case Turn() as turn if pending is not None:
            if pending.arrival is None:
                return Judged(Verdict(Outcome.TRANSPORT, Cause.ABANDONED.value))
            return Judged(judged(machine, job, turn, pending.attempt, pending.arrival))
        case _ if claim.cancel_requested:
            return Cancelled()
        case Wait() as wait:
            signal = next((signal for signal in claim.signals if signal.name == wait.signal), None)
            return Claimed() if signal is None else Signalled(signal)
        case _:
            return Claimed()


def _early(claim: Claim, step: Step, wait: Wait) -> bool:
    """Whether a signal for this wait is there already."""
    return any(signal.name == wait.signal and signal.id != step.taken for signal in claim.signals)
