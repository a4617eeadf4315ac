"""``stepladder signal``, ``cancel``, ``pause`` and ``unpause``: what is said to a job while it lives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, assert_never
from uuid import UUID, uuid5

import typer

from stepladder.cli.arguments import parse_job_id, parse_json
from stepladder.cli.output import console, escape, say_json
from stepladder.schemas.errors import BadInputError
from stepladder.wiring.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from stepladder.cli.desk import Desk
    from stepladder.models.reads import Overview
    from stepladder.models.records import Receipt
    from stepladder.schemas.jsontypes import Json
    from stepladder.wiring.settings import Settings

Job = Annotated[str, typer.Argument(metavar="JOB", help="the job's id")]
AsJson = Annotated[bool, typer.Option("--json", help="the job as it stands then, as JSON")]


def cancel(job: Job, as_json: AsJson = False) -> None:
    """Ask for a job to end. A request that is under way is broken off."""
    _change(job, lambda desk, job_id: desk.store.request_cancel(job_id), "is asked to end", "cancelled", as_json)


def pause(job: Job, as_json: AsJson = False) -> None:
    """Let nobody go on with a job. An attempt under way is finished, and the deadline stands still."""
    from stepladder.cli.desk import PRINCIPAL

    _change(job, lambda desk, job_id: desk.store.pause(job_id, PRINCIPAL), "is paused", None, as_json)


def unpause(job: Job, as_json: AsJson = False) -> None:
    """Let a paused job go on where it was."""
    from stepladder.cli.desk import PRINCIPAL

    _change(job, lambda desk, job_id: desk.store.unpause(job_id, PRINCIPAL), "goes on", None, as_json)


def _change(
    job: str, ask: Callable[[Desk, UUID], Awaitable[Receipt]], done: str, already: str | None, as_json: bool
) -> None:
    """``already`` is the status of an ended job that is what was asked for."""
    from stepladder.cli.desk import at_desk

    async def change(desk: Desk) -> tuple[Overview, Receipt]:
        from stepladder.models.records import Receipt

        before = await desk.job(job_id)
        receipt = await ask(desk, job_id)
        if receipt is Receipt.ACCEPTED:
            await desk.ring(job_id, before.priority)
        after = await desk.job(job_id)
        if receipt in (Receipt.FINAL, Receipt.UNKNOWN) and after.status != already:
            raise _ended(after)
        return after, receipt

    job_id = parse_job_id(job)
    now, receipt = at_desk(load_settings(), change)
    _tell(now, done if receipt.value == "accepted" else "was so already", as_json=as_json)


def signal(
    job: Job,
    name: Annotated[str, typer.Argument(metavar="NAME", help="the signal's name")],
    data: Annotated[str, typer.Option(metavar="JSON|@FILE", help="the payload")],
    key: Annotated[str | None, typer.Option("--idempotency-key", help="the same key is taken once")] = None,
    app: Annotated[str | None, typer.Option(help="Python module that registers tools and rules")] = None,
    as_json: AsJson = False,
) -> None:
    """Send a signal. What the open wait would refuse is refused here; one that comes early is kept."""
    from stepladder.cli.desk import at_desk

    job_id, payload, settings = parse_job_id(job), parse_json(data, "--data"), load_settings(app=app)
    now, receipt = at_desk(settings, lambda desk: _signal(desk, settings, job_id, name, payload, key))
    _tell(now, f"has signal {name}" + ("" if receipt.value == "accepted" else " already"), as_json=as_json)


async def _signal(
    desk: Desk, settings: Settings, job_id: UUID, name: str, payload: Json, key: str | None
) -> tuple[Overview, Receipt]:
    from stepladder.models.ids import uuid7
    from stepladder.models.records import Receipt
    from stepladder.runner.machines import Machines
    from stepladder.runner.signals import TooEarly, Unfit, refusal
    from stepladder.wiring.app import kit_of

    signal_id = uuid7() if key is None else _signal_id(job_id, key)
    before = await desk.job(job_id)
    if key is not None and (sent := await desk.store.sent_signal(job_id, signal_id)) is not None:
        if sent != (name, payload):
            message = f"another signal came to job {job_id} under the key {key!r}"
            raise BadInputError(message, remedy="send the same payload again, or use a new key")
        return before, Receipt.DUPLICATE
    if before.status.final:
        raise _ended(before)
    machine = await Machines(desk.store, kit_of(settings)).get(before.workflow, before.version)
    wait = await desk.reads.open_wait(job_id) if before.waiting_for == name else None
    match refusal(machine, wait, name, payload):
        case None:
            pass
        case Unfit(reason):
            raise BadInputError(f"the signal is of no use: {reason}", remedy="mend it; the job waits on")
        case TooEarly(reason):
            raise BadInputError(reason, remedy="send it once the job waits for it")
        case other:
            assert_never(other)
    receipt = await desk.store.signal(job_id, signal_id, name, payload)
    if receipt in (Receipt.FINAL, Receipt.UNKNOWN):
        raise _ended(await desk.job(job_id))
    await desk.ring(job_id, before.priority)
    return await desk.job(job_id), receipt


def _signal_id(job_id: UUID, key: str) -> UUID:
    """As the HTTP API does it, so that a signal is known again there."""
    try:
        return UUID(key)
    except ValueError:
        return uuid5(job_id, key)


def _ended(job: Overview) -> BadInputError:
    said = f"has ended: {job.status}" if job.status.final else "is being cancelled"
    return BadInputError(f"job {job.id} {said}", remedy=f"see it: stepladder show {job.id}")


def _tell(job: Overview, said: str, *, as_json: bool) -> None:
    from stepladder.cli.view import coloured, job_json

    if as_json:
        say_json(job_json(job))
        return
    console().print(f"job {job.id} {escape(said)}; it is {coloured(job.status)}")
