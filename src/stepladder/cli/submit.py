"""``stepladder publish`` and ``stepladder submit``: a workflow, and a job of it, for the workers."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stepladder.cli.arguments import parse_json, parse_pairs
from stepladder.cli.lint import mention
from stepladder.cli.output import console, escape, print_json
from stepladder.schemas.errors import BadInputError
from stepladder.wiring.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stepladder.cli.session import Session
    from stepladder.schemas.jsontypes import Json
    from stepladder.schemas.responses import Job
    from stepladder.schemas.tool import Kit
    from stepladder.workflows.machine import Machine

SUFFIXES = (".yaml", ".yml", ".json")
MOST_WARNINGS = 3  # in full; `lint` has them all
LONGEST_DEADLINE_S = 10 * 365 * 86400.0

App = Annotated[str | None, typer.Option(help="Python module, or .py file, that registers tools and rules")]


def publish(
    document: Annotated[str, typer.Argument(metavar="DOC", help="YAML or JSON file, or MODULE:NAME")],
    app: App = None,
    as_json: Annotated[bool, typer.Option("--json", help="as one JSON document")] = False,
) -> None:
    """Publish a workflow under its name and version, so that jobs of it can be submitted by name."""
    from stepladder.cli.session import in_session
    from stepladder.lint.confirm import nobody_else
    from stepladder.services.submission import publish as write
    from stepladder.wiring.app import kit_of, load_machine

    settings = load_settings(app=app)
    machine, warnings = load_machine(document, kit_of(settings, document))
    if settings.api_keys is None:
        warnings = (*warnings, *nobody_else(machine.document))
    published = in_session(settings, lambda session: write(session.store, machine))
    if as_json:
        found = [asdict(warning) for warning in warnings]
        print_json({"name": machine.name, "version": machine.version, "status": published, "warnings": found})
        return
    for warning in warnings[:MOST_WARNINGS]:
        console(error=True).print(f"[yellow]{warning.severity}[/] {escape(str(warning))}")
    if len(warnings) > MOST_WARNINGS:
        mention(document, warnings)
    again = "" if published.value == "published" else " already"
    console().print(f"{machine.name} {machine.version} is published{again}")
    console(error=True).print(f"submit a job of it: stepladder submit {machine.name} --input JSON", style="dim")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A job as it was typed. ``given`` are the fields beside workflow and input, as the HTTP API names them."""

    workflow: str
    value: Json
    given: Mapping[str, Any] = field(default_factory=dict)
    key: str | None = None


def submit(
    workflow: Annotated[str, typer.Argument(metavar="NAME|DOC", help="a published workflow, or a document")],
    value: Annotated[str, typer.Option("--input", metavar="JSON|@FILE", help="the job's input")] = "{}",
    version: Annotated[int | None, typer.Option(min=1, help="else the highest that is not retired")] = None,
    key: Annotated[str | None, typer.Option("--idempotency-key", help="the same key again gives the same job")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="follow the job until it ends")] = False,
    priority: Annotated[int | None, typer.Option(min=-1000, max=1000, help="a higher one is done first")] = None,
    metadata: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="words to find the job by")] = None,
    deadline_s: Annotated[float | None, typer.Option(min=0, max=LONGEST_DEADLINE_S, help="seconds")] = None,
    token_budget: Annotated[int | None, typer.Option(min=0, max=2**53 - 1, help="of all attempts")] = None,
    app: App = None,
    as_json: Annotated[bool, typer.Option("--json", help="the job as one JSON document")] = False,
) -> None:
    """Submit a job, which a worker takes. A document is published first.

    With --wait the exit code is 1 if the job fails or is cancelled.
    """
    from stepladder.cli.session import in_session
    from stepladder.wiring.app import kit_of, load_machine

    settings = load_settings(app=app)
    document = workflow if _is_document(workflow) else None
    kit = kit_of(settings, document)
    machine, warnings = (None, ()) if document is None else load_machine(document, kit)
    mention(workflow, warnings)
    if machine is not None and version not in (None, machine.version):
        raise BadInputError(f"{workflow} is version {machine.version}, and not {version}", remedy="leave out --version")
    given = {
        "version": version if machine is None else machine.version,
        "priority": priority,
        "deadline_s": deadline_s,
        "token_budget": token_budget,
        "metadata": parse_pairs(metadata, "--metadata") if metadata else None,
    }
    wanted = Wanted(
        workflow if machine is None else machine.name,
        parse_json(value, "--input"),
        {name: one for name, one in given.items() if one is not None},
        key,
    )
    job = in_session(settings, lambda session: _submit(session, kit, machine, wanted))
    if wait:
        from stepladder.cli.watch import see_to_the_end

        see_to_the_end(settings, job.id, as_json=as_json)
    if as_json:
        print_json(job)
        return
    console().print(str(job.id))
    console(error=True).print(f"watch it: stepladder watch {job.id}", style="dim")


def _is_document(word: str) -> bool:
    """A published name is never a file's: it has neither dot nor slash nor colon."""
    return word.endswith(SUFFIXES) or ":" in word or "/" in word or Path(word).is_file()


async def _submit(session: Session, kit: Kit, machine: Machine | None, wanted: Wanted) -> Job:
    from stepladder.cli.session import PRINCIPAL
    from stepladder.models.records import KeyTaken, NewJob, Retired, SubmissionKey
    from stepladder.schemas.canonical import content_hash
    from stepladder.services.orders import Order, prepare
    from stepladder.services.submission import publish as write
    from stepladder.services.submission import retired

    order = Order(wanted.workflow, wanted.value, **wanted.given)
    known = machine or await _published(session, kit, order.workflow, order.version)
    new = prepare(known, order, datetime.now(UTC))
    if not isinstance(new, NewJob):
        lines = "".join(f"\n  {one.pointer or '/'}: {one.reason}" for one in new)
        message = f"the input does not fit workflow {known.name} {known.version}:{lines}"
        raise BadInputError(message, remedy="mend the input; nothing was stored")
    if machine is not None:
        await write(session.store, machine)
    # What the HTTP API would be sent: the same key leads to the same job there.
    body = {"workflow": wanted.workflow, "input": wanted.value, **wanted.given}
    key = None if wanted.key is None else SubmissionKey(PRINCIPAL, wanted.key, content_hash(["jobs", body]))
    written = await session.store.submit_many([new], key)
    if isinstance(written, Retired):
        message, remedy = retired(known.name, known.version, await session.store.workflow(known.name))
        raise BadInputError(message, remedy=f"{remedy}; nothing was stored")
    if isinstance(written, KeyTaken):
        message = f"the idempotency key {wanted.key!r} is taken by a submission of something else"
        raise BadInputError(message, remedy="submit the same again, or use a new key; nothing was stored")
    [job_id] = written.job_ids
    if not written.again:
        await session.notify(job_id)
    return await session.job(job_id)


async def _published(session: Session, kit: Kit, name: str, version: int | None) -> Machine:
    from stepladder.runner.machines import Machines

    row = await session.store.workflow(name, version)
    if row is not None:
        return await Machines(session.store, kit).get(row.name, row.version)
    versions = [one for one in await session.reads.workflows() if one.name == name]
    listed = ", ".join(str(one.version) for one in versions[-20:])
    if not versions:
        raise BadInputError(f"no workflow {name} is published", remedy="publish it: stepladder publish DOC")
    if version is None:
        remedy = f"publish a new version, or: stepladder unretire {name} {versions[-1].version}"
        raise BadInputError(f"every version of workflow {name} is retired", remedy=remedy)
    raise BadInputError(f"workflow {name} has no version {version}", remedy=f"it has {listed}")
