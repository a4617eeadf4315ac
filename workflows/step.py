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
    from stepladder.workflows.job import (
        Attempt,
        Child,
        ChildCall,
        ChildFailure,
        Job,
        Message,
        Signal,
        ToolCall,
        ToolError,
        Turn,
        Visit,
        Wait,
    )


# What can happen to a job ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Claimed:
    """A worker took the job up: for the first time, because it fell due, or after another worker lost it.

    ``taken_over`` says that the worker before was never heard of again, and did not hand the job back.
    """

    taken_over: bool = False


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
class ToolUnknown:
    """The open irreversible call did not come back, or cannot tell: it may have taken effect. ``error`` says why."""

    error: ToolError


@dataclass(frozen=True, slots=True)
class Signalled:
    """A signal for the open wait is there."""

    signal: Signal


@dataclass(frozen=True, slots=True)
class Settled:
    """A person, ``by``, says whether the open irreversible call took effect; ``result`` counts if it did."""

    done: bool
    result: Json = None
    by: str = ""


@dataclass(frozen=True, slots=True)
class Resolved:
    """The workflow of the open child call is there, in this version; ``refused`` are the inputs that do not fit it."""

    version: int
    refused: tuple[ChildFailure, ...] = ()


@dataclass(frozen=True, slots=True)
class Unresolved:
    """There is no such workflow for the open child call."""

    error: ToolError


@dataclass(frozen=True, slots=True)
class ChildrenSeen:
    """The children of the open call as they stand now, by index; those that were not started are missing."""

    children: tuple[Child, ...]


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Somebody asked for the job to end. ``settled`` is what a person said meanwhile of the open call."""

    settled: Settled | None = None


Trigger: TypeAlias = (
    Claimed
    | Judged
    | ToolReturned
    | ToolFailed
    | ToolUnknown
    | Signalled
    | Settled
    | Resolved
    | Unresolved
    | ChildrenSeen
    | Cancelled
)


# What the machine wants done ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ask:
    """Send the request of ``attempt`` (in ``turn``) to the engine, judge the answer, come back with ``Judged``."""

    turn: Turn
    attempt: Attempt


@dataclass(frozen=True, slots=True)
class RunTool:
    """Run the tool, come back with ``ToolReturned`` or ``ToolFailed``; with ``ToolUnknown`` if it is irreversible."""

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
class Resolve:
    """Find the workflow of ``call``, check the inputs, and come back with ``Resolved`` or ``Unresolved``.

    ``version`` is the one that the document names; None is the newest that is not retired.
    """

    call: ChildCall
    version: int | None


@dataclass(frozen=True, slots=True)
class TendChildren:
    """Start the children of the indices in ``start``, but none that is there already; or ask all that have not ended to
    end, if ``stop``. Then look after them, and come back with ``ChildrenSeen``."""

    call: ChildCall
    start: tuple[int, ...] = ()
    stop: bool = False


@dataclass(frozen=True, slots=True)
class AwaitChildren:
    """Wait until a child ends; come back with ``ChildrenSeen``."""

    call: ChildCall


@dataclass(frozen=True, slots=True)
class Hold:
    """Somebody paused the job: nothing is begun. Let go of it, and come back with ``Claimed`` when it may go on."""


@dataclass(frozen=True, slots=True)
class Finished:
    """The job reached its end."""


Action: TypeAlias = (
    Ask | RunTool | Rest | Await | AwaitSettlement | Resolve | TendChildren | AwaitChildren | Hold | Finished
)


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
