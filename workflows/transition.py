"""The machine's output: the job as it is now, what must be written, and the command to run next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from stepladder.schemas.event import HistoryEvent
    from stepladder.workflows.job import Attempt, Job, Message, Turn
    from stepladder.workflows.visits import ChildCall, SignalWait, ToolCall, Visit


@dataclass(frozen=True, slots=True)
class Ask:
    """Send the request of ``attempt`` (in ``turn``) to the engine, judge the answer, answer with ``Judged``."""

    turn: Turn
    attempt: Attempt


@dataclass(frozen=True, slots=True)
class RunTool:
    """Run the tool, answer with ``ToolReturned`` or ``ToolFailed``; with ``ToolUnknown`` if it is irreversible."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class Rest:
    """Nothing to do before ``until``; then answer with ``Claimed``."""

    until: datetime


@dataclass(frozen=True, slots=True)
class Await:
    """Wait for a signal; answer with ``Signalled``, or with ``Claimed`` once ``wait.until`` has passed."""

    wait: SignalWait


@dataclass(frozen=True, slots=True)
class AwaitSettlement:
    """Wait for a person; answer with ``Settled``."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class Resolve:
    """Find the workflow of ``call``, check the inputs, and answer with ``Resolved`` or ``Unresolved``.

    ``version`` is the one that the document names; None is the newest that is not retired.
    """

    call: ChildCall
    version: int | None


@dataclass(frozen=True, slots=True)
class TendChildren:
    """Start the children of the indices in ``start``, but none that is there already; or ask all that have not ended to
    end, if ``stop``. Then read their state, and answer with ``ChildrenSeen``."""

    call: ChildCall
    start: tuple[int, ...] = ()
    stop: bool = False


@dataclass(frozen=True, slots=True)
class AwaitChildren:
    """Wait until a child ends; answer with ``ChildrenSeen``."""

    call: ChildCall


@dataclass(frozen=True, slots=True)
class Hold:
    """The job is paused: nothing is started. Release it, and send ``Claimed`` when it may continue."""


@dataclass(frozen=True, slots=True)
class Finished:
    """The job reached its end."""


Command: TypeAlias = (
    Ask | RunTool | Rest | Await | AwaitSettlement | Resolve | TendChildren | AwaitChildren | Hold | Finished
)


@dataclass(frozen=True, slots=True)
class Transition:
    """One move of a job. All of it is written in one transaction before ``next`` is begun.

    ``visits`` are those opened or closed, ``judged`` the attempts that got their verdict, ``opened`` the
    attempt whose request leaves next, ``messages`` the new lines of the transcript, ``taken`` the signal used up.
    """

    job: Job
    next: Command
    events: tuple[HistoryEvent, ...] = ()
    visits: tuple[Visit, ...] = ()
    judged: tuple[Attempt, ...] = ()
    opened: Attempt | None = None
    messages: tuple[Message, ...] = ()
    taken: UUID | None = None
