"""From the machine's step to the one JSON text that the store's commit takes."""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING, assert_never

from stepladder.models.ids import uuid7
from stepladder.models.records import Claim
from stepladder.schemas.jsontext import json_text
from stepladder.workflows.job import Turn
from stepladder.workflows.transition import (
    Ask,
    Await,
    AwaitChildren,
    AwaitSettlement,
    Finished,
    Hold,
    Resolve,
    Rest,
    RunTool,
    TendChildren,
    Transition,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from stepladder.models.records import NewJob, Stamp
    from stepladder.schemas.answer import Violation
    from stepladder.schemas.event import HistoryEvent
    from stepladder.workflows.job import Attempt, Job, Message
    from stepladder.workflows.transition import Command
    from stepladder.workflows.visits import Visit

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def _json(value: object) -> str | None:
    return None if value is None else json_text(value)


def plain(text: str | None) -> str | None:
    """Foreign text for a ``text`` column: characters that PostgreSQL cannot store become U+FFFD."""
    return None if text is None else _UNSTORABLE.sub("\ufffd", text)


def new_job(new: NewJob) -> dict[str, object]:
    """One row of the parameter of ``submissions.SUBMIT``."""
    job = new.job
    return {
        "id": str(job.id),
        "lineage": str(job.lineage),
        "replay_of": None if new.replay_of is None else str(new.replay_of),
        "variant": new.variant,
        "bulk": None if new.bulk is None else str(new.bulk),
        "experiment": None if new.experiment is None else str(new.experiment),
        "arm": new.arm,
        "sample": new.sample,
        "created": json_text(new.created),
        "workflow": new.workflow,
        "version": new.version,
        "status": job.status,
        "input": json_text(job.input),
        "metadata": json_text(new.metadata),
        "principal": plain(job.principal),
        "scopes": None if job.scopes is None else sorted(job.scopes),
        "priority": new.priority,
        "token_budget": job.token_budget,
        "deadline_at": _time(job.deadline_at),
        "created_at": _time(job.created_at),
    }


def carried_json(job: Job) -> str:
    """The same for a job that was written just now, with what it carries over from another one. It is due at once."""
    claim = Claim(job, "", 0, owner="", fence=0, lease_s=0, claimed_at=job.created_at)
    step = Transition(job, Rest(job.created_at), visits=job.visits, messages=job.transcript)
    return step_json(claim, step, None, release=True)


def step_json(
    claim: Claim, step: Transition, stamp: Stamp | None, *, release: bool, unless_paused: bool = False
) -> str:
    """The parameter of ``hot.COMMIT``. ValueError if an attempt is opened without a stamp."""
    job = step.job
    record = {
        "job": str(job.id),
        "fence": claim.fence,
        "unless_paused": unless_paused,
        "lease_s": claim.lease_s,
        "known_cancel": claim.cancel_requested,
        **_next(step.next, claim.known_signals, release=release),
        "status": job.status,
        "state": job.state,
        "waiting_for": job.waiting_for,
        "failure": job.failure,
        "failure_detail": plain(job.failure_detail),
        "result": _json(job.result),
        "tokens": job.tokens,
        "turn_count": job.turn_count,
        "due_at": _time(job.due_at),
        "deadline_at": _time(job.deadline_at),
        "messages": [_message(message) for message in step.messages],
        "turns": [_turn(visit) for visit in step.visits if isinstance(visit, Turn)],
        "judged": [_judged(attempt) for attempt in step.judged],
        "opened": [] if step.opened is None else [_opened(step.opened, stamp)],
        "visits": [_visit(visit) for visit in step.visits if not isinstance(visit, Turn)],
        "events": [_event(nth, event) for nth, event in enumerate(step.events, 1)],
        "taken": None if step.taken is None else str(step.taken),
    }
    return json.dumps(record, ensure_ascii=False)


def _next(action: Command, known_signals: int, *, release: bool) -> dict[str, object]:
    """Whether the worker keeps the job, when it is to be looked at again, and whether signals wake it before."""
    ends: dict[str, object] = {"final": False, "working": False, "keep": False, "wake_at": None, "known_signals": None}
    match action:
        case Ask() | RunTool() | Resolve() | TendChildren():
            return ends | {"working": True, "keep": True}
        case Rest():
            return ends | {"keep": not release, "wake_at": _time(action.until)}
        case Await():
            return ends | {"wake_at": _time(action.wait.until), "known_signals": known_signals}
        case AwaitSettlement() | AwaitChildren():
            return ends | {"known_signals": known_signals}
        case Hold():
            return ends | {"working": True, "keep": not release}
        case Finished():
            return ends | {"final": True}
        case _:
            assert_never(action)


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _message(message: Message) -> dict[str, object]:
    return {
        "ordinal": message.ordinal,
        "turn": message.turn,
        "role": message.role,
        "content": json_text(message.content),
    }


def _turn(turn: Turn) -> dict[str, object]:
    return {
        "ordinal": turn.ordinal,
        "visit": turn.visit,
        "state": turn.state,
        "question": json_text(turn.question),
        "schema_hash": turn.schema_hash,
        "outcome": turn.outcome,
        "action": plain(turn.action),
        "output": _json(turn.output),
        "degraded": None if turn.degraded is None else json_text(turn.degraded),
        "carried": turn.carried,
        "opened_at": _time(turn.opened_at),
        "closed_at": _time(turn.closed_at),
    }


def _judged(attempt: Attempt) -> dict[str, object]:
    verdict = attempt.verdict
    if verdict is None:
        raise ValueError(f"attempt {attempt.ordinal} of turn {attempt.turn} is to be written as judged, and is not")
    completion, usage, rungs = verdict.completion, verdict.completion.usage, verdict.rungs
    return {
        "turn": attempt.turn,
        "ordinal": attempt.ordinal,
        "content": None if completion.content is None else base64.b64encode(completion.content).decode(),
        "content_hash": attempt.content_hash,
        "finish_reason": plain(completion.finish_reason),
        "outcome": verdict.outcome,
        "cause": plain(verdict.cause),
        "rung_termination": rungs.termination,
        "rung_parse": rungs.parse,
        "rung_schema": rungs.schema,
        "rung_semantic": rungs.semantic,
        "errors": _violations(verdict.errors),
        "observed": _violations(verdict.observed),
        "schema_known_bad": verdict.schema_known_bad,
        "prompt_tokens": None if usage is None else usage.prompt_tokens,
        "completion_tokens": None if usage is None else usage.completion_tokens,
    }


def _violations(violations: Sequence[Violation]) -> str:
    return json_text([{"pointer": v.pointer, "reason": v.reason, "source": v.source} for v in violations])


def _opened(attempt: Attempt, stamp: Stamp | None) -> dict[str, object]:
    if stamp is None:
        raise ValueError(f"attempt {attempt.ordinal} of turn {attempt.turn} is to be opened, and has no stamp")
    return {
        "id": str(uuid7()),
        "turn": attempt.turn,
        "ordinal": attempt.ordinal,
        "history_from": attempt.history_from,
        "history_to": attempt.history_to,
        "note": json_text(attempt.note),
        "max_completion_tokens": attempt.max_completion_tokens,
        "sampling": json_text(attempt.sampling),
        "request_id": stamp.request_id,
        "model": plain(stamp.model),
        "engine_version": plain(stamp.engine_version),
        "grammar_backend": plain(stamp.grammar_backend),
    }


def _visit(visit: Visit) -> dict[str, object]:
    return {
        "visit": visit.visit,
        "kind": visit.kind,
        "state": visit.state,
        "status": visit.status,
        "key": visit.key,
        "once": visit.once,
        "error_kind": None if visit.error is None else plain(visit.error.kind),
        "body": json_text(visit.body()),
        "carried": visit.carried,
        "opened_at": _time(visit.opened_at),
        "closed_at": _time(visit.closed_at),
    }


def _event(nth: int, event: HistoryEvent) -> dict[str, object]:
    return {
        "nth": nth,
        "kind": event.kind,
        "turn": event.turn,
        "attempt": event.attempt,
        "data": json_text(event.data),
    }
