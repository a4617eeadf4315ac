"""The command ``stepladder``."""

from __future__ import annotations

import sys

import typer

from stepladder.cli import database, lint, run, show
from stepladder.cli.output import Exit, complain, console
from stepladder.schemas.errors import StepladderError

app = typer.Typer(
    name="stepladder",
    help="Durable multi-turn agents on a self-hosted engine.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("run")(run.run)
app.command("show")(show.show)
app.command("lint")(lint.lint)
app.command("migrate")(database.migrate)
app.command("psql", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(database.psql)


def main() -> None:
    """Entry point. Whatever a person can act on becomes a message and a code; a bug keeps its traceback."""
    try:
        app()
    except StepladderError as error:
        sys.exit(complain(error))
    except KeyboardInterrupt:
        console(error=True).print("interrupted")
        sys.exit(Exit.INTERRUPTED)
