"""What can happen to a job: the machine's input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from stepladder.schemas.answer import Verdict
    from stepladder.schemas.jsontypes import Json
    from stepladder.workflows.job import Child, Signal
    from stepladder.workflows.visits import ChildFailure, ToolError


@dataclass(frozen=True, slots=True)
class Claimed:
    """A worker claimed the job: for the first time, because it fell due, or after another worker lost it.

    ``taken_over``: the previous worker was lost without releasing the job.
    """

    taken_over: bool = False


@dataclass(frozen=True, slots=True)
class Judged:
    """The open attempt's answer was judged."""

    verdict: Verdict


@dataclass(frozen=True, slots=True)
class ToolReturned:
    """The open tool call returned a result."""

    result: Json


@dataclass(frozen=True, slots=True)
class ToolFailed:
    """The open tool call returned an error."""

    error: ToolError


@dataclass(frozen=True, slots=True)
class ToolUnknown:
    """The open irreversible call did not return, or cannot tell: it may have taken effect. ``error`` says why."""

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
    """The children of the open call as they are now, by index; those that were not started are missing."""

    children: tuple[Child, ...]


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Cancellation was requested. ``settled`` is the settlement of the open call, if one has arrived."""

    settled: Settled | None = None


Event: TypeAlias = (
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
