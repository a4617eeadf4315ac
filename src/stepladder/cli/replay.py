"""``stepladder replay``: judge stored answers again, or start new jobs from earlier ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from stepladder.cli import bulk, revalidate
from stepladder.cli.arguments import parse_changes, parse_json, parse_where, refusal
from stepladder.cli.options import App, AsJson, Key, MaybeJob, Where
from stepladder.cli.output import console, hint, plural, print_json
from stepladder.schemas.errors import BadInputError
from stepladder.schemas.replay import Mode
from stepladder.wiring.settings import load_settings

if TYPE_CHECKING:
    from uuid import UUID

    from stepladder.cli.session import Session
    from stepladder.schemas.responses import Job
    from stepladder.schemas.tool import Kit
    from stepladder.services.replays import Prepared, Wanted

MAX_TURN = 2**31 - 1
MAX_MISFITS = 5


def replay(
    job_id: MaybeJob = None,
    mode: Annotated[Mode | None, typer.Option(help="judge again, continue, or continue with changes")] = None,
    from_turn: Annotated[
        int | None, typer.Option(min=1, max=MAX_TURN, help="ask this turn again; earlier ones are carried over")
    ] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="change the document, or version=N")
    ] = None,
    document: Annotated[
        str | None, typer.Option("--with", metavar="DOC", help="revalidate: judge by this document")
    ] = None,
    where: Where = None,
    value: Annotated[str | None, typer.Option("--input", metavar="JSON|@FILE", help="fork: another input")] = None,
    key: Key = None,
    wait: Annotated[bool, typer.Option("--wait", help="follow the new job until it ends")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="with --where: print what it would do and cost")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="with --where: do not ask for confirmation")] = False,
    concurrency: Annotated[int, typer.Option(min=1, max=1000, help="with --where: replays at once")] = 10,
    follow: Annotated[
        str | None, typer.Option(metavar="ORDER", help="follow the replays of an earlier --where")
    ] = None,
    stop: Annotated[
        str | None, typer.Option(metavar="ORDER", help="start no more replays of an earlier --where")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="with --where: at most this many jobs")] = None,
    app: App = None,
    as_json: AsJson = False,
) -> None:
    """Judge stored answers again (revalidate), continue where a job failed (resume), or from any turn (fork).

    Revalidate asks no engine and writes nothing; its exit code is 1 if a verdict has changed.
    """
    from stepladder.cli.session import in_session
    from stepladder.services.replays import Wanted
    from stepladder.wiring.app import kit_of

    settings = load_settings(app=app)
    if stop is not None or follow is not None:
        bulk.stop(settings, stop, as_json=as_json) if stop else bulk.follow(settings, follow or "", as_json=as_json)
        return
    if mode is None:
        raise BadInputError("--mode is missing", remedy="--mode revalidate, --mode resume or --mode fork")
    if (job_id is None) == (not where):
        raise BadInputError("name one job, or many with --where", remedy="stepladder replay JOB, or --where KEY=VALUE")
    given = () if value is None else (parse_json(value, "--input"),)
    wanted = Wanted(mode, from_turn, parse_changes(changes or []), given)
    if mode is Mode.REVALIDATE:
        _check_revalidate(wanted, document, wait=wait)
        jobs = job_id or parse_where(where or [])
        revalidate.revalidate(settings, jobs, wanted.changes, document, limit, as_json=as_json)
        return
    if document is not None:
        raise BadInputError("--with needs --mode revalidate", remedy="publish DOC, and fork with --set version=N")
    if job_id is None:
        flags = {"dry_run": dry_run, "yes": yes, "wait": wait, "as_json": as_json}
        bulk.replay_many(settings, parse_where(where or []), wanted, concurrency, key, **flags)
        return
    if dry_run:
        raise BadInputError("--dry-run needs --where", remedy="for one job leave it out, or cancel the new job")
    old, kit = job_id, kit_of(settings)
    new, prepared = in_session(settings, lambda session: _start(session, kit, old, wanted, key))
    if not as_json or wait:
        _print_start(old, prepared)
    if wait:
        from stepladder.cli.watch import wait_for_end

        wait_for_end(settings, new.id, as_json=as_json)
    if as_json:
        print_json(new)
        return
    console().print(str(new.id))
    hint(f"watch it: stepladder watch {new.id}")


def _check_revalidate(wanted: Wanted, document: str | None, *, wait: bool) -> None:
    if wanted.from_turn is not None or wanted.input or wait:
        flag = "--from-turn" if wanted.from_turn is not None else "--input" if wanted.input else "--wait"
        raise BadInputError(f"{flag} has no meaning with --mode revalidate", remedy="leave it out")
    if document is not None and wanted.changes:
        raise BadInputError("--with and --set exclude each other", remedy="write the changes into the document")


async def _start(
    session: Session, kit: Kit, job_id: UUID, wanted: Wanted, key: str | None
) -> tuple[Job, Prepared | None]:
    """The new job; without ``Prepared``, an earlier request under the same key wrote it."""
    from stepladder.models.records import KeyTaken
    from stepladder.schemas.actor import LOCAL
    from stepladder.workflows.replay import Refused

    await session.job(job_id)
    found = await session.replays(kit).start(job_id, wanted, LOCAL, key)
    if isinstance(found, Refused):
        raise refusal(found)
    if isinstance(found, KeyTaken):
        message = f"the idempotency key {key!r} was used for another request"
        raise BadInputError(message, remedy="repeat that request, or use a new key; nothing was stored")
    if found is None:
        raise LookupError(f"job {job_id} has vanished from the store")
    return await session.job(found.job_id), found.prepared


def _print_start(old: UUID, prepared: Prepared | None) -> None:
    """What the new job starts with."""
    if prepared is None:
        hint("this key was used before: the same job")
        return
    job = prepared.new.job
    if job.state is None:
        hint(f"starts anew with the input of job {old}")
        return
    turns, others = plural(job.turn_count, "turn"), plural(len(job.visits) - job.turn_count, "other visit")
    hint(f"continues in state {job.state} at turn {prepared.from_turn}; carried over {turns} and {others} of job {old}")
    for turn, violation in prepared.misfits[:MAX_MISFITS]:
        hint(f"the carried output of turn {turn} breaks its schema now: {violation.pointer or '/'} {violation.reason}")
