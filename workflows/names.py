"""The names that templates and expressions may read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepladder.workflows.job import ToolCall, Turn, Wait

if TYPE_CHECKING:
    from stepladder.schemas.jsontypes import Json
    from stepladder.workflows.job import Job

ROOTS = ("input", "turns", "tools", "errors", "signals", "visits", "last_tool")


def names_of(job: Job) -> dict[str, Json]:
    """``turns.STATE`` the last accepted output, ``tools.STATE`` the last result, ``errors.STATE`` the last error,
    ``signals.STATE`` the last payload, ``visits.STATE`` all of them, oldest first, ``last_tool`` the last call.

    What has not happened has no name: a state not yet visited is missing from its mapping.
    """
    turns: dict[str, Json] = {}
    tools: dict[str, Json] = {}
    errors: dict[str, Json] = {}
    signals: dict[str, Json] = {}
    visits: dict[str, list[Json]] = {}
    names: dict[str, Json] = {"input": job.input}
    for visit in job.visits:
        if visit.closed_at is None:
            continue
        match visit:
            case Turn() if visit.accepted:
                turns[visit.state] = visit.output
                visits.setdefault(visit.state, []).append(visit.output)
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
            case Wait() if visit.signal_id is not None:
                signals[visit.state] = visit.payload
                visits.setdefault(visit.state, []).append(visit.payload)
            case _:
                pass
    return names | {"turns": turns, "tools": tools, "errors": errors, "signals": signals, "visits": visits}
