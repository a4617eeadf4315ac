"""``stepladder migrate``, ``stepladder db-url`` and ``stepladder psql``."""

from __future__ import annotations

import subprocess
from typing import Annotated

import typer

from stepladder.cli.options import AsJson
from stepladder.cli.output import console, print_json
from stepladder.wiring.settings import load_settings


def migrate(
    revision: Annotated[str, typer.Argument(help="revision to upgrade the tables to")] = "head", as_json: AsJson = False
) -> None:
    """Upgrade the database's tables."""
    from stepladder.models import migrate as migrations
    from stepladder.wiring import servers

    with servers.database(load_settings(), lambda _: None) as url:
        migrations.upgrade(url, revision)
        current = migrations.current(url)
    if as_json:
        print_json({"revision": current})
    else:
        console().print(f"the tables are at revision {current}")


def db_url(as_json: AsJson = False) -> None:
    """Print the URL of the configured database, or of a running embedded one: psql "$(stepladder db-url)"."""
    from stepladder.wiring.servers import running_database

    url = running_database(load_settings())
    if as_json:
        print_json({"url": url})
    else:
        print(url)


def psql(context: typer.Context) -> None:
    """Open psql on the database, embedded ones included. Further arguments go to psql, such as -c "SELECT ..."."""
    from stepladder.embedded.postgres import psql_path
    from stepladder.wiring import servers

    with servers.database(load_settings(), lambda _: None) as url:
        command = [str(psql_path()), url, *context.args]
        code = subprocess.run(command, check=False).returncode  # noqa: S603 -- the user's arguments for the user's psql
    raise typer.Exit(code)
