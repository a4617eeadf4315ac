"""One slice of a job: claim, advance, commit, do, until there is nothing to do now or another worker has the job."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, assert_never

import structlog

from stepladder.engine.limiter import ConcurrencyLimiter
from stepladder.models.child_jobs import cancel_children
from stepladder.models.records import LeaseStatus
from stepladder.runner import children
from stepladder.runner.asking import Asking
from stepladder.runner.clock import Clock, steady
from stepladder.runner.heartbeat import Heartbeat, LeaseLostError
from stepladder.runner.refusals import Refusals
from stepladder.runner.tools import run_tool
from stepladder.schemas.answer import Verdict
from stepladder.schemas.errors import UnreachableError
from stepladder.schemas.finding import BadDocumentError
from stepladder.schemas.outcomes import Cause, Outcome
from stepladder.schemas.tool import Effect
from stepladder.workflows.advance import advance, cancel
from stepladder.workflows.events import Cancelled, Claimed, Judged, Signalled
from stepladder.workflows.job import Turn
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
    from collections.abc import Callable, Collection, Sequence
    from datetime import datetime
    from uuid import UUID

    from stepladder.engine.client import EngineClient
    from stepladder.engine.identity import Identity
    from stepladder.engine.limiter import Permit
    from stepladder.models.records import Claim
    from stepladder.models.store import Store
    from stepladder.runner.heartbeat import Lease
    from stepladder.runner.machines import Machines
    from stepladder.workflows.events import Event
    from stepladder.workflows.job import Job
    from stepladder.workflows.machine import Machine
    from stepladder.workflows.transition import Transition

log = structlog.get_logger("stepladder.runner")

LEASE_S = 3.0  # with a sweep every second, a job whose worker died continues within five seconds
HAND_BACK_S = 10.0
SHORT_REST_S = 5.0  # the worker sleeps through a backoff this short, and releases the job for a longer one


class SliceEnd(StrEnum):
    """How a slice of a job ended."""

    IDLE = "idle"
    """The job could not be claimed: it is not due, or another worker has it."""
    FINISHED = "finished"
    RESTING = "resting"
    WAITING = "waiting"
    PAUSED = "paused"
    """The job or its workflow was paused while a tool ran, or before anything was started."""
    HANDED_BACK = "handed_back"
    """``should_stop`` returned True. The job is due; its last answer is stored but not yet judged."""
    LOST = "lost"
    """The lease was lost, or the job paused while the engine answered. Nothing was written after that."""


@dataclass(frozen=True, slots=True)
class Slice:
    """How a slice ended. ``job`` is the machine's memory as last committed; None if none was claimed, or it is lost."""

    end: SliceEnd
    job: Job | None = None


def owner_name() -> str:
    """This worker's name on its leases, for people: host and process."""
    return f"{socket.gethostname()}:{os.getpid()}"


def never() -> bool:
    return False


class Runner:
    """Runs slices of jobs, any number at once, and keeps nothing of a job between them.

    ``observe`` is called with every transition that was committed. ``notify`` is called with jobs that fell due by
    what was done here, such as children that were started and parents of those that ended.
    Of ``now``, this machine's clock, only differences count: times come from the database.
    """

    def __init__(
        self,
        store: Store,
        machines: Machines,
        engine: EngineClient,
        identity: Identity,
        *,
        owner: str | None = None,
        lease_s: float = LEASE_S,
        now: Callable[[], datetime] = steady,
        observe: Callable[[Transition], None] = lambda _: None,
        notify: Callable[[Sequence[UUID]], None] = lambda _: None,
        limiter: ConcurrencyLimiter | None = None,
    ) -> None:
        self.store = store
        self.machines = machines
        self.identity = identity
        self.owner = owner or owner_name()
        self.lease_s = lease_s
        self._clock = Clock(now)
        self.observe = observe
        self.notify = notify
        self.limiter = limiter or ConcurrencyLimiter()
        self.asking = Asking(store, engine, identity, self.now, Refusals(limiter=self.limiter))
        self._heartbeat = Heartbeat(store, lease_s)

    def held(self) -> Collection[UUID]:
        """The jobs that this runner runs."""
        return self._heartbeat.held

    def now(self) -> datetime:
        """The database's time, as of the last claim."""
        return self._clock.now()

    async def run_slice(self, job_id: UUID | None = None, should_stop: Callable[[], bool] = never) -> Slice:
        """Claims a job, the one named or the next that is due, and runs it. Raises as ``run`` does."""
        claim = await self.store.claim(self.owner, self.lease_s, job_id, held=self.held())
        return Slice(SliceEnd.IDLE) if claim is None else await self.run(claim, should_stop)

    async def run(self, claim: Claim, should_stop: Callable[[], bool] = never) -> Slice:
        """Runs a claimed job as far as it goes now.

        ``should_stop`` is called at the start and after each stored answer, when no request and no tool is in
        flight. If it returns True the job is released, and the next worker judges the answer and continues.

        Raises ``UnreachableError`` when the database breaks, and ``BadDocumentError`` if this process lacks a tool of
        the job's workflow; the job is then released, or its lease expires.
        """
        self._clock.set(claim.claimed_at, asyncio.get_running_loop().time() - claim.read_at)
        with structlog.contextvars.bound_contextvars(job=str(claim.job.id), workflow=claim.workflow):
            try:
                if should_stop():
                    return await self._hand_back(claim)
                async with self._heartbeat.keep(claim) as lease:
                    machine = await self._machine(claim)
                    with self.limiter.permit() as permit:
                        return await _JobRun(self, claim, machine, lease, permit, should_stop).run()
            except LeaseLostError:
                log.warning("job lost", fence=claim.fence)
                return Slice(SliceEnd.LOST)
            except asyncio.CancelledError:
                await asyncio.shield(self._hand_back(claim))
                raise
            except UnreachableError:  # the database, which may be back already
                await self._hand_back(claim)
                raise
            except Exception:  # a bug, or a tool that this process lacks: another worker may do better, but not at once
                await self._hand_back(claim, self.now() + timedelta(seconds=HAND_BACK_S))
                raise

    async def _machine(self, claim: Claim) -> Machine | None:
        """None where this process lacks what the document names, and the job only has to end."""
        try:
            return await self.machines.get(claim.workflow, claim.version, claim.variant)
        except BadDocumentError:
            if claim.cancel_requested:
                return None
            raise

    async def _hand_back(self, claim: Claim, due_at: datetime | None = None) -> Slice:
        with contextlib.suppress(UnreachableError):  # then the lease runs out
            await self.store.release(claim, due_at)
        return Slice(SliceEnd.HANDED_BACK, claim.job)


@dataclass(slots=True)
class _JobRun:
    """One claimed job, with everything that running it needs."""

    runner: Runner
    claim: Claim
    machine: Machine | None
    lease: Lease
    permit: Permit
    should_stop: Callable[[], bool]

    def now(self) -> datetime:
        """The database's time, and never before the job was claimed: what was due then is due."""
        return max(self.runner.now(), self.claim.claimed_at)

    async def run(self) -> Slice:
        job = self.claim.job
        event: Event | None = await self._first_event()
        while event is not None:
            # Once cancellation is requested, the event is still recorded, as it was paid for, but nothing new starts.
            ending = self.lease.cancelling and not isinstance(event, Cancelled)
            transition = self._advance(job, event, hold=ending)
            if isinstance(transition.next, Ask) and not await self._has_permit(transition.job):
                continue  # time has passed
            if not isinstance(transition.next, Ask):
                self.permit.release()
            committed = await self._commit(transition, job, event, ending=ending)
            if committed is None:
                break
            job = committed.job
            self.runner.observe(committed)
            match committed.next:
                case Hold() if ending:
                    event = Cancelled()
                case Rest(until) if self._is_long(until):
                    return Slice(SliceEnd.RESTING, job)
                case Ask() | RunTool() | Resolve() | TendChildren() | Rest() as command:
                    event = await self._do(command, job)
                    if isinstance(event, Judged) and self.should_stop():
                        await self.runner.store.release(self.claim)
                        return Slice(SliceEnd.HANDED_BACK, job)
                case Await() | AwaitSettlement() | AwaitChildren():
                    log.info("job waits", signal=job.waiting_for, state=job.state)
                    return Slice(SliceEnd.WAITING, job)
                case Hold():
                    log.info("job paused", state=job.state)
                    return Slice(SliceEnd.PAUSED, job)
                case Finished():
                    log.info("job ended", status=job.status, failure=job.failure, tokens=job.tokens)
                    await self._notify_family(job)
                    return Slice(SliceEnd.FINISHED, job)
                case other:
                    assert_never(other)
        log.warning("job lost", fence=self.claim.fence)
        return Slice(SliceEnd.LOST)

    async def _first_event(self) -> Event:
        """What a claim finds: a stored answer without its verdict, an abandoned attempt, a signal, time."""
        claim, job, pending = self.claim, self.claim.job, self.claim.pending
        match job.open:
            case _ if self.machine is None:
                return Cancelled(claim.settled)
            case Turn() as turn if pending is not None:
                if pending.arrival is None:
                    return Judged(Verdict(Outcome.TRANSPORT, Cause.ABANDONED.value))
                asking = self.runner.asking
                return Judged(await asking.verdict(self.machine, job, turn, pending.attempt, pending.arrival))
            case ToolCall() if claim.settled is not None:
                return Cancelled(claim.settled) if claim.cancel_requested else claim.settled
            case _ if claim.cancel_requested:
                return Cancelled()
            case SignalWait() as wait:
                signal = next((signal for signal in claim.signals if signal.name == wait.signal), None)
                return Claimed() if signal is None else Signalled(signal)
            case _:
                return Claimed(claim.taken_over)

    def _advance(self, job: Job, event: Event, *, hold: bool) -> Transition:
        if isinstance(event, Cancelled):  # needs no machine
            return cancel(job, self.now(), event.settled)
        known = self.runner.identity
        return advance(
            self._known_machine,
            job,
            event,
            self.now(),
            max_model_len=known.max_model_len,
            lengths=known.lengths,
            hold=hold,
        )

    async def _has_permit(self, job: Job) -> bool:
        """Whether the engine takes the request now. Else waits for a permit or the deadline, with no attempt open."""
        left_s = job.left_s(self.now())
        is_late = left_s is not None and left_s <= 0  # then no request is sent
        if self.permit.try_acquire() or is_late or self.lease.cancelling:
            return True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(left_s):
                await self.lease.unless_cancelled(self.permit.acquire())
        return False

    async def _commit(self, transition: Transition, job: Job, event: Event, *, ending: bool) -> Transition | None:
        """What was written: the transition, or, of a paused job, one that begins nothing. None: the job is lost."""
        begins = isinstance(transition.next, Ask | RunTool | Resolve)
        if await self._write(transition, ending=ending, unless_paused=begins):
            return transition
        if not begins or not await self.runner.store.holds(self.claim):
            return None
        held = self._advance(job, event, hold=True)
        return held if await self._write(held, ending=False) else None

    async def _write(self, transition: Transition, *, ending: bool, unless_paused: bool = False) -> bool:
        claim, stamp, command = self.claim, None, transition.next
        if transition.opened is not None and isinstance(command, Ask):
            stamp = self.runner.asking.stamp(self._known_machine, transition.job, command.turn, transition.opened)
        if not isinstance(command, AwaitSettlement):
            claim = replace(claim, cancel_requested=False)  # not followed yet: the job is due once it is released
        if isinstance(command, Await) and self._has_early_signal(command.wait, transition):
            claim = replace(claim, known_signals=0)  # and so the job is due again at once
        keeps = (isinstance(command, Rest) and not self._is_long(command.until)) or (
            isinstance(command, Hold) and ending
        )
        sent = asyncio.get_running_loop().time()
        with self.lease.releasing():
            written = await self.runner.store.commit(
                claim, transition, stamp, release=not keeps, unless_paused=unless_paused
            )
        if written and (keeps or isinstance(command, Ask | RunTool | Resolve | TendChildren)):
            self.lease.update(LeaseStatus.HELD, sent + claim.lease_s)  # the commit renewed it
        elif written:
            self.lease.end()
        return written

    def _has_early_signal(self, wait: SignalWait, transition: Transition) -> bool:
        return any(signal.name == wait.signal and signal.id != transition.taken for signal in self.claim.signals)

    def _is_long(self, until: datetime) -> bool:
        return (until - self.now()).total_seconds() > SHORT_REST_S

    async def _do(self, command: Ask | RunTool | Resolve | TendChildren | Rest, job: Job) -> Event | None:
        """Carries out a command, with no database connection held meanwhile. None: the job is lost."""
        match command:
            case Ask():
                return await self.lease.unless_cancelled(self._ask(command, job))
            case RunTool(call) if call.effect is Effect.IRREVERSIBLE:  # its result must not be lost
                return await self._run_tool(call, job)
            case RunTool(call):
                return await self.lease.unless_cancelled(self._run_tool(call, job))
            case Resolve():
                return await children.resolve(self.runner.store, command)
            case TendChildren():
                runner = self.runner
                return await children.tend(runner.store, self.claim, job, command, self.now(), runner.notify)
            case Rest(until):
                return await self.lease.unless_cancelled(self._rest(until))

    async def _ask(self, command: Ask, job: Job) -> Judged | None:
        with structlog.contextvars.bound_contextvars(turn=command.turn.ordinal, attempt=command.attempt.ordinal):
            verdict = await self.runner.asking.ask(self.claim, self._known_machine, job, command, self.permit)
            return None if verdict is None else Judged(verdict)

    async def _run_tool(self, call: ToolCall, job: Job) -> Event:
        tool = self._known_machine.tool(call.state, call.tool)
        log.info("tool runs", state=call.state, tool=tool.name, effect=tool.effect)
        return await run_tool(tool, call, job.left_s(self.now()))

    async def _rest(self, until: datetime) -> Claimed:
        await asyncio.sleep(max(0.0, (until - self.now()).total_seconds()))
        return Claimed()

    async def _notify_family(self, job: Job) -> None:
        """The end of a job ends its children and wakes its parent. If the database breaks, the sweep does it."""
        with contextlib.suppress(UnreachableError):
            if any(isinstance(visit, ChildCall) for visit in job.visits):
                self.runner.notify(await cancel_children(self.runner.store, job.id))
        if self.claim.parent is not None:
            self.runner.notify([self.claim.parent])

    @property
    def _known_machine(self) -> Machine:
        if self.machine is None:
            raise TypeError("a job that only ends has no machine")
        return self.machine
