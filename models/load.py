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
from stepladder.schemas.tool import Effect
from stepladder.workflows.calls import NEVER_BEGUN
from stepladder.workflows.events import Settled
from stepladder.workflows.job import (
    Attempt,
    ChildCall,
    ChildFailure,
    Job,
    ListRun,
    Message,
    Signal,
    Spent,
    ToolCall,
    ToolError,
    Turn,
    Wait,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stepladder.schemas.answer import Arrival
    from stepladder.schemas.jsontypes import Json
    from stepladder.workflows.job import Visit

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
    tool_calls: Sequence[Row],
    waits: Sequence[Row],
    list_runs: Sequence[Row],
    child_calls: Sequence[Row],
    messages: Sequence[Row],
    spent: Sequence[Row] = (),
) -> Job:
    """The job as the machine left it.

    Of its verdicts it has what the machine decides by. Texts that are the record's alone, the completions of closed
    turns among them, stay in the database.
    """
    visits: list[Visit] = [
        *(_turn(turn, [a for a in attempts if a["turn"] == turn["ordinal"]]) for turn in turns),
        *(tool_call_of(call) for call in tool_calls),
        *(wait_of(wait) for wait in waits),
        *(list_run_of(run) for run in list_runs),
        *(child_call_of(call) for call in child_calls),
    ]
    return Job(
        id=row["id"],
        lineage=row["lineage"],
        input=row["input"],
        created_at=row["created_at"],
        status=JobStatus(row["status"]),
        state=row["state"],
        visits=tuple(sorted(visits, key=lambda visit: visit.visit)),
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
        spent={one["key"]: _spent(one) for one in spent if not _never_begun(one)},
    )


def _turn(row: Row, attempts: Sequence[Row]) -> Turn:
    return Turn(
        visit=row["visit"],
        ordinal=row["ordinal"],
        state=row["state"],
        question=row["question"],
        opened_at=row["opened_at"],
        schema_hash=row["schema_hash"],
        attempts=tuple(attempt_of(attempt, row["output"]) for attempt in attempts),
        outcome=None if row["outcome"] is None else Outcome(row["outcome"]),
        action=row["action"],
        output=row["output"],
        degraded=degraded_of(row["degraded"]),
        closed_at=row["closed_at"],
        carried=row["carried"],
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
    """What was kept of a turn, from the JSON that is stored of it."""
    if kept is None:
        return None
    lost = tuple(Loss(loss["pointer"], loss["reason"]) for loss in kept["lost"])
    return Degraded(kept["value"], lost, kept["attempt"], Outcome(kept["outcome"]))


def violations_of(errors: Sequence[Mapping[str, str]]) -> tuple[Violation, ...]:
    return tuple(Violation(error["pointer"], error["reason"], error["source"]) for error in errors)


def tool_call_of(row: Row) -> ToolCall:
    error = row["error"]
    return ToolCall(
        visit=row["visit"],
        state=row["state"],
        tool=row["tool"],
        effect=Effect(row["effect"]),
        arguments=row["arguments"],
        key=row["key"],
        runs=row["runs"],
        failed=row["failed"],
        lost=row["lost"],
        opened_at=row["opened_at"],
        result=row["result"],
        error=None if error is None else ToolError(error["kind"], error["message"]),
        closed_at=row["closed_at"],
        carried=row["carried"],
    )


def _never_begun(row: Row) -> bool:
    return row["error"] is not None and row["closed_at"] is not None and row["error"]["kind"] in NEVER_BEGUN


def _spent(row: Row) -> Spent:
    error = row["error"]
    return Spent(
        row["job_id"],
        row["closed_at"] is not None,
        row["result"],
        None if error is None else ToolError(error["kind"], error["message"]),
    )


def wait_of(row: Row) -> Wait:
    return Wait(
        visit=row["visit"],
        state=row["state"],
        signal=row["signal"],
        wait_id=row["wait_id"],
        show=row["show"],
        opened_at=row["opened_at"],
        until=row["until"],
        frozen=row["frozen"],
        by_other=row["by_other"],
        scopes=tuple(row["scopes"]),
        payload=row["payload"],
        signal_id=row["signal_id"],
        action=row["action"],
        closed_at=row["closed_at"],
        carried=row["carried"],
    )


def list_run_of(row: Row) -> ListRun:
    return ListRun(
        visit=row["visit"],
        state=row["state"],
        at_most=row["at_most"],
        opened_at=row["opened_at"],
        items=row["items"],
        count=row["count"],
        until=row["until"],
        closed_at=row["opened_at"],
        carried=row["carried"],
    )


def child_call_of(row: Row) -> ChildCall:
    error = row["error"]
    return ChildCall(
        visit=row["visit"],
        state=row["state"],
        workflow=row["workflow"],
        inputs=tuple(row["inputs"]),
        opened_at=row["opened_at"],
        version=row["version"],
        failed=tuple(ChildFailure(one["index"], one["kind"], one["message"]) for one in row["failed"]),
        result=row["result"],
        error=None if error is None else ToolError(error["kind"], error["message"]),
        closed_at=row["closed_at"],
        carried=row["carried"],
    )


def settled_of(row: Row) -> Settled:
    return Settled(row["done"], row["result"], row["by"])


def signal_of(row: Row) -> Signal:
    sender = Actor(row["by"], None if row["scopes"] is None else frozenset(row["scopes"]))
    return Signal(row["id"], row["name"], row["payload"], row["received_at"], sender)


def pending_of(job: Job, attempts: Sequence[Row]) -> PendingAttempt | None:
    """The attempt that was in flight, or waited for its verdict, when the job changed hands."""
    turn = job.open
    if not isinstance(turn, Turn) or not turn.attempts or turn.attempts[-1].verdict is not None:
        return None
    row = attempts[-1]
    return PendingAttempt(turn.attempts[-1], row["request_id"], None if row["arrived_at"] is None else _arrival(row))


def _arrival(row: Row) -> Arrival:
    body = decode_raw(row["raw"], row["raw_encoding"])
    if row["lost_cause"] is not None:
        return Lost(Cause(row["lost_cause"]), row["lost_detail"], body, row["http_status"], row["streamed"])
    return Received(row["http_status"], body, row["streamed"], row["retry_after_s"])
