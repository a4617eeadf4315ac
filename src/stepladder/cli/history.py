"""A job's history for people: a line for each event that says something, and what the job is busy with since then."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from stepladder.cli.output import escape, shorten
from stepladder.schemas.event import EventKind
from stepladder.workflows.machine import ALWAYS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from uuid import UUID

    from stepladder.models.reads import EventRecord, Reads
    from stepladder.schemas.event import Event

POLL_S = 0.2
CHUNK = 500


async def follow(reads: Reads, job_id: UUID, after: int = 0) -> AsyncIterator[EventRecord | None]:
    """The events behind ordinal ``after`` as they are written, until the job has ended.

    None whenever there was nothing new. Raises ``UnreachableError`` when the database breaks.
    """
    while True:
        # Progress first: what a job that has ended by now has said is then all read.
        progress = (await reads.progress([job_id])).get(job_id)
        while records := await reads.events(job_id, after, CHUNK):
            for record in records:
                yield record
            after = records[-1].event.ordinal
        if progress is None or progress.final:
            return
        yield None
        await asyncio.sleep(POLL_S)


def event_json(record: EventRecord) -> dict[str, Any]:
    """An event in the words of the HTTP API."""
    event = record.event
    names = ("ordinal", "kind", "turn", "attempt", "data")
    return {name: getattr(event, name) for name in names} | {"at": record.at}


def line_of(event: Event) -> str | None:
    """What happened, as markup; None for what only says what comes next."""
    word = {name: _short(value) for name, value in event.data.items()}
    match event.kind:
        case EventKind.JOB_CREATED if event.data.get("mode") is not None:
            return f"made from job {event.data['replay_of']}: {word['mode']} from turn {word['from_turn']}"
        case EventKind.JOB_CREATED:
            return "submitted"
        case EventKind.JOB_STARTED:
            return "a worker has begun"
        case EventKind.JOB_TAKEN_OVER:
            return "[yellow]its worker was lost, another goes on[/]"
        case EventKind.ATTEMPT_JUDGED:
            colour = "green" if word["outcome"] == "valid" else "yellow"
            cause = f" ({word['cause']})" if event.data.get("cause") else ""
            return f"turn {event.turn}, attempt {event.attempt}: [{colour}]{word['outcome']}{cause}[/]"
        case EventKind.ATTEMPT_ABANDONED:
            return f"turn {event.turn}, attempt {event.attempt}: [yellow]abandoned[/]"
        case EventKind.RETRY_SCHEDULED if event.turn is None:
            return f"tool {word['tool']}: running again in {word['after_s']} s"
        case EventKind.RETRY_SCHEDULED:
            return f"turn {event.turn}: asking again in {word['after_s']} s"
        case EventKind.TURN_FAILED:
            return f"turn {event.turn}: [red]{word['failure']}[/], {word['detail']}"
        case EventKind.TURN_DEGRADED:
            return f"turn {event.turn}: [yellow]degraded[/], of attempt {event.attempt} a part is kept"
        case EventKind.TRANSITION:
            action = f" by {word['action']}" if event.data.get("action") not in (None, ALWAYS) else ""
            return f"on to {word['to']}{action}"
        case EventKind.TOOL_RETURNED:
            return f"tool {word['tool']}: [green]returned[/]"
        case EventKind.TOOL_FAILED:
            return f"tool {word['tool']}: [yellow]{word['kind']}[/], {word['message']}"
        case EventKind.TOOL_CARRIED:
            return f"tool {word['tool']}: not run again, job {event.data['job']} has begun this call before"
        case EventKind.PERMISSION_DENIED:
            missing = ", ".join(map(_short, _list(event.data.get("missing"))))
            return f"tool {word['tool']}: [red]denied[/] to {word['principal']}, who lacks {missing}"
        case EventKind.LIST_ENDED:
            return f"state {word['state']}: a list of {word['elements']}"
        case EventKind.CALL_STARTED:
            return f"calls {word['workflow']}, children: {word['children']}"
        case EventKind.CALL_RETURNED:
            lost = f", [yellow]{word['failed']} gave no result[/]" if event.data.get("failed") else ""
            return f"{word['workflow']}: [green]returned[/]{lost}"
        case EventKind.CALL_FAILED:
            return f"{word['workflow']}: [yellow]{word['kind']}[/], {word['message']}"
        case EventKind.WAIT_STARTED:
            return f"waits for signal {word['signal']}"
        case EventKind.SIGNAL_TAKEN:
            by = f" by {word['by']}" if "by" in word else ""
            return f"signal {word['signal']}: [green]{word['action']}[/]{by}"
        case EventKind.SIGNAL_REFUSED:
            return f"signal {word['signal']}: [yellow]refused[/], {word['reason']}"
        case EventKind.WAIT_TIMED_OUT:
            return f"signal {word['signal']}: [yellow]did not come in time[/]"
        case EventKind.SETTLEMENT_NEEDED:
            return f"tool {word['tool']}: [yellow]nobody knows whether it took effect[/], {word.get('message', '')}"
        case EventKind.SETTLED:
            took = "took effect" if event.data.get("done") else "did not take effect"
            return f"tool {word['tool']}: [green]settled[/], it {took}, says {word.get('by') or 'somebody'}"
        case EventKind.JOB_PAUSED | EventKind.JOB_UNPAUSED:
            whole = f", with workflow {word['workflow']}" if "workflow" in word else ""
            return f"{event.kind.removeprefix('job_')} by {word['by']}{whole}"
        case EventKind.JOB_SUCCEEDED | EventKind.JOB_CANCELLED:
            return str(event.kind).removeprefix("job_")
        case EventKind.JOB_FAILED:
            return f"failed: {word['failure']}, {word['detail']}" if "failure" in word else "failed"
        case EventKind.TURN_STARTED | EventKind.TURN_ACCEPTED | EventKind.TOOL_STARTED | EventKind.LIST_STARTED:
            return None


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


def _list(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else []


def _short(value: object) -> str:
    return escape(shorten(str(value)))
