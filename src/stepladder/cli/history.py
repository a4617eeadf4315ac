"""A job's history for people: a line for each event that says something, and what the job is busy with since then."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from stepladder.cli.output import escape, shorten
from stepladder.schemas.event import EventKind
from stepladder.schemas.event_text import event_text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from uuid import UUID

    from stepladder.models.reads import Reads
    from stepladder.schemas.history import Event

POLL_S = 0.2
CHUNK = 500


async def follow(reads: Reads, job_id: UUID, after: int = 0) -> AsyncIterator[Event | None]:
    """The events behind ordinal ``after`` as they are written, until the job has ended.

    None whenever there was nothing new. Raises ``UnreachableError`` when the database breaks.
    """
    while True:
        # Progress first: what a job that has ended by now has said is then all read.
        progress = (await reads.progress([job_id])).get(job_id)
        while records := await reads.events(job_id, after, CHUNK):
            for record in records:
                yield record
            after = records[-1].ordinal
        if progress is None or progress.final:
            return
        yield None
        await asyncio.sleep(POLL_S)


_QUIET = (EventKind.TURN_STARTED, EventKind.TURN_ACCEPTED, EventKind.TOOL_STARTED, EventKind.LIST_STARTED)
"""The next event says how these came out."""

_GREEN = (EventKind.TOOL_RETURNED, EventKind.CALL_RETURNED, EventKind.SIGNAL_TAKEN, EventKind.SETTLED)
_RED = (EventKind.TURN_FAILED, EventKind.PERMISSION_DENIED, EventKind.JOB_FAILED)
_YELLOW = (
    EventKind.JOB_TAKEN_OVER, EventKind.ATTEMPT_ABANDONED, EventKind.TURN_DEGRADED, EventKind.TOOL_FAILED,
    EventKind.CALL_FAILED, EventKind.SIGNAL_REFUSED, EventKind.WAIT_TIMED_OUT, EventKind.SETTLEMENT_NEEDED,
)  # fmt: skip
_COLOURS = dict.fromkeys(_GREEN, "green") | dict.fromkeys(_RED, "red") | dict.fromkeys(_YELLOW, "yellow")


def line_of(event: Event) -> str | None:
    """The event as markup; None if the next one says more."""
    if event.kind in _QUIET:
        return None
    colour = _COLOURS.get(event.kind)
    if event.kind is EventKind.ATTEMPT_JUDGED:
        colour = "green" if event.data["outcome"] == "valid" else "yellow"
    text = escape(event_text(event))
    return text if colour is None else f"[{colour}]{text}[/]"


def busy_with(event: Event, since_s: float) -> str | None:
    """What the job does since its last event, which is ``since_s`` seconds ago, as markup; None if it goes on so."""
    word = {name: _short(value) for name, value in event.data.items()}
    match event.kind:
        case EventKind.JOB_CREATED if since_s > PATIENT_S:
            return "queued, and no worker takes it: does `stepladder up` or `stepladder worker` run?"
        case EventKind.JOB_CREATED | EventKind.JOB_UNPAUSED:
            return "queued"
        case EventKind.TURN_STARTED:
            return f"turn {event.turn} {word['state']}: asking the model"
        case EventKind.ATTEMPT_JUDGED | EventKind.ATTEMPT_ABANDONED if event.data.get("outcome") != "valid":
            return f"turn {event.turn}: asking again"
        case EventKind.RETRY_SCHEDULED if event.turn is None:
            return f"resting before tool {word['tool']} runs again"
        case EventKind.RETRY_SCHEDULED:
            return f"turn {event.turn}: resting before it asks again"
        case EventKind.TOOL_STARTED:
            return f"running tool {word['tool']}"
        case EventKind.WAIT_STARTED | EventKind.SIGNAL_REFUSED:
            return f"waiting for signal {word['signal']}"
        case EventKind.SETTLEMENT_NEEDED:
            return f"waiting for somebody to settle {word['tool']}"
        case EventKind.JOB_PAUSED:
            return "paused"
        case _:
            return None


PATIENT_S = 5.0
"""A worker that runs takes a job within about a second."""


def _short(value: object) -> str:
    return escape(shorten(str(value)))
