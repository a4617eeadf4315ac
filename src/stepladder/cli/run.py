"""``stepladder run``: one job, in this process, from its document to its end."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import Annotated

import typer

from stepladder.cli.output import Exit, console, print_json
from stepladder.schemas.job import CHILDREN, SETTLEMENT, JobStatus
from stepladder.wiring.settings import load_settings


def run(
    document: Annotated[str | None, typer.Argument(metavar="DOC", help="YAML or JSON file, or MODULE:NAME")] = None,
    value: Annotated[str, typer.Option("--input", metavar="JSON|@FILE", help="the job's input")] = "{}",
    signal: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=JSON", help="what to answer when the job waits for signal NAME; may be repeated"),
    ] = None,
    also: Annotated[
        list[str] | None, typer.Option(metavar="DOC", help="a document that is called; may be repeated")
    ] = None,
    job: Annotated[str | None, typer.Option(help="go on with this job, in place of a new one")] = None,
    app: Annotated[str | None, typer.Option(help="Python module, or .py file, that registers tools and rules")] = None,
    model: Annotated[str | None, typer.Option(help="model to ask for; else the first that the engine lists")] = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="the job and its turns as one JSON document")] = False,
) -> None:
    """Run one job of a workflow here and now, without a broker."""
    from stepladder.cli import view
    from stepladder.cli.progress import Progress
    from stepladder.cli.running import carry_out, order_of
    from stepladder.wiring import servers
    from stepladder.wiring.logs import configure_logs

    settings = load_settings(app=app, model=model, log_level=log_level)
    configure_logs(settings.log_level or "warning")
    order = order_of(settings, document, value, job, signal or [], also or [])
    progress = console(error=True)
    with ExitStack() as stack:
        status = stack.enter_context(progress.status("starting"))
        url = stack.enter_context(servers.database(settings, status.update))
        engine_url = stack.enter_context(servers.engine(settings, status.update))
        done, turns = asyncio.run(carry_out(settings, url, engine_url, order, Progress(progress, status)))
    if as_json:
        print_json(view.as_json(done, turns))
    else:
        view.print_job(console(), done, turns)
    progress.print(f"look further: stepladder show {done.id} --raw", style="dim")
    if done.waiting_for == SETTLEMENT:
        progress.print(f"then go on: stepladder run --job {done.id}", style="dim")
    elif done.waiting_for == CHILDREN:
        progress.print(f"it waits for jobs that it called: stepladder jobs --parent {done.id}", style="dim")
    elif done.status is JobStatus.WAITING:
        progress.print(f"go on: stepladder run --job {done.id} --signal {done.waiting_for}=JSON", style="dim")
    raise typer.Exit(Exit.FAILED if done.status in (JobStatus.FAILED, JobStatus.CANCELLED) else Exit.DONE)
