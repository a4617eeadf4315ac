"""``stepladder show``: one job as it is stored in the database."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from stepladder.cli.options import AsJson, JobId
from stepladder.cli.output import console, print_json, printable
from stepladder.schemas.errors import BadInputError
from stepladder.wiring.settings import load_settings

if TYPE_CHECKING:
    from uuid import UUID

    from stepladder.cli.session import Session
    from stepladder.schemas.history import Event, Timeline, TurnVisit
    from stepladder.schemas.responses import Job


@dataclass(frozen=True, slots=True)
class _Found:
    job: Job
    turns: tuple[TurnVisit, ...]
    timeline: Timeline
    events: tuple[Event, ...]
    replays: tuple[Job, ...]


def show(
    job_id: JobId,
    turn: Annotated[int | None, typer.Option(help="only this turn")] = None,
    attempt: Annotated[int | None, typer.Option(help="only this attempt of --turn")] = None,
    raw: Annotated[bool, typer.Option(help="also the exact text of every answer")] = False,
    request: Annotated[
        bool, typer.Option("--request", help="only the request as it was sent, byte for byte; default: the last one")
    ] = False,
    events: Annotated[bool, typer.Option("--events", help="also the whole history")] = False,
    as_json: AsJson = False,
) -> None:
    """Show a job: its turns, their attempts, and what was wrong with each answer."""
    from stepladder.cli.history import print_events, print_lineage, print_timeline, print_times
    from stepladder.cli.session import in_session
    from stepladder.cli.view import print_job, print_next_step

    if attempt is not None and turn is None:
        raise BadInputError("--attempt needs --turn", remedy="write --turn N --attempt M")
    if request:
        _write(in_session(load_settings(), lambda session: _request(session, job_id, turn, attempt)))
        return
    found = in_session(load_settings(), lambda session: _found(session, job_id, turn, attempt))
    if as_json:
        history = {"events": found.events} if events else {}
        print_json({**dict(found.job), "turns": found.turns, "visits": found.timeline, **history})
        return
    out = console()
    print_job(out, found.job, found.turns, raw=raw)
    print_lineage(out, found.job, found.events[0] if found.events else None, found.replays)
    if turn is None:
        print_timeline(out, found.timeline)
        print_times(out, found.job.created_at, found.job.finished_at)
    if events:
        print_events(out, found.events)
    print_next_step(out, found.job)


async def _found(session: Session, job_id: UUID, turn: int | None, attempt: int | None) -> _Found:
    job = await session.job(job_id)
    return _Found(
        job,
        await _turns(session, job, turn, attempt),
        await session.reads.timeline(job_id),
        await session.reads.events(job_id),
        await session.reads.overviews(job.replays),
    )


async def _turns(session: Session, job: Job, turn: int | None, attempt: int | None) -> tuple[TurnVisit, ...]:
    """Raises ``BadInputError`` if the job has no such turn or attempt."""
    turns = await session.reads.turns(job.id)
    if turn is None:
        return turns
    found = next((one for one in turns if one.ordinal == turn), None)
    if found is None:
        raise BadInputError(f"job {job.id} has no turn {turn}", remedy=f"it has {job.turn_count}")
    if attempt is None:
        return (found,)
    attempts = tuple(one for one in found.attempts if one.ordinal == attempt)
    if not attempts:
        remedy = f"it has {len(found.attempts)}"
        raise BadInputError(f"turn {turn} of job {job.id} has no attempt {attempt}", remedy=remedy)
    return (found.model_copy(update={"attempts": attempts}),)


async def _request(session: Session, job_id: UUID, turn: int | None, attempt: int | None) -> bytes:
    from stepladder.engine.wire import encode

    job = await session.job(job_id)
    if turn is None:
        raise BadInputError("--request needs --turn", remedy=f"write --turn N; the job has {job.turn_count}")
    [found] = await _turns(session, job, turn, attempt)
    if not found.attempts:
        remedy = "it was carried over from another job: see replay_of" if found.carried else "try again in a moment"
        raise BadInputError(f"turn {turn} has no attempts", remedy=remedy)
    sent = await session.reads.request(found.attempts[-1].id)
    if sent is None:
        raise LookupError(f"an attempt of job {job_id} has no request")
    return encode(sent.body)


def _write(body: bytes) -> None:
    """The exact bytes to a file or program; to a terminal formatted JSON without control characters."""
    if sys.stdout.isatty():
        console().print(printable(json.dumps(json.loads(body), ensure_ascii=False, indent=2)), markup=False)
        return
    sys.stdout.buffer.write(body)
    sys.stdout.buffer.flush()
