"""The names that templates and expressions may read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepladder.workflows.job import Turn
from stepladder.workflows.visits import ChildCall, ListRun, ToolCall, Wait

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepladder.schemas.jsontypes import Json
    from stepladder.workflows.job import Job
    from stepladder.workflows.visits import ChildFailure, ToolError

ROOTS = ("input", "turns", "lists", "tools", "calls", "errors", "signals", "visits", "last_tool")
EACH = "each"
"""The one name that only a list's own turns and a fan-out's own input may read."""


def names_of(job: Job) -> dict[str, Json]:
    """``turns.STATE`` the last accepted output, ``tools.STATE`` the last result, ``errors.STATE`` the last error,
    ``signals.STATE`` the last payload, ``visits.STATE`` all of them, oldest first, ``last_tool`` the last tool's call,
    ``lists.STATE`` the list last built or begun, ``calls.STATE`` what the child gave, or the list of what they gave.

    What has not happened has no name: a state not yet visited is missing from its mapping.
    """
    turns: dict[str, Json] = {}
    tools: dict[str, Json] = {}
    errors: dict[str, Json] = {}
    signals: dict[str, Json] = {}
    visits: dict[str, list[Json]] = {}
    calls: dict[str, Json] = {}
    lists: dict[str, list[Json]] = {}
    until: dict[str, str | None] = {}
    names: dict[str, Json] = {"input": job.input}
    for visit in job.visits:
        if visit.closed_at is None:
            continue
        match visit:
            case ListRun():
                lists[visit.state], until[visit.state] = [], visit.until
            case Turn() if visit.accepted:
                turns[visit.state] = visit.output
                visits.setdefault(visit.state, []).append(visit.output)
                if visit.state in lists and (visit.action is None or visit.action != until[visit.state]):
                    lists[visit.state].append(visit.output)
            case ToolCall():
                error: Json = None
                if visit.error is None:
                    tools[visit.state] = visit.result
                    visits.setdefault(visit.state, []).append(visit.result)
                else:
                    error = {"kind": visit.error.kind, "message": visit.error.message}
                    errors[visit.state] = error
                result = None if visit.error else visit.result
                names["last_tool"] = {"state": visit.state, "tool": visit.tool, "result": result, "error": error}
            case ChildCall():
                if visit.error is not None:
                    errors[visit.state] = _failed(visit.error, visit.failed)
                if visit.error is None or visit.result is not None:
                    calls[visit.state] = visit.result
                    visits.setdefault(visit.state, []).append(visit.result)
            case Wait() if visit.signal_id is not None:
                signals[visit.state] = visit.payload
                visits.setdefault(visit.state, []).append(visit.payload)
            case _:
                pass
    names |= {"turns": turns, "lists": lists, "tools": tools, "calls": calls}
    return names | {"errors": errors, "signals": signals, "visits": visits}


def _failed(error: ToolError, failed: Sequence[ChildFailure]) -> Json:
    children: list[Json] = [{"index": one.index, "kind": one.kind, "message": one.message} for one in failed]
    return {"kind": error.kind, "message": error.message, "children": children}
