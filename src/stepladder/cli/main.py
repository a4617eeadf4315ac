"""The command ``stepladder``."""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from stepladder.cli import (
    api,
    control,
    database,
    diff,
    experiment,
    export,
    jobs,
    judge,
    lint,
    replay,
    retention,
    run,
    show,
    stats,
    submit,
    up,
    versions,
    watch,
    worker,
)
from stepladder.cli.output import Exit, console, print_error
from stepladder.schemas.errors import StepladderError

app = typer.Typer(
    name="stepladder",
    help="Durable multi-turn agents on a self-hosted engine.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("up")(up.up)
app.command("run")(run.run)
app.command("lint")(lint.lint)
app.command("judge")(judge.judge)
app.command("publish")(submit.publish)
app.command("submit")(submit.submit)
app.command("jobs")(jobs.jobs)
app.command("show")(show.show)
app.command("watch")(watch.watch)
app.command("diff")(diff.diff)
app.command("stability")(experiment.stability)
app.add_typer(experiment.experiment, name="experiment")
app.command("replay")(replay.replay)
app.command("export")(export.export)
app.command("stats")(stats.stats)
app.command("signal")(control.signal)
app.command("settle")(control.settle)
app.command("cancel")(control.cancel)
app.command("pause")(control.pause)
app.command("unpause")(control.unpause)
app.command("hold")(control.hold)
app.command("release")(control.release)
app.command("retain")(retention.retain)
app.command("workflows")(versions.workflows)
app.command("retire")(versions.retire)
app.command("unretire")(versions.unretire)
app.command("worker")(worker.worker)
app.command("api")(api.api)
app.command("migrate")(database.migrate)
app.command("db-url")(database.db_url)
app.command("psql", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(database.psql)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"stepladder {version('stepladder')}")
        raise typer.Exit


@app.callback()
def _options(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="print the version and exit")
    ] = False,
) -> None:
    """Durable multi-turn agents on a self-hosted engine."""
    del show_version


def main() -> None:
    """Entry point. Expected errors become a message and an exit code; a bug keeps its traceback."""
    try:
        app()
    except StepladderError as error:
        sys.exit(print_error(error))
    except KeyboardInterrupt:
        console(error=True).print("interrupted")
        sys.exit(Exit.INTERRUPTED)


if __name__ == "__main__":
    main()
