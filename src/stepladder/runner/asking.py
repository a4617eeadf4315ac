"""One attempt: its request is sent, the answer stored, and then judged."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import structlog

from stepladder.models.records import Stamp
from stepladder.runner.refusals import Refusals, Suspect
from stepladder.runner.rules import off_the_loop
from stepladder.schemas.errors import UnreachableError
from stepladder.workflows.judging import judged
from stepladder.workflows.request import body_of
from stepladder.workflows.retry import wants_fresh_connection

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from stepladder.engine.client import EngineClient, Exchange
    from stepladder.engine.identity import Identity
    from stepladder.engine.limiter import Permit
    from stepladder.models.records import Claim
    from stepladder.models.store import Store
    from stepladder.schemas.answer import Arrival, Verdict
    from stepladder.workflows.job import Attempt, Job, Turn
    from stepladder.workflows.machine import Machine
    from stepladder.workflows.transition import Ask

log = structlog.get_logger("stepladder.runner")

KEEP_S = 60.0
"""How long an answer is held in memory while the database cannot be reached. A restart takes seconds."""

RETRY_EVERY_S = 0.2


@dataclass(slots=True)
class Asking:
    """Sends attempts to one engine. It keeps what it learns about the engine's schemas, and nothing about jobs."""

    store: Store
    engine: EngineClient
    identity: Identity
    now: Callable[[], datetime]
    refusals: Refusals = field(default_factory=Refusals)
    _keeping: set[asyncio.Task[bool]] = field(default_factory=set, init=False)

    def stamp(self, machine: Machine, job: Job, turn: Turn, attempt: Attempt) -> Stamp:
        """What the attempt's row records of the request before it leaves."""
        identity = self.identity
        return Stamp(request_id(job, attempt), self._model(machine, turn), identity.version, identity.backend)

    async def ask(self, claim: Claim, machine: Machine, job: Job, action: Ask, permit: Permit) -> Verdict | None:
        """Sends the request once, and judges the answer. None: the job is lost or paused.

        ``permit`` is held, unless no time is left and nothing is sent. It is released after the request.
        """
        turn, attempt = action.turn, action.attempt
        async with permit.in_flight():
            exchange = await self.engine.ask(
                body_of(machine.ask(turn.state), self._model(machine, turn), job.transcript, turn, attempt),
                request_id=request_id(job, attempt),
                timeout_s=job.left_s(self.now()),
                fresh=wants_fresh_connection(turn.attempts),
            )
        if not await self._keep(claim, attempt, exchange):
            return None
        verdict = await self.verdict(machine, job, turn, attempt, exchange.arrival)
        log.info(
            "attempt judged",
            state=turn.state,
            outcome=verdict.outcome,
            cause=verdict.cause,
            duration_ms=round(exchange.timing.duration_ms),
            ttft_ms=None if exchange.timing.ttft_ms is None else round(exchange.timing.ttft_ms),
        )
        return verdict

    async def _keep(self, claim: Claim, attempt: Attempt, exchange: Exchange) -> bool:
        """Stores the answer, even if the caller is cancelled, and retries while the database cannot be reached: it was
        paid for, and its fence is valid as long as no other worker has the job.
        """
        keeping = asyncio.ensure_future(self._store(claim, attempt, exchange))
        self._keeping.add(keeping)
        keeping.add_done_callback(self._kept)
        return await asyncio.shield(keeping)

    async def _store(self, claim: Claim, attempt: Attempt, exchange: Exchange) -> bool:
        timing, clock, again = exchange.timing, asyncio.get_running_loop().time, False
        until = clock() + KEEP_S
        while True:
            try:
                written = await self.store.arrived(
                    claim, attempt, exchange.arrival, ttft_ms=timing.ttft_ms, duration_ms=timing.duration_ms
                )
                # An earlier try may have written it before it broke; then this one finds nothing to write.
                return written or (again and await self.store.holds(claim))
            except UnreachableError:
                if clock() >= until:
                    raise
                again = True
            await asyncio.sleep(RETRY_EVERY_S)

    def _kept(self, keeping: asyncio.Task[bool]) -> None:
        self._keeping.discard(keeping)
        if not keeping.cancelled() and keeping.exception() is not None:
            log.warning("answer not stored", reason=str(keeping.exception()))

    async def verdict(self, machine: Machine, job: Job, turn: Turn, attempt: Attempt, arrival: Arrival) -> Verdict:
        """The verdict on an attempt's stored answer, which may take another request: see ``Refusals``.

        A worker that takes the job over before the verdict is written sends that request again.
        """
        state, known_bad = machine.ask(turn.state), False
        if state.strict:
            model, sent_as = self._model(machine, turn), request_id(job, attempt)
            suspect = Suspect(model, state.schema.hash, attempt.sampling, sent_as, job.left_s(self.now()))
            known_bad = await self.refusals.is_known_bad(self.engine, arrival, suspect)
        judge = partial(judged, machine, job, turn, attempt, arrival, schema_known_bad=known_bad)
        return await off_the_loop(judge) if any(rule.call for rule in state.rules) else judge()

    def _model(self, machine: Machine, turn: Turn) -> str:
        return machine.ask(turn.state).model or self.identity.model


def request_id(job: Job, attempt: Attempt) -> str:
    """The ``X-Request-Id`` of an attempt, by which it is found in the engine's own log."""
    return f"stepladder-{job.id}-{attempt.turn}-{attempt.ordinal}"
