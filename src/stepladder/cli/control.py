"""Commands that act on an existing job: signal, settle, cancel, pause, unpause, hold and release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, assert_never
from uuid import UUID, uuid5

import typer

from stepladder.cli import versions
from stepladder.cli.arguments import parse_json
from stepladder.cli.options import App, AsJson, JobId, Key, MaybeJob
from stepladder.cli.output import coloured, console, hint, print_json
from stepladder.schemas.actor import LOCAL
from stepladder.schemas.errors import BadInputError
from stepladder.wiring.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from stepladder.cli.session import Session
    from stepladder.models.records import Receipt
    from stepladder.schemas.jsontypes import Json
    from stepladder.schemas.responses import Job
    from stepladder.wiring.settings import Settings
    from stepladder.workflows.events import Settled

OfWorkflow = Annotated[str | None, typer.Option("--workflow", metavar="NAME", help="all jobs of this workflow")]
OfVersion = Annotated[int | None, typer.Option("--version", min=1, help="only this version of --workflow")]

CANCEL = "cancellation requested"


def cancel(job_id: JobId, as_json: AsJson = False) -> None:
    """Cancel a job. A running request is aborted."""
    _change(job_id, lambda session: session.store.request_cancel(job_id), CANCEL, as_json=as_json)


def pause(
    job_id: MaybeJob = None, workflow: OfWorkflow = None, version: OfVersion = None, as_json: AsJson = False
) -> None:
    """Pause a job, or all jobs of a workflow. A running attempt or tool is finished first, and deadlines are suspended.

    New jobs of a paused workflow are accepted, and wait.
    """
    from stepladder.models.versions import pause

    if job := _named_job(job_id, workflow, version):
        _change(job, lambda session: session.store.pause(job, LOCAL.name), "paused", as_json=as_json)
    elif name := workflow:
        versions.switch(name, version, lambda session: pause(session.store, name, version, LOCAL.name), as_json=as_json)


def unpause(
    job_id: MaybeJob = None, workflow: OfWorkflow = None, version: OfVersion = None, as_json: AsJson = False
) -> None:
    """Continue a paused job, or the jobs of a paused workflow."""
    from stepladder.models.versions import unpause

    if job := _named_job(job_id, workflow, version):
        _change(job, lambda session: session.store.unpause(job, LOCAL.name), "unpaused", as_json=as_json)
    elif name := workflow:
        versions.switch(
            name, version, lambda session: unpause(session.store, name, version, LOCAL.name), as_json=as_json
        )


def _named_job(job_id: UUID | None, workflow: str | None, version: int | None) -> UUID | None:
    """The job, or None if a workflow is named. Raises ``BadInputError`` unless one of the two is named."""
    if (job_id is None) == (not workflow):
        raise BadInputError("name a job or a workflow", remedy="write JOB, or --workflow NAME")
    if job_id is not None and version is not None:
        raise BadInputError("--version needs --workflow", remedy="write --workflow NAME --version N, or leave it out")
    return job_id


def hold(job_id: JobId, as_json: AsJson = False) -> None:
    """Exempt a job's raw answers and history from retention."""
    from stepladder.models import retention

    _change(
        job_id,
        lambda session: retention.hold(session.store.database, job_id, LOCAL.name),
        "exempt from retention",
        as_json=as_json,
        notify=False,
    )


def release(job_id: JobId, as_json: AsJson = False) -> None:
    """Subject a job's raw answers and history to retention again."""
    from stepladder.models import retention

    _change(
        job_id,
        lambda session: retention.release(session.store.database, job_id),
        "subject to retention",
        as_json=as_json,
        notify=False,
    )


def _change(
    job_id: UUID,
    change: Callable[[Session], Awaitable[Receipt]],
    done: str,
    *,
    as_json: bool,
    notify: bool = True,
) -> None:
    from stepladder.cli.session import in_session

    async def changed(session: Session) -> tuple[Job, Receipt]:
        from stepladder.models.records import Receipt

        await session.job(job_id)
        receipt = await change(session)
        if receipt is Receipt.ACCEPTED and notify:
            session.notify([job_id])
        job = await session.job(job_id)
        if receipt in (Receipt.FINAL, Receipt.UNKNOWN) and (done, job.status) != (CANCEL, "cancelled"):
            raise _ended(job)
        return job, receipt

    job, receipt = in_session(load_settings(), changed)
    _print(job, done if receipt.value == "accepted" else "nothing changed", as_json=as_json)


def signal(
    job_id: JobId,
    name: Annotated[str, typer.Argument(metavar="NAME", help="the signal's name")],
    data: Annotated[str, typer.Option(metavar="JSON|@FILE", help="the payload")],
    key: Key = None,
    app: App = None,
    as_json: AsJson = False,
) -> None:
    """Send a signal to a job. It is checked against the open wait; an early signal is stored."""
    from stepladder.cli.session import in_session

    payload, settings = parse_json(data, "--data"), load_settings(app=app)
    job, receipt = in_session(settings, lambda session: _signal(session, settings, job_id, name, payload, key))
    again = "" if receipt.value == "accepted" else " already"
    _print(job, f"signal {name} received{again}", as_json=as_json)


async def _signal(
    session: Session, settings: Settings, job_id: UUID, name: str, payload: Json, key: str | None
) -> tuple[Job, Receipt]:
    from stepladder.models.ids import uuid7
    from stepladder.models.records import Receipt
    from stepladder.runner.machines import Machines
    from stepladder.services.signals import Forbidden, TooEarly, Unfit, refusal
    from stepladder.wiring.app import kit_of

    signal_id = uuid7() if key is None else _signal_id(job_id, key)
    before = await session.job(job_id)
    if key is not None and (sent := await session.store.sent_signal(job_id, signal_id)) is not None:
        if sent != (name, payload, LOCAL.name):
            message = f"the key {key!r} was used for another signal to job {job_id}"
            raise BadInputError(message, remedy="send the same payload again, or use a new key")
        return before, Receipt.DUPLICATE
    if before.status.final:
        raise _ended(before)
    machine = await Machines(session.store, kit_of(settings)).get(before.workflow, before.version)
    wait = await session.reads.open_wait(job_id) if before.waiting_for == name else None
    match refusal(machine, wait, name, payload, LOCAL, before.principal):
        case None:
            pass
        case Unfit(reason):
            raise BadInputError(f"signal rejected: {reason}", remedy="fix it; the job keeps waiting")
        case Forbidden(reason):
            remedy = "send it over HTTP with the API key of someone who may; this command acts as `local`"
            raise BadInputError(reason, remedy=remedy)
        case TooEarly(reason):
            raise BadInputError(reason, remedy="send it once the job waits for it")
        case other:
            assert_never(other)
    receipt = await session.store.signal(job_id, signal_id, name, payload)
    if receipt in (Receipt.FINAL, Receipt.UNKNOWN):
        raise _ended(await session.job(job_id))
    session.notify([job_id])
    return await session.job(job_id), receipt


def _signal_id(job_id: UUID, key: str) -> UUID:
    """The same as in the HTTP API, so that it recognizes the signal."""
    try:
        return UUID(key)
    except ValueError:
        return uuid5(job_id, key)


def settle(
    job_id: JobId,
    done: Annotated[str | None, typer.Option(metavar="JSON|@FILE", help="it took effect, with this result")] = None,
    not_done: Annotated[bool, typer.Option("--not-done", help="it did not take effect")] = False,
    key: Annotated[str | None, typer.Option(help="the call's idempotency key, to be sure which one is meant")] = None,
    app: App = None,
    as_json: AsJson = False,
) -> None:
    """State whether an irreversible tool took effect, after its worker died or lost contact with it."""
    from stepladder.cli.session import in_session
    from stepladder.workflows.events import Settled

    if (done is None) is not not_done:
        remedy = "write --done JSON if it did, or --not-done if it did not"
        raise BadInputError("state whether the tool took effect", remedy=remedy)
    result = None if done is None else parse_json(done, "--done")
    settings, statement = load_settings(app=app), Settled(not not_done, result, LOCAL.name)
    job, new = in_session(settings, lambda session: _settle(session, settings, job_id, statement, key))
    _print(job, "settled" if new else "settled already", as_json=as_json)


async def _settle(
    session: Session, settings: Settings, job_id: UUID, statement: Settled, key: str | None
) -> tuple[Job, bool]:
    """The job afterwards, and whether the statement is new."""
    from stepladder.models.records import Settling
    from stepladder.runner.machines import Machines
    from stepladder.services.settlement import Misfit, NotKept
    from stepladder.services.settlement import settle as keep
    from stepladder.wiring.app import kit_of

    before = await session.job(job_id)
    machines = Machines(session.store, kit_of(settings))
    match await keep(session.store, session.reads, machines, before, statement, key):
        case Misfit(tool, violations):
            lines = "\n".join(f"  {violation.pointer or '/'}: {violation.reason}" for violation in violations)
            remedy = "write --done with the result as the tool would have returned it; nothing was stored"
            raise BadInputError(f"{tool} cannot return this result:\n{lines}", remedy=remedy)
        case NotKept(_, reason):
            raise BadInputError(f"job {job_id}: {reason}", remedy=f"see it: stepladder show {job_id}")
        case settling:
            if settling is Settling.ACCEPTED:
                session.notify([job_id])
            return await session.job(job_id), settling is Settling.ACCEPTED


def _ended(job: Job) -> BadInputError:
    state = f"has ended: {job.status}" if job.status.final else "is being cancelled"
    return BadInputError(f"job {job.id} {state}", remedy=f"see it: stepladder show {job.id}")


def _print(job: Job, done: str, *, as_json: bool) -> None:
    if as_json:
        print_json(job)
        return
    console().print(f"job {job.id}: {done}; status {coloured(job.status)}")
    if job.workflow_paused:
        hint(f"its workflow is paused: stepladder unpause --workflow {job.workflow}")
