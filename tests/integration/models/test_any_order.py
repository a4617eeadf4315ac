"""Machine and store together, by any order of claims, steps, crashes, signals, pauses and cancellations.

Beside them stands a model in plain Python of what must hold: who has a job in hand, by which fence, and what the
machine remembers of it. At the end everything is healed, and every job has to come to its end.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from psycopg.rows import dict_row

from stepladder.models.database import Database
from stepladder.models.ids import uuid7
from stepladder.models.records import LeaseStatus, NewJob, Receipt, Settling, Stamp
from stepladder.models.store import Store
from stepladder.schemas.answer import Received
from stepladder.schemas.tool import Effect
from stepladder.workflows.advance import advance
from stepladder.workflows.events import Cancelled, Claimed, Judged, Settled, ToolFailed, ToolReturned, ToolUnknown
from stepladder.workflows.job import Job
from stepladder.workflows.transition import Ask, Await, AwaitSettlement, Rest, RunTool
from stepladder.workflows.visits import SignalWait, ToolCall, ToolError
from support.held import MACHINES, Held, Known, as_loaded, first_event, verdict_on
from support.leases import heartbeat

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import TypeVar
    from uuid import UUID

    from stepladder.models.records import Claim
    from stepladder.workflows.events import Event
    from stepladder.workflows.machine import Machine
    from stepladder.workflows.transition import Transition

    T = TypeVar("T")

pytestmark = pytest.mark.long

WORKERS = ("ada", "kim")
WHICH = st.integers(0, 1)
WORDS = st.sampled_from(["right", "wrong", "lost"])
MOST_STEPS = 60
WHOLE = """
SELECT jobs.*,
    (SELECT array_agg(ordinal ORDER BY ordinal) FROM events WHERE job_id = jobs.id) AS ordinals,
    (SELECT COALESCE(sum(prompt_tokens + completion_tokens), 0) FROM attempts WHERE job_id = jobs.id) AS spent,
    (SELECT count(*) - count(DISTINCT turn) FROM attempts WHERE job_id = jobs.id AND outcome = 'valid') AS doubled
FROM jobs WHERE id = ANY(%s)
"""
UNKNOWN = ToolError("unknown", "the line broke")


BOUNDED = settings(
    max_examples=60,
    stateful_step_count=40,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # to shrink an example takes minutes
)


class AnyOrder(RuleBasedStateMachine):
    """One database, and one loop, serve all examples: their jobs are their own."""

    loop: asyncio.Runner
    store: Store
    connection: psycopg.Connection[dict[str, Any]]

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[UUID, Known] = {}
        self.hands: dict[str, dict[UUID, Held]] = {worker: {} for worker in WORKERS}
        self.ghosts: list[Held] = []
        self.later = timedelta()

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run(work)

    def rows(self, statement: str, *parameters: object) -> list[dict[str, Any]]:
        cursor = self.connection.execute(statement.encode(), parameters)
        return cursor.fetchall() if cursor.description else []

    def row(self, job: UUID) -> dict[str, Any]:
        [row] = self.rows("SELECT * FROM jobs WHERE id = %s", job)
        return row

    def now(self) -> datetime:
        return datetime.now(UTC) + self.later

    # Jobs and workers -----------------------------------------------------------------------------------------------

    @initialize()
    def begin(self) -> None:
        for machine in MACHINES:
            self.submit(machine)

    @rule(machine=st.sampled_from(MACHINES))
    def submit_another(self, machine: Machine) -> None:
        if all(known.job.status.final for known in self.known.values()):
            self.submit(machine)

    def submit(self, machine: Machine) -> None:
        job_id = uuid7()
        job = Job(job_id, job_id, {}, datetime.now(UTC), event_count=1)
        self.do(self.store.submit_many([NewJob(job, "small", 1)]))
        self.known[job_id] = Known(machine, job)

    @rule(worker=st.sampled_from(WORKERS), which=WHICH, twice=st.booleans())
    def notify(self, worker: str, which: int, twice: bool) -> None:
        """Several workers may be told of a job at once; at most one claims it."""
        job = self.pick(which)
        workers = WORKERS if twice else (worker,)

        async def at_once() -> list[Claim | None]:
            return await asyncio.gather(*(self.store.claim(one, 60.0, job) for one in workers))

        before = self.row(job)
        claims = [claim for claim in self.do(at_once()) if claim is not None]
        known = self.known[job]
        free = before["lease_until"] is None or before["lease_until"] <= datetime.now(UTC)
        may = free and not known.paused and not known.job.status.final
        due = before["wake_at"] is not None and before["wake_at"] <= datetime.now(UTC)
        assert len(claims) == (1 if may and due else 0)
        for claim in claims:
            self.took(claim)

    def took(self, claim: Claim) -> None:
        known = self.known[claim.job.id]
        assert claim.fence > known.fence
        known.lost = known.lost or known.holder is not None
        assert claim.taken_over == known.lost
        assert claim.cancel_requested == known.cancelled
        assert replace(claim.job, event_count=0) == replace(as_loaded(known.job), event_count=0)
        self.let_go(claim.job.id)
        known.fence, known.holder = claim.fence, claim.owner
        hand = Held(claim, claim.job, Rest(self.now()))
        self.hands[claim.owner][claim.job.id] = hand
        self.step(hand, first_event(claim))

    def let_go(self, job: UUID) -> None:
        """Whoever believes to have it is a ghost from now on."""
        for hands in self.hands.values():
            if job in hands:
                self.ghosts.append(hands.pop(job))
        self.known[job].holder = None

    def step(self, hand: Held, event: Event) -> None:
        """One step of the machine, and its commit, as the runner does it. The store takes it if the fence is right."""
        job, known = hand.job.id, self.known[hand.job.id]
        held = known.fence == hand.claim.fence
        step = advance(known.machine, hand.job, event, self.now())
        begins = isinstance(step.next, Ask | RunTool) and not isinstance(event, Judged)
        if not self.commit(hand, step, unless_paused=begins):
            assert not held or (begins and known.paused)
            assert self.do(self.store.holds(hand.claim)) == held
            if not held:
                return
            step = advance(known.machine, hand.job, event, self.now(), hold=True)
            assert self.commit(hand, step)
        assert held
        known.job = hand.job = step.job
        known.lost = False
        hand.next, hand.arrived = step.next, False
        stays = isinstance(step.next, Ask | RunTool | Rest)
        assert (self.row(job)["lease_owner"] is not None) == stays
        if not stays:
            self.hands[hand.claim.owner].pop(job, None)
            known.holder = None
            known.fence = self.row(job)["fence"]
            assert known.fence == hand.claim.fence + 1
        elif hand.claim.cancel_requested and isinstance(step.next, Ask | RunTool):
            self.step(hand, Cancelled())

    def commit(self, hand: Held, step: Transition, *, unless_paused: bool = False) -> bool:
        claim, stamp = hand.claim, None
        if step.opened is not None:
            stamp = Stamp(f"{hand.job.id}-{step.opened.turn}-{step.opened.ordinal}")
        if not isinstance(step.next, AwaitSettlement):
            claim = replace(claim, cancel_requested=False)
        if isinstance(step.next, Await):
            signal = step.next.wait.signal
            if any(one.name == signal and one.id != step.taken for one in claim.signals):
                claim = replace(claim, known_signals=0)
        return self.do(self.store.commit(claim, step, stamp, release=False, unless_paused=unless_paused))

    # What a worker does with a job in hand --------------------------------------------------------------------------

    @rule(which=WHICH, word=WORDS, worker=st.sampled_from(WORKERS), also_judge=st.booleans())
    def go_on(self, which: int, word: str, worker: str, also_judge: bool) -> None:
        """A job goes on by as much as it can: this comes more often than all that hurts it."""
        job = self.pick(which)
        hand = self.hand_of(job)
        if hand is not None:
            self.work_on(hand, word, also_judge=also_judge)
        else:
            self.notify(worker, which, twice=False)

    @rule(which=WHICH, word=WORDS)
    def go_on_well(self, which: int, word: str) -> None:
        self.go_on(which, word, WORKERS[0], also_judge=True)

    @rule(which=WHICH)
    def go_on_best(self, which: int) -> None:
        self.go_on(which, "right", WORKERS[1], also_judge=True)

    @rule(which=WHICH, what=st.sampled_from(["signal", "cancel", "pause"]))
    def meanwhile(self, which: int, what: str) -> None:
        """Something comes from outside while a worker has the job, and then the worker comes to the end of its step."""
        self.notify(WORKERS[0], which, twice=False)
        hand = self.hand_of(self.pick(which))
        if hand is None:
            return
        match what:
            case "signal":
                self.signal(which, "news" if self.known[hand.job.id].machine is MACHINES[1] else "go", again=False)
            case "cancel":
                self.cancel(which)
            case _:
                self.pause(which, off=False)
        self.work_on(hand, "right")

    def work_on(self, hand: Held, word: str, *, also_judge: bool = True) -> None:
        known = self.known[hand.job.id]
        match hand.next:
            case Ask(_, attempt):
                came = Received(200, word.encode())
                if hand.arrived:
                    assert not self.do(self.store.arrived(hand.claim, attempt, came, ttft_ms=None, duration_ms=1.0))
                else:
                    kept = self.do(self.store.arrived(hand.claim, attempt, came, ttft_ms=None, duration_ms=1.0))
                    hand.arrived = True
                    assert kept != known.paused
                    if known.paused:
                        self.hands[hand.claim.owner].pop(hand.job.id)
                        known.holder, known.fence = None, self.row(hand.job.id)["fence"]
                        assert known.fence == hand.claim.fence + 1
                        return
                if also_judge:
                    self.step(hand, Judged(verdict_on(Received(200, word.encode()))))
            case RunTool(call):
                if call.effect is Effect.IRREVERSIBLE:
                    known.paid[call.key] += 1
                    assert known.paid[call.key] == 1, "it ran twice"
                event: Event = ToolReturned({"word": word})
                if word == "wrong":
                    event = ToolFailed(ToolError("KeyError", "not there"))
                elif word == "lost" and call.effect is Effect.IRREVERSIBLE:
                    event = ToolUnknown(UNKNOWN)
                self.step(hand, event)
            case Rest(until):
                self.later = max(self.later, until - datetime.now(UTC))
                self.step(hand, Claimed())
            case other:
                raise AssertionError(other)

    @rule(which=WHICH)
    def hand_back(self, which: int) -> None:
        hand = self.hand_of(self.pick(which))
        if hand is None:
            return
        known = self.known[hand.job.id]
        assert self.do(self.store.release(hand.claim))
        self.let_go(hand.job.id)
        known.fence = hand.claim.fence + 1

    @rule(which=WHICH)
    def heartbeat(self, which: int) -> None:
        hand = self.hand_of(self.pick(which))
        if hand is None:
            return
        expected = LeaseStatus.CANCELLING if self.known[hand.job.id].cancelled else LeaseStatus.HELD
        assert heartbeat(self.store, hand.claim) is expected

    @rule(which=WHICH, forgets=st.booleans())
    def lapse(self, which: int, forgets: bool) -> None:
        """A lease runs out, because its worker is dead and forgets, or because it does not know yet."""
        hand = self.hand_of(self.pick(which))
        if hand is None:
            return
        self.rows("UPDATE jobs SET lease_until = now() - interval '1 s' WHERE id = %s", hand.job.id)
        if forgets:
            self.hands[hand.claim.owner].pop(hand.job.id)

    @rule(which=st.integers(0, 20))
    def haunt(self, which: int) -> None:
        """Who lost a job can write nothing to it."""
        if not self.ghosts:
            return
        ghost = self.ghosts[which % len(self.ghosts)]
        before = self.dump(ghost.job.id)
        assert heartbeat(self.store, ghost.claim) is LeaseStatus.LOST
        assert not self.do(self.store.release(ghost.claim))
        step = advance(self.known[ghost.job.id].machine, ghost.job, Cancelled(Settled(done=True)), self.now())
        assert not self.commit(ghost, step)
        if isinstance(ghost.next, Ask):
            came, attempt = Received(200, b"too late"), ghost.next.attempt
            assert not self.do(self.store.arrived(ghost.claim, attempt, came, ttft_ms=None, duration_ms=1.0))
        assert self.dump(ghost.job.id) == before

    # From outside ---------------------------------------------------------------------------------------------------

    @rule(which=WHICH, name=st.sampled_from(["go", "news"]), again=st.booleans())
    def signal(self, which: int, name: str, again: bool) -> None:
        job = self.pick(which)
        known = self.known[job]
        signal_id = min(known.signals) if again and known.signals else uuid7()
        receipt = self.do(self.store.signal(job, signal_id, name, self.payload(job, name)))
        if signal_id in known.signals:
            assert receipt is Receipt.DUPLICATE
        elif known.job.status.final:
            assert receipt is Receipt.FINAL
        else:
            assert receipt is Receipt.ACCEPTED
            known.signals.add(signal_id)

    def payload(self, job: UUID, name: str) -> Any:
        wait = self.known[job].job.open
        if name == "news":
            return {"action": "told"}
        return {"action": "go"} | ({"wait_id": str(wait.wait_id)} if isinstance(wait, SignalWait) else {})

    @rule(which=WHICH)
    def cancel(self, which: int) -> None:
        job = self.pick(which)
        known = self.known[job]
        receipt = self.do(self.store.request_cancel(job))
        assert receipt is (Receipt.FINAL if known.job.status.final else Receipt.ACCEPTED)
        if receipt is Receipt.ACCEPTED:
            known.cancelled, known.paused = True, False

    @rule(which=WHICH, off=st.sampled_from([True, True, False]))
    def pause(self, which: int, off: bool) -> None:
        self.pause_or_not(self.pick(which), off=off)

    def pause_or_not(self, job: UUID, *, off: bool) -> None:
        known = self.known[job]
        change = self.store.unpause if off else self.store.pause
        receipt = self.do(change(job, "kim"))
        if known.job.status.final or (known.cancelled and not off):
            assert receipt is Receipt.FINAL
        elif receipt is Receipt.ACCEPTED:
            assert known.paused == off
            known.paused = not off
            known.job = replace(known.job, deadline_at=self.row(job)["deadline_at"])

    @rule(done=st.booleans())
    def settle(self, done: bool) -> None:
        for job in [job for job, known in self.known.items() if known.job.waiting_for == "settlement"]:
            self.settle_one(job, done=done)

    def settle_one(self, job: UUID, *, done: bool) -> None:
        call = self.known[job].job.open
        assert isinstance(call, ToolCall)
        before = self.rows("SELECT done FROM settlements WHERE job_id = %s", job)
        settling = self.do(self.store.settle(job, call.key, Settled(done, None, "kim")))
        if not before:
            assert settling is Settling.ACCEPTED
        else:
            assert settling is (Settling.DUPLICATE if before[0]["done"] is done else Settling.CONTRADICTED)

    @rule()
    def time_passes(self) -> None:
        """Rests and waits fall due."""
        self.later += timedelta(seconds=700)
        self.rows("UPDATE jobs SET wake_at = LEAST(wake_at, now()) WHERE wake_at IS NOT NULL")

    # What holds at any time -----------------------------------------------------------------------------------------

    @invariant()
    def every_history_is_whole(self) -> None:
        for row in self.rows(WHOLE, list(self.known)):
            known = self.known[row["id"]]
            assert row["ordinals"] == list(range(1, row["event_count"] + 1))
            assert row["status"] == known.job.status
            assert row["fence"] == known.fence
            assert (row["finished_at"] is not None) == known.job.status.final
            assert (row["lease_owner"] is not None) == (known.holder is not None)
            assert row["tokens"] == row["spent"]
            assert row["doubled"] == 0

    @invariant()
    def no_wake_up_is_lost(self) -> None:
        """A job that lies idle while there is something to do for it is due."""
        for job, known in self.known.items():
            if known.holder is not None or known.paused or known.job.status.final:
                continue
            visit, due = known.job.open, "SELECT wake_at <= now() AS due FROM jobs WHERE id = %s"
            if known.job.waiting_for == "settlement":
                wanted = bool(self.rows("SELECT done FROM settlements WHERE job_id = %s", job))
            elif isinstance(visit, SignalWait) and not visit.frozen and not known.cancelled:
                untaken = "SELECT id FROM signals WHERE job_id = %s AND name = %s AND taken_at IS NULL"
                wanted = bool(self.rows(untaken, job, visit.signal))
            else:
                wanted = known.cancelled
            assert not wanted or self.rows(due, job)[0]["due"], f"nobody will look at {known.job}"

    def teardown(self) -> None:
        for job in self.known:
            self.bring_to_its_end(job)

    def bring_to_its_end(self, job: UUID) -> None:
        known = self.known[job]
        for _ in range(MOST_STEPS):
            if known.job.status.final:
                assert self.do(self.store.claim("late", 60.0, job)) is None
                return
            if known.paused:
                self.pause_or_not(job, off=True)
            hand = self.hand_of(job)
            if hand is not None:
                self.work_on(hand, "right")
                continue
            if known.job.waiting_for == "settlement":
                if not self.rows("SELECT done FROM settlements WHERE job_id = %s", job):
                    self.settle_one(job, done=True)
            elif isinstance(known.job.open, SignalWait):
                name = known.job.open.signal
                self.do(self.store.signal(job, uuid7(), name, self.payload(job, name)))
            self.rows("UPDATE jobs SET lease_until = now() WHERE id = %s AND lease_until IS NOT NULL", job)
            if known.job.due_at is not None:
                self.rows("UPDATE jobs SET wake_at = LEAST(wake_at, now()) WHERE id = %s AND wake_at IS NOT NULL", job)
                self.later = max(self.later, known.job.due_at - datetime.now(UTC))
            claim = self.do(self.store.claim("last", 60.0, job))
            assert claim is not None, f"nobody can take it any more: {self.row(job)}"
            self.hands.setdefault("last", {})
            self.took(claim)
        raise AssertionError(f"it never ends: {known.job}")

    # Helpers --------------------------------------------------------------------------------------------------------

    def pick(self, which: int) -> UUID:
        return list(self.known)[-2:][which]

    def hand_of(self, job: UUID) -> Held | None:
        return next((hands[job] for hands in self.hands.values() if job in hands), None)

    def dump(self, job: UUID) -> list[str]:
        tables = ("messages", "turns", "attempts", "visits", "signals", "events", "settlements")
        of_job = [f"SELECT * FROM {table} WHERE job_id = %s" for table in tables]  # noqa: S608 -- names of ours
        return sorted(repr(row) for one in ["SELECT * FROM jobs WHERE id = %s", *of_job] for row in self.rows(one, job))


def test_in_any_order_every_job_has_one_worker_and_comes_to_its_end(database_url: str) -> None:
    with (
        asyncio.Runner() as runner,
        psycopg.connect(database_url, autocommit=True, row_factory=dict_row) as own,
    ):
        database = Database(database_url, size=3)
        runner.run(database.open())
        runner.run(Store(database).publish("small", 1, "hash", {}))

        class Here(AnyOrder):
            loop, store, connection = runner, Store(database), own

        try:
            run_state_machine_as_test(Here, settings=BOUNDED)
        finally:
            runner.run(database.close())
