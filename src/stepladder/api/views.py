"""From records to what ``shapes`` promises."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from stepladder.api.answers import moment

if TYPE_CHECKING:
    from stepladder.engine.identity import Identity
    from stepladder.models.reads import AttemptRecord, EventRecord, Overview, Published, TurnRecord
    from stepladder.models.records import Unsettled, WorkflowRow
    from stepladder.schemas.answer import Violation
    from stepladder.schemas.finding import Finding
    from stepladder.workflows.job import Wait

JOB_FIELDS = (
    "workflow", "version", "status", "state", "waiting_for", "failure", "failure_detail", "input", "result",
    "turn_count", "attempts", "tokens", "priority", "metadata", "principal", "token_budget", "event_count",
    "variant", "cancel_requested", "workflow_paused", "cost", "currency", "hold_by",
)  # fmt: skip


def job_json(job: Overview) -> dict[str, Any]:
    return (
        {"id": str(job.id)}
        | {name: getattr(job, name) for name in JOB_FIELDS}
        | {
            "degraded": degraded_json(job),
            "created_at": moment(job.created_at),
            "started_at": moment(job.started_at),
            "finished_at": moment(job.finished_at),
            "deadline_at": moment(job.deadline_at),
            "hold_at": moment(job.hold_at),
            "raw_gone_at": moment(job.raw_gone_at),
            "events_gone_at": moment(job.events_gone_at),
            "replay_of": None if job.replay_of is None else str(job.replay_of),
            "parent": None if job.parent is None else str(job.parent),
        }
    )


def degraded_json(job: Overview) -> dict[str, Any] | None:
    return None if job.degraded is None else {state: kept.as_json() for state, kept in job.degraded.items()}


def wait_json(wait: Wait) -> dict[str, Any]:
    return {
        "signal": wait.signal,
        "state": wait.state,
        "wait_id": str(wait.wait_id),
        "show": wait.show,
        "frozen": wait.frozen,
        "by": "other" if wait.by_other else "anyone",
        "scopes": list(wait.scopes),
        "opened_at": moment(wait.opened_at),
        "until": moment(wait.until),
    }


def settlement_json(job: Overview, found: Unsettled) -> dict[str, Any]:
    call, said = found.call, found.said
    return {
        "state": call.state,
        "tool": call.tool,
        "arguments": call.arguments,
        "key": call.key,
        "reason": None if call.error is None else {"kind": call.error.kind, "message": call.error.message},
        "opened_at": moment(call.opened_at),
        "said": None if said is None else {"done": said.done, "result": said.result, "by": said.by},
        "route": f"/v1/jobs/{job.id}/settle",
    }


def turn_json(turn: TurnRecord) -> dict[str, Any]:
    names = ("ordinal", "state", "outcome", "action", "output", "carried", "question")
    return {name: getattr(turn, name) for name in names} | {
        "degraded": None if turn.degraded is None else turn.degraded.as_json(),
        "started_at": moment(turn.started_at),
        "finished_at": moment(turn.finished_at),
        "attempts": [attempt_json(attempt) for attempt in turn.attempts],
    }


def attempt_json(attempt: AttemptRecord) -> dict[str, Any]:
    names = (
        "ordinal", "outcome", "cause", "finish_reason", "http_status", "ttft_ms", "tpot_ms", "duration_ms",
        "max_completion_tokens", "sampling", "schema_hash", "request_id", "note",
        "cost",
    )  # fmt: skip
    return (
        {"id": str(attempt.id)}
        | {name: getattr(attempt, name) for name in names}
        | {
            "rungs": None if attempt.rungs is None else asdict(attempt.rungs),
            "errors": [_violation(error) for error in attempt.errors],
            "observed": [_violation(error) for error in attempt.observed],
            "usage": None if attempt.usage is None else asdict(attempt.usage),
            "engine": {
                "model": attempt.model,
                "version": attempt.engine_version,
                "backend": attempt.grammar_backend,
            },
            "content": None if attempt.content is None else attempt.content.decode("utf-8", "replace"),
            "started_at": moment(attempt.started_at),
            "arrived_at": moment(attempt.arrived_at),
        }
    )


def _violation(error: Violation) -> dict[str, str]:
    return {"pointer": error.pointer, "reason": error.reason, "source": error.source}


def event_json(record: EventRecord) -> dict[str, Any]:
    event = record.event
    return {
        "ordinal": event.ordinal,
        "kind": event.kind,
        "turn": event.turn,
        "attempt": event.attempt,
        "data": event.data,
        "at": moment(record.at),
    }


def version_json(version: Published | WorkflowRow) -> dict[str, Any]:
    names = ("name", "version", "hash", "retired", "paused_by")
    times = {"paused_at": moment(version.paused_at), "created_at": moment(version.created_at)}
    return {name: getattr(version, name) for name in names} | times


def finding_json(finding: Finding) -> dict[str, Any]:
    return {"pointer": finding.pointer, "reason": finding.message} | finding_more(finding)


def finding_more(finding: Finding) -> dict[str, Any]:
    return {name: getattr(finding, name) for name in ("code", "remedy", "line", "column")}


def engine_json(identity: Identity) -> dict[str, Any]:
    names = ("model", "version", "backend", "kind", "max_model_len")
    return {name: getattr(identity, name) for name in names} | {"models": list(identity.models)}
