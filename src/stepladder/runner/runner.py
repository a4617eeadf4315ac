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

from stepladder.engine.limiter import ConcurrencyLimiter
from stepladder.models.children import cancel_children
from stepladder.models.records import LeaseStatus
from stepladder.runner import children
from stepladder.runner.asking import Asking
from stepladder.runner.claimer import Claimer
from stepladder.runner.heartbeat import Heartbeat
from stepladder.runner.refusals import Refusals
from stepladder.runner.tools import run_tool
from stepladder.schemas.answer import Verdict
from stepladder.schemas.errors import UnreachableError
from stepladder.schemas.finding import BadDocumentError
from stepladder.schemas.outcomes import Cause, Outcome
from stepladder.schemas.tool import Effect
from stepladder.workflows.advance import advance, cancel
from stepladder.workflows.events import Cancelled, Claimed, Judged, Signalled
from stepladder.workflows.job import ChildCall, ToolCall, Turn, Wait
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

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from uuid import UUID

    from stepladder.engine.client import EngineClient
    from stepladder.engine.identity import Identity
    from stepladder.engine.limiter import Permit
    from stepladder.models.records import Claim
    from stepladder.models.store import Store
    from stepladder.runner.claimer import Picked
    from stepladder.runner.heartbeat import Lease
    from stepladder.runner.machines import Machines
    from stepladder.workflows.events import Event
    from stepladder.workflows.job import Job
    from stepladder.workflows.machine import Machine
    from stepladder.workflows.transition import Transition

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
    PAUSED = "paused"
    """Somebody paused the job, or its workflow, while a tool ran or before anything was begun."""
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
    judges the answer and goes on. ``notify`` is called with jobs that fell due by what was done here, such as children
    that were started and parents of those that ended; nobody has to listen.

    One runner serves any number of slices at once; of their jobs it holds nothing between them.
    """

    store: Store
    machines: Machines
    engine: EngineClient
    identity: Identity
    owner: str = field(default_factory=owner_name)
    lease_s: float = LEASE_S
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    observe: Callable[[Transition], None] = lambda _: None
    is_over: Callable[[UUID], bool] = lambda _: False
    notify: Callable[[Sequence[UUID]], None] = lambda _: None
    limiter: ConcurrencyLimiter = field(default_factory=ConcurrencyLimiter)
    asking: Asking = field(init=False)
    heartbeat: Heartbeat = field(init=False)
    claimer: Claimer = field(init=False)

    def __post_init__(self) -> None:
        refusals = Refusals(limiter=self.limiter)
        object.__setattr__(self, "asking", Asking(self.store, self.engine, self.identity, self.now, refusals))
        object.__setattr__(self, "heartbeat", Heartbeat(self.store, self.lease_s))
        object.__setattr__(self, "claimer", Claimer(self.store, self.owner, self.lease_s))

    async def run_slice(self, job_id: UUID | None = None) -> Slice:
        """Claims a job (the one named, or the next that is due) and drives it as far as it goes now.

        Raises ``UnreachableError`` when the database breaks, and ``BadDocumentError`` where this process lacks a tool
        of the job's workflow; the job is handed back then, or its lease runs out.
        """
        since = asyncio.get_running_loop().time()
        claim = await self.store.claim(self.owner, self.lease_s, job_id)
        return Slice(SliceEnd.IDLE) if claim is None else await self._run(claim, since)

    async def pick(self) -> Picked | None:
        """Takes the job that comes next, for ``run_picked`` or ``put_back``; None if there is none.

        Raises ``UnreachableError`` when the database breaks.
        """
        return await self.claimer.next()

    async def put_back(self, picked: Picked) -> None:
        await self.claimer.put_back(picked)

    async def run_picked(self, picked: Picked) -> Slice:
        """As ``run_slice``, with a job that was taken already."""
        claim = await self.claimer.load(picked)
        return Slice(SliceEnd.LOST) if claim is None else await self._run(claim, picked.since)

    async def _run(self, claim: Claim, since: float) -> Slice:
        with structlog.contextvars.bound_contextvars(job=str(claim.job.id), workflow=claim.workflow):
            try:
                machine = await self._machine(claim)
                if machine is None:
                    return await self._cancel(claim)
                async with self.heartbeat.keeps(claim, since) as lease:
                    with self.limiter.permit() as permit:
                        return await self._drive(claim, machine, lease, permit)
            except asyncio.CancelledError:
                await asyncio.shield(self._hand_back(claim, None))
                raise
            except UnreachableError:  # the database, which may be back already
                await self._hand_back(claim, None)
                raise
            except Exception:  # a bug, or a tool that this process lacks: another worker may do better, but not at once
                await self._hand_back(claim, self.now() + timedelta(seconds=HAND_BACK_S))
                raise

    async def _machine(self, claim: Claim) -> Machine | None:
        """None where this process lacks what the document names, and the job is only to end."""
        try:
            return await self.machines.get(claim.workflow, claim.version, claim.variant)
        except BadDocumentError:
            if claim.cancel_requested:
                return None
            raise

    async def _cancel(self, claim: Claim) -> Slice:
        step = cancel(claim.job, self.now(), claim.settled)
        if not await self.store.commit(claim, step):
            return Slice(SliceEnd.LOST, claim.job)
        self.observe(step)
        if not step.job.status.final:
            return Slice(SliceEnd.WAITING, step.job)
        await self._ended(claim, step.job)
        return Slice(SliceEnd.FINISHED, step.job)

    async def _ended(self, claim: Claim, job: Job) -> None:
        """What a job's end means to its family. Where the database breaks, the sweep does it."""
        with contextlib.suppress(UnreachableError):
            if any(isinstance(visit, ChildCall) for visit in job.visits):
                self.notify(await cancel_children(self.store, job.id))
        if claim.parent is not None:
            self.notify([claim.parent])

    async def _hand_back(self, claim: Claim, due_at: datetime | None) -> None:
        with contextlib.suppress(UnreachableError):  # then the lease runs out
            await self.store.release(claim, due_at)

    async def _drive(self, claim: Claim, machine: Machine, lease: Lease, permit: Permit) -> Slice:
        job = claim.job
        first = await lease.during(self._first_trigger(claim, machine), to_its_end=True)
        if isinstance(first, LeaseStatus):
            return Slice(SliceEnd.LOST, job)
        trigger = first
        while True:
            step = await self._step(claim, machine, job, trigger, lease, permit)
            if step is None:
                log.warning("job lost", fence=claim.fence)
                return Slice(SliceEnd.LOST, job)
            self.observe(step)
            job = step.job
            without_permit = isinstance(step.next, Ask) and lease.cancelling and not permit.held
            if without_permit or (
                claim.cancel_requested and isinstance(step.next, Ask | RunTool | Resolve | TendChildren)
            ):
                trigger = Cancelled()  # a stored answer came first: it was paid for
                continue
            match step.next:
                case Ask() | RunTool():
                    # What cannot be undone is waited for, whoever asks for the end: its result is not to be lost.
                    to_its_end = isinstance(step.next, RunTool) and step.next.call.effect is Effect.IRREVERSIBLE
                    came = await lease.during(self._do(claim, machine, job, step.next, permit), to_its_end=to_its_end)
                case Resolve() | TendChildren():
                    came = await lease.during(self._call(claim, job, step.next), to_its_end=True)
                case Rest(until) if not self._is_long(until):
                    came = await lease.during(self._sleep(until))
                case Rest():
                    return Slice(SliceEnd.RESTING, job)
                case Await() | AwaitSettlement() | AwaitChildren():
                    log.info("job waits", signal=job.waiting_for, state=job.state)
                    return Slice(SliceEnd.WAITING, job)
                case Hold():
                    log.info("job paused", state=job.state)
                    return Slice(SliceEnd.PAUSED, job)
                case Finished():
                    log.info("job ended", status=job.status, failure=job.failure, tokens=job.tokens)
                    await self._ended(claim, job)
                    return Slice(SliceEnd.FINISHED, job)
                case other:
                    assert_never(other)
            if came is None or came is LeaseStatus.LOST:
                log.warning("job lost", fence=claim.fence)
                return Slice(SliceEnd.LOST, job)
            if isinstance(came, Judged) and self.is_over(job.id):
                await self._hand_back(claim, None)
                return Slice(SliceEnd.HANDED_BACK, job)
            trigger = Cancelled() if isinstance(came, LeaseStatus) else came

    async def _step(
        self, claim: Claim, machine: Machine, job: Job, trigger: Event, lease: Lease, permit: Permit
    ) -> Transition | None:
        """The machine's step, committed; None if the job is in other hands.

        Where somebody has paused the job, nothing more is begun: the step is made anew, and ends before that. What the
        trigger brings is kept. (An answer of the engine stopped such a job already, when it was stored.)
        """
        step, waited = self._advance(machine, job, trigger), False
        while isinstance(step.next, Ask) and not permit.try_acquire() and not self._is_late(step.job):
            waited = True
            status = await lease.during(self._acquire(permit, step.job))
            if status is LeaseStatus.LOST:
                return None
            step = self._advance(machine, job, trigger)  # anew, since time has passed
            if status is LeaseStatus.CANCELLING:
                break
        if not isinstance(step.next, Ask):
            permit.release()
        begins = isinstance(step.next, Ask | RunTool | Resolve) and (waited or not isinstance(trigger, Judged))
        if await self._commit(claim, machine, step, unless_paused=begins):
            return step
        if not begins or not await self.store.holds(claim):
            return None
        step = self._advance(machine, job, trigger, hold=True)
        return step if await self._commit(claim, machine, step) else None

    def _advance(self, machine: Machine, job: Job, trigger: Event, *, hold: bool = False) -> Transition:
        known = self.identity
        return advance(
            machine, job, trigger, self.now(), max_model_len=known.max_model_len, lengths=known.lengths, hold=hold
        )

    async def _commit(self, claim: Claim, machine: Machine, step: Transition, *, unless_paused: bool = False) -> bool:
        stamp = None
        if step.opened is not None and isinstance(step.next, Ask):
            stamp = self.asking.stamp(machine, step.job, step.next.turn, step.opened)
        if not isinstance(step.next, AwaitSettlement):
            claim = replace(claim, cancel_requested=False)  # not followed yet: wherever the job is let go of, it is due
        if isinstance(step.next, Await) and _early(claim, step, step.next.wait):
            claim = replace(claim, known_signals=0)  # and so the job is due again at once
        long = isinstance(step.next, Rest) and self._is_long(step.next.until)
        return await self.store.commit(
            claim, step, stamp, release=not isinstance(step.next, Rest) or long, unless_paused=unless_paused
        )

    async def _acquire(self, permit: Permit, job: Job) -> None:
        """Waits for a slot of the engine, or for the job's deadline. No attempt is open yet."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(job.left_s(self.now())):
                await permit.acquire()

    def _is_late(self, job: Job) -> bool:
        left_s = job.left_s(self.now())
        return left_s is not None and left_s <= 0

    async def _do(
        self, claim: Claim, machine: Machine, job: Job, action: Ask | RunTool, permit: Permit
    ) -> Event | None:
        """Does what the machine wants, with no connection to the database held meanwhile. None: the job is lost."""
        if isinstance(action, RunTool):
            tool = machine.tool(action.call.state, action.call.tool)
            log.info("tool runs", state=action.call.state, tool=tool.name, effect=tool.effect)
            return await run_tool(tool, action.call, job.left_s(self.now()))
        with structlog.contextvars.bound_contextvars(turn=action.turn.ordinal, attempt=action.attempt.ordinal):
            verdict = await self.asking.ask(claim, machine, job, action, permit)
            return None if verdict is None else Judged(verdict)

    async def _call(self, claim: Claim, job: Job, action: Resolve | TendChildren) -> Event | None:
        if isinstance(action, Resolve):
            return await children.resolve(self.store, action)
        return await children.tend(self.store, claim, job, action, self.now(), self.notify)

    async def _sleep(self, until: datetime) -> Claimed:
        await asyncio.sleep(max(0.0, (until - self.now()).total_seconds()))
        return Claimed()

    def _is_long(self, until: datetime) -> bool:
        return (until - self.now()).total_seconds() > SHORT_REST_S

    async def _first_trigger(self, claim: Claim, machine: Machine) -> Event:
        """What a claim finds: a stored answer without its verdict, an attempt never heard of again, a signal, time."""
        job, pending = claim.job, claim.pending
        match job.open:
            case Turn() as turn if pending is not None:
                if pending.arrival is None:
                    return Judged(Verdict(Outcome.TRANSPORT, Cause.ABANDONED.value))
                return Judged(await self.asking.verdict(machine, job, turn, pending.attempt, pending.arrival))
            case ToolCall() if claim.settled is not None:
                return Cancelled(claim.settled) if claim.cancel_requested else claim.settled
            case _ if claim.cancel_requested:
                return Cancelled()
            case Wait() as wait:
                signal = next((signal for signal in claim.signals if signal.name == wait.signal), None)
                return Claimed() if signal is None else Signalled(signal)
            case _:
                return Claimed(claim.taken_over)


def _early(claim: Claim, step: Transition, wait: Wait) -> bool:
    """Whether a signal for this wait is there already."""
    return any(signal.name == wait.signal and signal.id != step.taken for signal in claim.signals)
