"""``stepladder show``: one job as it stands in the database."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stepladder.cli.arguments import parse_job_id
from stepladder.cli.onward import Line, print_onward
from stepladder.cli.output import console, print_json, printable
from stepladder.schemas.errors import BadInputError
from stepladder.wiring.settings import load_settings

if TYPE_CHECKING:
    from uuid import UUID

    from stepladder.cli.session import Session
    from stepladder.schemas.history import Attempt, Event, Timeline, Turn
    from stepladder.schemas.responses import Job

ATTEMPT_WANTS_TURN = "--attempt counts the attempts of one turn"


@dataclass(frozen=True, slots=True)
class _Found:
    job: Job
    turns: list[Turn]
    timeline: Timeline
    events: tuple[Event, ...]
    line: Line


def show(
    job: Annotated[str, typer.Argument(metavar="JOB", help="the job's id")],
    turn: Annotated[int | None, typer.Option(help="only this turn")] = None,
    attempt: Annotated[int | None, typer.Option(help="of that turn only this attempt")] = None,
    raw: Annotated[bool, typer.Option(help="the exact text of every answer as well")] = False,
    request: Annotated[
        bool, typer.Option("--request", help="the request as it was sent, byte for byte, and nothing else")
    ] = False,
    events: Annotated[bool, typer.Option("--events", help="the whole history as well")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="as one JSON document")] = False,
) -> None:
    """Show a job: its turns, their attempts, and what was wrong with each answer."""
    from stepladder.cli import view
    from stepladder.cli.session import in_session
    from stepladder.cli.timeline import print_events, print_timeline, print_times

    job_id = parse_job_id(job)
    if attempt is not None and turn is None:
        raise BadInputError(ATTEMPT_WANTS_TURN, remedy="write --turn N --attempt M")
    if request:
        _write(in_session(load_settings(), lambda session: _request(session, job_id, turn, attempt)))
        return
    found = in_session(load_settings(), lambda session: _found(session, job_id, turn, attempt, events=events))
    if as_json:
        print_json(_as_json(found, events=events))
        return
    out = console()
    view.print_job(out, found.job, found.turns, found.line, raw=raw)
    if turn is None:
        print_timeline(out, found.timeline)
        print_times(out, found.job.created_at, found.job.finished_at)
    if events:
        print_events(out, found.events)
    print_onward(out, found.job)


def _as_json(found: _Found, *, events: bool) -> dict[str, Any]:
    from stepladder.cli import view

    document = view.as_json(found.job, found.turns) | {"visits": found.timeline}
    return document | ({"events": found.events} if events else {})


async def _found(session: Session, job_id: UUID, turn: int | None, attempt: int | None, *, events: bool) -> _Found:
    job = await session.job(job_id)
    turns = _turns(await session.reads.turns(job_id), job, turn, attempt)
    history = await session.reads.events(job_id) if events else ()
    return _Found(job, turns, await session.reads.timeline(job_id), history, await _line(session, job))


async def _line(session: Session, job: Job) -> Line:
    first = await session.reads.events(job.id, 0, 1) if job.replay_of is not None else ()
    made = first[0].data if first and first[0].ordinal == 1 else {}
    return Line(made, await session.reads.overviews(job.replays))


def _turns(turns: tuple[Turn, ...], job: Job, turn: int | None, attempt: int | None) -> list[Turn]:
    if turn is None:
        return list(turns)
    found = [one for one in turns if one.ordinal == turn]
    if not found:
        raise BadInputError(f"job {job.id} has no turn {turn}", remedy=f"it has {job.turn_count}")
    if attempt is None:
        return found
    attempts = tuple(one for one in found[0].attempts if one.ordinal == attempt)
    if not attempts:
        remedy = f"it has {len(found[0].attempts)}"
        raise BadInputError(f"turn {turn} of job {job.id} has no attempt {attempt}", remedy=remedy)
    return [found[0].model_copy(update={"attempts": attempts})]


async def _request(session: Session, job_id: UUID, turn: int | None, attempt: int | None) -> bytes:
    """Of the last attempt, where none is named."""
    from stepladder.engine.wire import encode

    overview = await session.job(job_id)
    if turn is None:
        raise BadInputError("--request is of one turn", remedy=f"write --turn N; the job has {overview.turn_count}")
    [one] = _turns(await session.reads.turns(job_id), overview, turn, attempt)
    sent = await session.reads.request(_last(one).id)
    if sent is None:
        raise LookupError(f"an attempt of job {job_id} is there and is not")
    return encode(sent.body)


def _last(turn: Turn) -> Attempt:
    if not turn.attempts:
        remedy = "it was taken over from another job: see replay_of" if turn.carried else "look again in a moment"
        raise BadInputError(f"turn {turn.ordinal} was never asked here", remedy=remedy)
    return turn.attempts[-1]


def _write(body: bytes) -> None:
    """To a file or a program the bytes themselves; to a person the same JSON, which cannot steer the terminal."""
    if sys.stdout.isatty():
        console().print(printable(json.dumps(json.loads(body), ensure_ascii=False, indent=2)), markup=False)
        return
    sys.stdout.buffer.write(body)
    sys.stdout.buffer.flush()
