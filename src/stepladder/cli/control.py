"""``stepladder signal``, ``settle``, ``cancel``, ``pause`` and ``unpause``: what is said to a job while it lives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, assert_never
from uuid import UUID, uuid5

import typer

from stepladder.cli import versions
from stepladder.cli.arguments import parse_job_id, parse_json
from stepladder.cli.output import console, escape, print_json
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

JobId = Annotated[str, typer.Argument(metavar="JOB", help="the job's id")]
MaybeJob = Annotated[str | None, typer.Argument(metavar="[JOB]", help="the job's id")]
OfWorkflow = Annotated[str | None, typer.Option("--workflow", metavar="NAME", help="all jobs of this workflow")]
OfVersion = Annotated[int | None, typer.Option("--version", min=1, help="of this version of it alone")]
AsJson = Annotated[bool, typer.Option("--json", help="the job as it stands then, as JSON")]


def cancel(job: JobId, as_json: AsJson = False) -> None:
    """Ask for a job to end. A request that is under way is broken off."""
    _change(job, lambda session, job_id: session.store.request_cancel(job_id), "is asked to end", "cancelled", as_json)


def pause(
    job: MaybeJob = None, workflow: OfWorkflow = None, version: OfVersion = None, as_json: AsJson = False
) -> None:
    """Let nobody go on with a job, or with all jobs of a workflow. What is under way, an attempt or a tool, is
    finished, and deadlines stand still. New jobs of a paused workflow are taken in, and wait.
    """
    from stepladder.cli.session import PRINCIPAL

    if (job := _one_of(job, workflow, version)) is None:
        versions.pause(str(workflow), version, as_json=as_json)
        return
    _change(job, lambda session, job_id: session.store.pause(job_id, PRINCIPAL), "is paused", None, as_json)


def unpause(
    job: MaybeJob = None, workflow: OfWorkflow = None, version: OfVersion = None, as_json: AsJson = False
) -> None:
    """Let a paused job, or the jobs of a paused workflow, go on where they were."""
    from stepladder.cli.session import PRINCIPAL

    if (job := _one_of(job, workflow, version)) is None:
        versions.unpause(str(workflow), version, as_json=as_json)
        return
    _change(job, lambda session, job_id: session.store.unpause(job_id, PRINCIPAL), "goes on", None, as_json)


def _one_of(job: str | None, workflow: str | None, version: int | None) -> str | None:
    """The job, or None where a workflow is meant."""
    if (job is None) == (workflow is None):
        raise BadInputError("name a job, or a workflow", remedy="write JOB, or --workflow NAME")
    if job is not None and version is not None:
        raise BadInputError("--version is a workflow's", remedy="write --workflow NAME --version N, or leave it out")
    return job


def _change(
    job: str, ask: Callable[[Session, UUID], Awaitable[Receipt]], done: str, already: str | None, as_json: bool
) -> None:
    """``already`` is the status of an ended job that is what was asked for."""
    from stepladder.cli.session import in_session

    async def change(session: Session) -> tuple[Job, Receipt]:
        from stepladder.models.records import Receipt

        await session.job(job_id)
        receipt = await ask(session, job_id)
        if receipt is Receipt.ACCEPTED:
            session.notify([job_id])
        after = await session.job(job_id)
        if receipt in (Receipt.FINAL, Receipt.UNKNOWN) and after.status != already:
            raise _ended(after)
        return after, receipt

    job_id = parse_job_id(job)
    now, receipt = in_session(load_settings(), change)
    _tell(now, done if receipt.value == "accepted" else "was so already", as_json=as_json)
    if now.workflow_paused and not as_json:
        held = f"its workflow is paused: stepladder unpause --workflow {now.workflow}"
        console(error=True).print(escape(held), style="dim")


def signal(
    job: JobId,
    name: Annotated[str, typer.Argument(metavar="NAME", help="the signal's name")],
    data: Annotated[str, typer.Option(metavar="JSON|@FILE", help="the payload")],
    key: Annotated[str | None, typer.Option("--idempotency-key", help="the same key is taken once")] = None,
    app: Annotated[str | None, typer.Option(help="Python module that registers tools and rules")] = None,
    as_json: AsJson = False,
) -> None:
    """Send a signal. What the open wait would refuse is refused here; one that comes early is kept."""
    from stepladder.cli.session import in_session

    job_id, payload, settings = parse_job_id(job), parse_json(data, "--data"), load_settings(app=app)
    now, receipt = in_session(settings, lambda session: _signal(session, settings, job_id, name, payload, key))
    _tell(now, f"has signal {name}" + ("" if receipt.value == "accepted" else " already"), as_json=as_json)


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
            message = f"another signal came to job {job_id} under the key {key!r}"
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
            raise BadInputError(f"the signal is of no use: {reason}", remedy="mend it; the job waits on")
        case Forbidden(reason):
            remedy = "send it over HTTP with the API key of somebody who may; this command is `local`"
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


def settle(
    job: JobId,
    done: Annotated[
        str | None, typer.Option(metavar="JSON|@FILE", help="it took effect, and this is the result it would have had")
    ] = None,
    not_done: Annotated[bool, typer.Option("--not-done", help="it did not take effect")] = False,
    key: Annotated[str | None, typer.Option(help="the idempotency key of the call that is meant, to be sure")] = None,
    app: Annotated[str | None, typer.Option(help="Python module that registers tools and rules")] = None,
    as_json: AsJson = False,
) -> None:
    """Say whether an irreversible tool took effect, where its worker died or did not hear of it in time."""
    from stepladder.cli.session import PRINCIPAL, in_session
    from stepladder.workflows.events import Settled

    if (done is None) is not not_done:
        remedy = "write --done JSON if it did, or --not-done if it did not"
        raise BadInputError("say whether the tool took effect", remedy=remedy)
    result = None if done is None else parse_json(done, "--done")
    job_id, settings, said = parse_job_id(job), load_settings(app=app), Settled(not not_done, result, PRINCIPAL)
    now, kept = in_session(settings, lambda session: _settle(session, settings, job_id, said, key))
    _tell(now, "is settled" if kept else "was settled so already", as_json=as_json)


async def _settle(
    session: Session, settings: Settings, job_id: UUID, said: Settled, key: str | None
) -> tuple[Job, bool]:
    """The job as it stands then, and whether this is news."""
    from stepladder.models.records import Settling
    from stepladder.runner.machines import Machines
    from stepladder.services.settlement import Misfit, NotKept
    from stepladder.services.settlement import settle as keep
    from stepladder.wiring.app import kit_of

    before = await session.job(job_id)
    machines = Machines(session.store, kit_of(settings))
    match await keep(session.store, session.reads, machines, before, said, key):
        case Misfit(tool, violations):
            lines = "\n".join(f"  {violation.pointer or '/'}: {violation.reason}" for violation in violations)
            remedy = "write --done with the result as the tool would have returned it; nothing was kept"
            raise BadInputError(f"the result is none that {tool} returns:\n{lines}", remedy=remedy)
        case NotKept(_, reason):
            raise BadInputError(f"job {job_id}: {reason}", remedy=f"see it: stepladder show {job_id}")
        case settling:
            if settling is Settling.ACCEPTED:
                session.notify([job_id])
            return await session.job(job_id), settling is Settling.ACCEPTED


def _signal_id(job_id: UUID, key: str) -> UUID:
    """As the HTTP API does it, so that a signal is known again there."""
    try:
        return UUID(key)
    except ValueError:
        return uuid5(job_id, key)


def _ended(job: Job) -> BadInputError:
    said = f"has ended: {job.status}" if job.status.final else "is being cancelled"
    return BadInputError(f"job {job.id} {said}", remedy=f"see it: stepladder show {job.id}")


def _tell(job: Job, said: str, *, as_json: bool) -> None:
    from stepladder.cli.view import coloured

    if as_json:
        print_json(job)
        return
    console().print(f"job {job.id} {escape(said)}; it is {coloured(job.status)}")
