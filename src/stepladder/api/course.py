"""Routes: what stands between a job's turns, and the request of an attempt as it was sent."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response

from stepladder.api.answers import JsonAnswer, moment
from stepladder.api.parts import Reader, Wired
from stepladder.api.problems import not_found
from stepladder.api.shapes import Reason, Shape
from stepladder.api.specification import answered, problems
from stepladder.engine.wire import encode
from stepladder.models.visits import Visits

if TYPE_CHECKING:
    from stepladder.models.visits import Course, SignalRecord
    from stepladder.workflows.job import ChildCall, ToolCall, ToolError, Wait

router = APIRouter(prefix="/v1", tags=["history"])

SENT: dict[int | str, dict[str, Any]] = {
    200: {"description": "The body, byte for byte", "content": {"application/json": {"schema": {"type": "object"}}}},
    **problems(404),
}


class ToolRun(Shape):
    """One visit to a state that runs a tool. Of its `runs`, `failed` and `lost` ones gave nothing."""

    visit: int
    state: str
    tool: str
    effect: str
    arguments: Any
    key: str
    runs: int
    failed: int
    lost: int
    result: Any
    error: Reason | None
    carried: bool
    opened_at: datetime
    closed_at: datetime | None


class Waited(Shape):
    """One visit to a state that waits for a signal, with the signal that was taken, if any."""

    visit: int
    state: str
    signal: str
    wait_id: UUID
    show: Any
    frozen: dict[str, Any]
    action: str | None
    payload: Any
    signal_id: UUID | None
    carried: bool
    opened_at: datetime
    until: datetime | None
    closed_at: datetime | None


class CallMade(Shape):
    """One visit to a state that calls other jobs; those stand in `children` of the job."""

    visit: int
    state: str
    workflow: str
    version: int | None
    inputs: list[Any]
    result: Any
    error: Reason | None
    carried: bool
    opened_at: datetime
    closed_at: datetime | None


class SignalSent(Shape):
    """A signal that came, taken or not."""

    id: UUID
    name: str
    payload: Any
    by: str
    received_at: datetime
    taken_at: datetime | None


class Visited(Shape):
    """What stands between a job's turns. `turns` gives the visit of each turn by its ordinal."""

    turns: dict[str, int] = Field(examples=[{"1": 1, "2": 3}])
    tools: list[ToolRun]
    waits: list[Waited]
    calls: list[CallMade]
    signals: list[SignalSent]


@router.get(
    "/jobs/{job_id}/visits", responses={200: answered(Visited, "Tools, waits, calls, signals"), **problems(404)}
)
async def get_visits(job_id: UUID, parts: Wired, _: Reader) -> JsonAnswer:
    """The tools that ran, the waits and the signals, and the jobs that were called, each oldest first."""
    await parts.job(job_id)
    return JsonAnswer(course_json(await Visits(parts.store.database).course(job_id)))


@router.get("/attempts/{attempt_id}/request", response_class=Response, responses=SENT)
async def get_request(attempt_id: UUID, parts: Wired, _: Reader) -> Response:
    """The request as it was sent to the engine, built again from the transcript, byte for byte."""
    sent = await parts.reads.request(attempt_id)
    if sent is None:
        raise not_found(f"attempt {attempt_id}", "a job's attempts are listed in GET /v1/jobs/{id}/turns")
    headers = {"Content-Disposition": f'attachment; filename="request-{attempt_id}.json"'}
    return Response(encode(sent.body), media_type="application/json", headers=headers)


def course_json(course: Course) -> dict[str, Any]:
    return {
        "turns": {str(ordinal): visit for ordinal, visit in sorted(course.turn_visits.items())},
        "tools": [_tool(call) for call in course.calls],
        "waits": [_wait(wait) for wait in course.waits],
        "calls": [_call(call) for call in course.child_calls],
        "signals": [_signal(signal) for signal in course.signals],
    }


def _tool(call: ToolCall) -> dict[str, Any]:
    names = ("visit", "state", "tool", "arguments", "key", "runs", "failed", "lost", "result", "carried")
    return {name: getattr(call, name) for name in names} | {
        "effect": call.effect.value,
        "error": _reason(call.error),
        "opened_at": moment(call.opened_at),
        "closed_at": moment(call.closed_at),
    }


def _wait(wait: Wait) -> dict[str, Any]:
    names = ("visit", "state", "signal", "show", "frozen", "action", "payload", "carried")
    return {name: getattr(wait, name) for name in names} | {
        "wait_id": str(wait.wait_id),
        "signal_id": None if wait.signal_id is None else str(wait.signal_id),
        "opened_at": moment(wait.opened_at),
        "until": moment(wait.until),
        "closed_at": moment(wait.closed_at),
    }


def _call(call: ChildCall) -> dict[str, Any]:
    names = ("visit", "state", "workflow", "version", "result", "carried")
    return {name: getattr(call, name) for name in names} | {
        "inputs": list(call.inputs),
        "error": _reason(call.error),
        "opened_at": moment(call.opened_at),
        "closed_at": moment(call.closed_at),
    }


def _signal(signal: SignalRecord) -> dict[str, Any]:
    return {
        "id": str(signal.id),
        "name": signal.name,
        "payload": signal.payload,
        "by": signal.by,
        "received_at": moment(signal.received_at),
        "taken_at": moment(signal.taken_at),
    }


def _reason(error: ToolError | None) -> dict[str, str] | None:
    return None if error is None else {"kind": error.kind, "message": error.message}
