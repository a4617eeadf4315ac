"""A transition as it is built: the job as it changes, and what must be written for it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stepladder.schemas.event import EventKind, HistoryEvent
from stepladder.schemas.job import Failure, JobStatus
from stepladder.workflows.job import JobFailure, Message
from stepladder.workflows.machine import AskState, ToolState
from stepladder.workflows.retry import RetryLimits
from stepladder.workflows.transition import Finished, Transition
from stepladder.workflows.visits import ListRun

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from uuid import UUID

    from stepladder.schemas.jsontypes import JsonObject
    from stepladder.workflows.events import Event
    from stepladder.workflows.job import Attempt, Job
    from stepladder.workflows.machine import ChildState, Machine
    from stepladder.workflows.transition import Command
    from stepladder.workflows.visits import Visit


class IllegalEventError(Exception):
    """An event that the job's state does not take: a bug in the caller. Nothing has happened."""

    def __init__(self, job: Job, event: Event) -> None:
        super().__init__(f"job {job.id} is {job.status} in state {job.state} and takes no {type(event).__name__}")


class TransitionBuilder:
    """Builds one transition. It lives for one call of ``advance``, and only the transition leaves it."""

    def __init__(
        self,
        machine: Machine | None,
        job: Job,
        now: datetime,
        max_model_len: int | None = None,
        lengths: Mapping[str, int] | None = None,
        *,
        hold: bool = False,
    ) -> None:
        self._machine = machine
        self.job = job
        self.now = now
        self.max_model_len = max_model_len
        self.lengths = lengths or {}
        self.hold = hold
        self.opened: Attempt | None = None
        self.taken: UUID | None = None
        self.edge: tuple[str | None, str] | None = None
        self._events: list[HistoryEvent] = []
        self._visits: dict[int, Visit] = {}
        self._judged: list[Attempt] = []
        self._messages: list[Message] = []

    @property
    def machine(self) -> Machine:
        if self._machine is None:
            raise TypeError("a job that only ends has no machine")
        return self._machine

    def change(self, **fields: Any) -> None:
        """Changes fields of the job."""
        self.job = replace(self.job, **fields)

    def note(
        self, kind: EventKind, data: JsonObject | None = None, *, turn: int | None = None, attempt: int | None = None
    ) -> None:
        """Adds a line to the history."""
        ordinal = self.job.event_count + 1
        self._events.append(HistoryEvent(ordinal, kind, turn, attempt, data or {}))
        self.change(event_count=ordinal)

    def put(self, visit: Visit) -> None:
        """Opens a visit, or puts a newer form of the last one in its place."""
        before = (
            self.job.visits[:-1] if self.job.visits and self.job.visits[-1].visit == visit.visit else self.job.visits
        )
        self.change(visits=(*before, visit))
        self._visits[visit.visit] = visit

    def judged(self, attempt: Attempt) -> None:
        """An attempt got its verdict."""
        self._judged.append(attempt)

    def say(self, turn: int, role: str, content: str) -> None:
        """Adds a line to the transcript."""
        message = Message(len(self.job.transcript) + 1, turn, role, content)
        self.change(transcript=(*self.job.transcript, message))
        self._messages.append(message)

    def limits(self, state: AskState) -> RetryLimits:
        """What binds a turn in ``state`` now."""
        job = self.job
        most = self.max_model_len if state.model is None else self.lengths.get(state.model)
        return RetryLimits(state.attempts, state.transport, job.token_budget, job.deadline_at, most)

    def next_visit(self) -> int:
        return len(self.job.visits) + 1

    def visits_of(self, state: str) -> int:
        return sum(visit.state == state for visit in self.job.visits)

    def late(self) -> JobFailure | None:
        """The job's deadline, if it has passed."""
        deadline = self.job.deadline_at
        if deadline is None or self.now < deadline:
            return None
        passed = f"the deadline, {deadline.isoformat(timespec='seconds')}, has passed"
        return JobFailure(Failure.DEADLINE, f"state {self.job.state}: {passed}")

    def after_waiting(self, visit: Visit) -> datetime | None:
        """The deadline as it is after a visit that was spent waiting: it stood still meanwhile."""
        deadline = self.job.deadline_at
        return None if deadline is None else deadline + (self.now - visit.opened_at)

    def follow(self, word: str, target: str) -> str:
        """Takes an edge. ``edge`` is the last one that was taken: from where, and by which word."""
        self.edge = (self.job.state, word)
        self.note(EventKind.TRANSITION, {"from": self.job.state, "action": word, "to": target})
        return target

    def route(self, failure: JobFailure) -> str | None:
        """The current state's target for a failure, or None."""
        state = None if self.job.state is None else self.machine.states[self.job.state]
        if isinstance(state, AskState) and failure.kind in state.on_failure:
            return self.follow(failure.kind.value, state.on_failure[failure.kind])
        return None

    def fail(self, failure: JobFailure) -> Finished:
        """Ends the job as failed."""
        data = {"failure": failure.kind.value, "detail": failure.detail, "state": self.job.state}
        self.note(EventKind.JOB_FAILED, data)
        return self.finish(JobStatus.FAILED, failure=failure.kind, failure_detail=failure.detail)

    def finish(self, status: JobStatus, **fields: Any) -> Finished:
        self.change(status=status, due_at=None, waiting_for=None, **fields)
        return Finished()

    def is_exhausted(self, state: AskState | ToolState | ChildState) -> bool:
        """Whether a state has had all its visits. All the turns of one list are one visit."""
        if state.max_visits is None:
            return False
        if isinstance(state, AskState) and state.each is not None:
            runs = sum(isinstance(visit, ListRun) and visit.state == state.name for visit in self.job.visits)
            return runs >= state.max_visits
        return self.visits_of(state.name) >= state.max_visits

    def transition(self, command: Command) -> Transition:
        return Transition(
            job=self.job,
            next=command,
            events=tuple(self._events),
            visits=tuple(self._visits.values()),
            judged=tuple(self._judged),
            opened=self.opened,
            messages=tuple(self._messages),
            taken=self.taken,
        )
