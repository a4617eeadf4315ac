"""What the machine answers: the job as it is now, what must be written, and what to do next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from stepladder.schemas.answer import Verdict
    from stepladder.schemas.event import Event
    from stepladder.schemas.jsontypes import Json
    from stepladder.workflows.job import Attempt, Job, Message, Signal, ToolCall, ToolError, Turn, Visit, Wait


# What can happen to a job ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Claimed:
    """A worker took the job up: for the first time, because it fell due, or after another worker lost it."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The open attempt's answer was judged."""

    verdict: Verdict


@dataclass(frozen=True, slots=True)
class ToolReturned:
    """The open tool call came back with a result."""

    result: Json


@dataclass(frozen=True, slots=True)
class ToolFailed:
    """The open tool call came back with an error."""

    error: ToolError


@dataclass(frozen=True, slots=True)
class Signalled:
    """A signal for the open wait is there."""

    signal: Signal


@dataclass(frozen=True, slots=True)
class Settled:
    """A person says whether the open irreversible call took effect; ``result`` counts if it did."""

    done: bool
    result: Json = None


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Somebody asked for the job to end."""


Trigger: TypeAlias = Claimed | Judged | ToolReturned | ToolFailed | Signalled | Settled | Cancelled


# What the machine wants done ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ask:
    """Send the request of ``attempt`` (in ``turn``) to the engine, judge the answer, come back with ``Judged``."""

    turn: Turn
    attempt: Attempt


@dataclass(frozen=True, slots=True)
class RunTool:
    """Run the tool, come back with ``ToolReturned`` or ``ToolFailed``."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class Rest:
    """Nothing to do before ``until``; then come back with ``Claimed``."""

    until: datetime


@dataclass(frozen=True, slots=True)
class Await:
    """Wait for a signal; come back with ``Signalled``, or with ``Claimed`` once ``wait.until`` has passed."""

    wait: Wait


@dataclass(frozen=True, slots=True)
class AwaitSettlement:
    """Wait for a person; come back with ``Settled``."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class Finished:
    """The job reached its end."""


Action: TypeAlias = Ask | RunTool | Rest | Await | AwaitSettlement | Finished


@dataclass(frozen=True, slots=True)
class Step:
    """One move of the machine. All of it is written in one transaction before ``next`` is begun.

    ``visits`` are those opened or closed by the move, ``judged`` the attempts that got their verdict, ``opened`` the
    attempt whose request leaves next, ``messages`` the new lines of the transcript, ``taken`` the signal used up.
    """

    job: Job
    next: Action
    events: tuple[Event, ...] = ()
    visits: tuple[Visit, ...] = ()
    judged: tuple[Attempt, ...] = ()
    opened: Attempt | None = None
    messages: tuple[Message, ...] = ()
    taken: UUID | None = None
