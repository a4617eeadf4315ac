"""An event of a job's history as one line of plain text, for the command line and the dashboard."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from stepladder.schemas.event import EventKind

if TYPE_CHECKING:
    from stepladder.schemas import history
    from stepladder.schemas.event import HistoryEvent

LONGEST = 300
"""Characters of one value; messages of tools and models are otherwise unlimited."""


def event_text(event: HistoryEvent | history.Event) -> str:
    """What happened, without markup or a full stop. Codes such as outcomes are spelled as in the API."""
    data = event.data
    said = defaultdict(str, {name: _short(value) for name, value in data.items()})
    turn, attempt = f"turn {event.turn}", f"turn {event.turn}, attempt {event.attempt}"
    tool, signal, workflow = f"tool {said['tool']}", f"signal {said['signal']}", f"workflow {said['workflow']}"
    whole = f", with {workflow}" if said["workflow"] else ""
    match event.kind:
        case EventKind.JOB_CREATED if data.get("mode") is not None:
            return f"{said['mode']} of job {said['replay_of']} from turn {said['from_turn']}"
        case EventKind.JOB_CREATED:
            return "submitted"
        case EventKind.JOB_STARTED:
            return "started"
        case EventKind.JOB_TAKEN_OVER:
            return "taken over from a lost worker"
        case EventKind.JOB_PAUSED:
            return f"paused by {said['by']}{whole}"
        case EventKind.JOB_UNPAUSED:
            return f"unpaused by {said['by']}{whole}"
        case EventKind.JOB_SUCCEEDED:
            return "succeeded"
        case EventKind.JOB_FAILED:
            return f"failed: {said['failure']}, {said['detail']}" if said["failure"] else "failed"
        case EventKind.JOB_CANCELLED:
            return "cancelled"
        case EventKind.TRANSITION:
            action = f" on {said['action']}" if said["action"] and said["action"] != "always" else ""
            return f"moved to state {said['to']}{action}"
        case EventKind.TURN_STARTED:
            return f"{turn}: asking the model in state {said['state']}"
        case EventKind.TURN_ACCEPTED:
            return f"{turn}: answer accepted" + (f", action {said['action']}" if data.get("action") else "")
        case EventKind.TURN_FAILED:
            return f"{turn} failed: {said['failure']}, {said['detail']}"
        case EventKind.TURN_DEGRADED:
            return f"{turn}: degraded result kept from attempt {event.attempt}"
        case EventKind.ATTEMPT_JUDGED:
            return f"{attempt}: {said['outcome']}" + (f" ({said['cause']})" if data.get("cause") else "")
        case EventKind.ATTEMPT_ABANDONED:
            return f"{attempt}: abandoned by a lost worker"
        case EventKind.RETRY_SCHEDULED:
            return f"{tool if event.turn is None else turn}: retrying in {said['after_s']} s"
        case EventKind.TOOL_STARTED:
            return f"{tool} started" + ("" if data.get("run", 1) == 1 else f", run {said['run']}")
        case EventKind.TOOL_RETURNED:
            return f"{tool} returned"
        case EventKind.TOOL_FAILED:
            return f"{tool} failed: {said['kind']}, {said['message']}"
        case EventKind.TOOL_CARRIED:
            return f"{tool} not run again: job {said['job']} already started this call"
        case EventKind.PERMISSION_DENIED:
            return f"{tool} denied to {said['principal']}: missing {said['missing']}"
        case EventKind.SETTLEMENT_NEEDED:
            return f"{tool} needs settlement, it is unknown whether it took effect: {said['message']}"
        case EventKind.SETTLED:
            return f"{tool} settled by {said['by']}: it {'took' if data.get('done') else 'did not take'} effect"
        case EventKind.LIST_STARTED:
            return f"list started in state {said['state']}"
        case EventKind.LIST_ENDED:
            return f"list in state {said['state']} ended with {said['elements']} elements"
        case EventKind.CALL_STARTED:
            return f"{workflow} called, children: {said['children']}"
        case EventKind.CALL_RETURNED:
            return f"{workflow} returned" + (f", {said['failed']} without a result" if data.get("failed") else "")
        case EventKind.CALL_FAILED:
            return f"{workflow} failed: {said['kind']}, {said['message']}"
        case EventKind.WAIT_STARTED:
            return f"waiting for {signal}"
        case EventKind.WAIT_TIMED_OUT:
            return f"{signal} timed out"
        case EventKind.SIGNAL_TAKEN:
            return f"{signal} received: {said['action']}" + (f", from {said['by']}" if said["by"] else "")
        case EventKind.SIGNAL_REFUSED:
            return f"{signal} rejected: {said['reason']}"


def _short(value: object) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
