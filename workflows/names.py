"""The names that templates and expressions may read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepladder.workflows.job import Turn
from stepladder.workflows.visits import ListRun, ToolCall

if TYPE_CHECKING:
    from stepladder.schemas.jsontypes import Json
    from stepladder.workflows.job import Job

ROOTS = ("input", "turns", "lists", "tools", "calls", "errors", "signals", "visits", "last_tool")
EACH = "each"
"""The one name that only a list's own turns and a fan-out's own input may read."""


def names_of(job: Job) -> dict[str, Json]:
    """``turns.STATE`` the last accepted output, ``tools.STATE`` the last result, ``errors.STATE`` the last error,
    ``signals.STATE`` the last payload, ``visits.STATE`` all of them, oldest first, ``last_tool`` the last tool's call,
    ``lists.STATE`` the list last built or begun, ``calls.STATE`` what the child gave, or the list of what they gave.

    What has not happened has no name: a state not yet visited is missing from its mapping.
    """
    values: dict[str, dict[str, Json]] = {"turns": {}, "tools": {}, "calls": {}, "signals": {}}
    errors: dict[str, Json] = {}
    visits: dict[str, list[Json]] = {}
    lists: dict[str, list[Json]] = {}
    until: dict[str, str | None] = {}
    names: dict[str, Json] = {"input": job.input}
    for visit in job.visits:
        if visit.closed_at is None:
            continue
        error = visit.error_json()
        if error is not None:
            errors[visit.state] = error
        if visit.has_value:
            values[visit.root][visit.state] = visit.value
            visits.setdefault(visit.state, []).append(visit.value)
        match visit:
            case ListRun():
                lists[visit.state], until[visit.state] = [], visit.until
            case Turn(accepted=True) if visit.state in lists:
                if visit.action is None or visit.action != until[visit.state]:
                    lists[visit.state].append(visit.output)
            case ToolCall():
                result = visit.result if error is None else None
                names["last_tool"] = {"state": visit.state, "tool": visit.tool, "result": result, "error": error}
            case _:
                pass
    return names | values | {"lists": lists, "errors": errors, "visits": visits}
