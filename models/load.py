"""From rows to the machine's memory."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Any, TypeAlias

from stepladder.models.records import PendingAttempt
from stepladder.schemas.actor import Actor
from stepladder.schemas.answer import Completion, Lost, Received, Usage, Verdict, Violation
from stepladder.schemas.degraded import Degraded, Loss
from stepladder.schemas.job import Failure, JobStatus
from stepladder.schemas.outcomes import Cause, Outcome, Rungs, RungState
from stepladder.workflows.events import Settled
from stepladder.workflows.job import Attempt, Job, Message, Signal, Spent, Turn
from stepladder.workflows.visits import ToolCall, VisitStatus, visit_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stepladder.schemas.answer import Arrival
    from stepladder.schemas.jsontypes import Json
    from stepladder.workflows.visits import Visit

Row: TypeAlias = "Mapping[str, Any]"


def encode_raw(body: bytes, *, streamed: bool) -> tuple[bytes, str]:
    """The bytes as they are stored, and the word for how: a stream is some 80 times its text, and is compressed."""
    return (gzip.compress(body, compresslevel=1, mtime=0), "gzip") if streamed else (body, "identity")


def decode_raw(raw: bytes, encoding: str) -> bytes:
    """The bytes as they were received."""
    return gzip.decompress(raw) if encoding == "gzip" else raw


def job_of(
    row: Row,
    *,
    turns: Sequence[Row],
    attempts: Sequence[Row],
    visits: Sequence[Row],
    messages: Sequence[Row],
    spent: Sequence[Row] = (),
) -> Job:
    """The job as the machine left it.

    Of its verdicts it has what the machine decides by. Texts that are the record's alone, the completions of closed
    turns among them, stay in the database.
    """
    found: list[Visit] = [_turn(turn, [a for a in attempts if a["turn"] == turn["ordinal"]]) for turn in turns]
    found += [visit_of(visit) for visit in visits]
    return Job(
        id=row["id"],
        lineage=row["lineage"],
        input=row["input"],
        created_at=row["created_at"],
        status=JobStatus(row["status"]),
        state=row["state"],
        visits=tuple(sorted(found, key=lambda visit: visit.visit)),
        transcript=tuple(Message(m["ordinal"], m["turn"], m["role"], m["content"]) for m in messages),
        tokens=row["tokens"],
        token_budget=row["token_budget"],
        deadline_at=row["deadline_at"],
        due_at=row["due_at"],
        event_count=row["event_count"],
        principal=row["principal"],
        scopes=None if row["scopes"] is None else frozenset(row["scopes"]),
        failure=None if row["failure"] is None else Failure(row["failure"]),
        failure_detail=row["failure_detail"],
        result=row["result"],
        waiting_for=row["waiting_for"],
        depth=row["depth"],
        spent={one["key"]: _spent(one) for one in spent},
    )


def _turn(row: Row, attempts: Sequence[Row]) -> Turn:
    columns = ("visit", "state", "opened_at", "ordinal", "question", "schema_hash", "action", "output", "closed_at")
    open_status = VisitStatus.RUNNING if attempts and attempts[-1]["outcome"] is None else VisitStatus.BACKING_OFF
    return Turn(
        **{name: row[name] for name in columns},
        carried=row["carried"],
        status=open_status if row["closed_at"] is None else VisitStatus.CLOSED,
        attempts=tuple(attempt_of(attempt, row["output"]) for attempt in attempts),
        outcome=None if row["outcome"] is None else Outcome(row["outcome"]),
        degraded=degraded_of(row["degraded"]),
    )


def attempt_of(row: Row, output: Json) -> Attempt:
    return Attempt(
        turn=row["turn"],
        ordinal=row["ordinal"],
        max_completion_tokens=row["max_completion_tokens"],
        sampling=row["sampling"],
        note=row["note"],
        history_from=row["history_from"],
        history_to=row["history_to"],
        content_hash=row["content_hash"],
        verdict=None if row["outcome"] is None else _verdict(row, output),
    )


def _verdict(row: Row, output: Json) -> Verdict:
    outcome = Outcome(row["outcome"])
    usage = None if row["prompt_tokens"] is None else Usage(row["prompt_tokens"], row["completion_tokens"])
    return Verdict(
        outcome=outcome,
        cause=row["cause"],
        rungs=Rungs(*(RungState(row[f"rung_{rung}"]) for rung in ("termination", "parse", "schema", "semantic"))),
        errors=violations_of(row["errors"]),
        observed=violations_of(row["observed"]),
        output=output if outcome is Outcome.VALID else None,
        completion=Completion(row["content"], finish_reason=row["finish_reason"], usage=usage),
        retry_after_s=row["retry_after_s"],
        schema_known_bad=row["schema_known_bad"],
    )


def degraded_of(kept: Mapping[str, Any] | None) -> Degraded | None:
    """A turn's degraded result, from its stored JSON."""
    if kept is None:
        return None
    lost = tuple(Loss(loss["pointer"], loss["reason"]) for loss in kept["lost"])
    return Degraded(kept["value"], lost, kept["attempt"], Outcome(kept["outcome"]))


def violations_of(errors: Sequence[Mapping[str, str]]) -> tuple[Violation, ...]:
    return tuple(Violation(error["pointer"], error["reason"], error["source"]) for error in errors)


def _spent(row: Row) -> Spent:
    call = visit_of(row)
    if not isinstance(call, ToolCall):
        raise TypeError(f"visit {call.visit} of job {row['job_id']} runs no tool")
    return Spent(row["job_id"], call.closed_at is not None, call.result, call.error)


def settled_of(row: Row) -> Settled | None:
    """The settlement of a visit, from its row of ``hot.VISITS``."""
    return None if row["done"] is None else Settled(row["done"], row["said"], row["by"])


def signal_of(row: Row) -> Signal:
    sender = Actor(row["by"], None if row["scopes"] is None else frozenset(row["scopes"]))
    return Signal(row["id"], row["name"], row["payload"], row["received_at"], sender)


def pending_of(job: Job, attempts: Sequence[Row]) -> PendingAttempt | None:
    """The attempt that was in flight, or without a verdict, when the job was claimed."""
    turn = job.open
    if not isinstance(turn, Turn) or not turn.attempts or turn.attempts[-1].verdict is not None:
        return None
    row = attempts[-1]
    return PendingAttempt(turn.attempts[-1], row["request_id"], None if row["arrived_at"] is None else arrival_of(row))


def arrival_of(row: Row) -> Arrival:
    """What arrived for an attempt. Retention may have removed the bytes of a lost one."""
    body = b"" if row["raw"] is None else decode_raw(row["raw"], row["raw_encoding"])
    if row["lost_cause"] is not None:
        return Lost(Cause(row["lost_cause"]), row["lost_detail"], body, row["http_status"], row["streamed"])
    return Received(row["http_status"], body, row["streamed"], row["retry_after_s"])
