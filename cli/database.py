"""``stepladder migrate`` and ``stepladder psql``."""

from __future__ import annotations

import subprocess
from typing import Annotated

import typer

from stepladder.cli.output import console
from stepladder.embedded.postgres import psql_path
from stepladder.models import migrate as migrations
from stepladder.wiring import servers
from stepladder.wiring.settings import load_settings


def migrate(revision: Annotated[str, typer.Argument(help="revision to bring the tables up to")] = "head") -> None:
    """Bring the database's tables up to date."""
    with servers.database(load_settings(), lambda _: None) as url:
        migrations.upgrade(url, revision)
        console().print(f"the tables are at revision {migrations.current(url)}")


def psql(context: typer.Context) -> None:
    """Open psql on the database, an embedded one too; what follows goes to psql, e.g. -c "SELECT ..."."""
    with servers.database(load_settings(), lambda _: None) as url:
        command = [str(psql_path()), url, *context.args]
        code = subprocess.run(command, check=False).returncode  # noqa: S603 -- the user's own words for the user's own psql
    raise typer.Exit(code)
