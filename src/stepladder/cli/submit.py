"""``stepladder publish`` and ``stepladder submit``: a workflow, and a job of it, for the workers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stepladder.cli.arguments import parse_json, parse_pairs
from stepladder.cli.lint import print_warning_count
from stepladder.cli.options import App, AsJson, Input, Key
from stepladder.cli.output import console, escape, hint, print_json
from stepladder.schemas.actor import LOCAL
from stepladder.schemas.errors import BadInputError
from stepladder.schemas.submission import LONGEST_DEADLINE_S
from stepladder.wiring.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stepladder.cli.session import Session
    from stepladder.schemas.responses import Job
    from stepladder.schemas.submission import JobRequest
    from stepladder.schemas.tool import Kit
    from stepladder.workflows.machine import Machine

SUFFIXES = (".yaml", ".yml", ".json")
MAX_WARNINGS = 3  # printed in full


def publish(
    document: Annotated[str, typer.Argument(metavar="DOC", help="YAML or JSON file, or MODULE:NAME")],
    app: App = None,
    as_json: AsJson = False,
) -> None:
    """Publish a workflow under its name and version, so that jobs of it can be submitted by name."""
    from stepladder.cli.session import in_session
    from stepladder.lint.graph import nobody_else
    from stepladder.services.submission import publish as write
    from stepladder.wiring.app import kit_of, load_machine

    settings = load_settings(app=app)
    machine, warnings = load_machine(document, kit_of(settings, document))
    if settings.api_keys is None:
        warnings = (*warnings, *nobody_else(machine.document))
    published = in_session(settings, lambda session: write(session.store, machine))
    if as_json:
        print_json({"name": machine.name, "version": machine.version, "status": published, "warnings": warnings})
        return
    for warning in warnings[:MAX_WARNINGS]:
        console(error=True).print(f"[yellow]{warning.severity}[/] {escape(str(warning))}")
    if len(warnings) > MAX_WARNINGS:
        print_warning_count(document, warnings)
    again = "" if published.value == "published" else " already"
    console().print(f"{machine.name} {machine.version} is published{again}")
    hint(f"submit a job of it: stepladder submit {machine.name} --input JSON")


def submit(
    workflow: Annotated[str, typer.Argument(metavar="NAME|DOC", help="a published workflow, or a document")],
    value: Input = "{}",
    version: Annotated[int | None, typer.Option(min=1, help="default: the highest that is not retired")] = None,
    key: Key = None,
    wait: Annotated[bool, typer.Option("--wait", help="follow the job until it ends")] = False,
    priority: Annotated[int | None, typer.Option(min=-1000, max=1000, help="a higher one runs first")] = None,
    metadata: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="to find the job by")] = None,
    deadline_s: Annotated[float | None, typer.Option(min=0, max=LONGEST_DEADLINE_S, help="seconds")] = None,
    token_budget: Annotated[int | None, typer.Option(min=0, max=2**53 - 1, help="tokens of all attempts")] = None,
    app: App = None,
    as_json: AsJson = False,
) -> None:
    """Submit a job for the workers. A document is published first.

    With --wait the exit code is 1 if the job fails or is cancelled.
    """
    from stepladder.cli.session import in_session
    from stepladder.wiring.app import kit_of, load_machine

    settings = load_settings(app=app)
    document = workflow if _is_document(workflow) else None
    kit = kit_of(settings, document)
    machine, warnings = (None, ()) if document is None else load_machine(document, kit)
    print_warning_count(workflow, warnings)
    if machine is not None and version not in (None, machine.version):
        raise BadInputError(f"{workflow} is version {machine.version}, not {version}", remedy="leave out --version")
    given = {
        "version": version if machine is None else machine.version,
        "priority": priority,
        "deadline_s": deadline_s,
        "token_budget": token_budget,
        "metadata": parse_pairs(metadata, "--metadata") if metadata else None,
    }
    named = {"workflow": workflow if machine is None else machine.name, "input": parse_json(value, "--input")}
    wanted = _request(named | {name: one for name, one in given.items() if one is not None})
    job = in_session(settings, lambda session: _submit(session, kit, machine, wanted, key))
    if wait:
        from stepladder.cli.watch import wait_for_end

        wait_for_end(settings, job.id, as_json=as_json)
    if as_json:
        print_json(job)
        return
    console().print(str(job.id))
    hint(f"watch it: stepladder watch {job.id}")


def _is_document(word: str) -> bool:
    """A workflow's name contains no dot, slash or colon."""
    return word.endswith(SUFFIXES) or ":" in word or "/" in word or Path(word).is_file()


def _request(given: Mapping[str, Any]) -> JobRequest:
    from pydantic import ValidationError

    from stepladder.schemas.submission import JobRequest

    try:
        return JobRequest.model_validate(given)
    except ValidationError as error:
        lines = "".join(f"\n  /{'/'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        raise BadInputError(f"the job cannot be submitted:{lines}", remedy="fix it; nothing was stored") from None


async def _submit(session: Session, kit: Kit, machine: Machine | None, wanted: JobRequest, key: str | None) -> Job:
    from stepladder.runner.machines import Machines
    from stepladder.services.submission import Submissions, accepted, check_input
    from stepladder.services.submission import publish as write

    if machine is not None:
        check_input(machine, wanted.input)
        await write(session.store, machine)
    submissions = Submissions(session.store, session.reads, Machines(session.store, kit), session.notify)
    [job] = accepted(await submissions.submit([wanted], LOCAL, key)).jobs
    return job
