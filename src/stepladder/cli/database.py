"""``stepladder migrate``, ``stepladder db-url`` and ``stepladder psql``."""

from __future__ import annotations

import subprocess
from typing import Annotated

import typer

from stepladder.cli.output import console, print_json
from stepladder.wiring.settings import load_settings

AsJson = Annotated[bool, typer.Option("--json", help="as one JSON document")]


def migrate(
    revision: Annotated[str, typer.Argument(help="revision to bring the tables up to")] = "head",
    as_json: AsJson = False,
) -> None:
    """Bring the database's tables up to date."""
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
    """Print the URL of the database that is set, or of the embedded one while it runs: psql "$(stepladder db-url)"."""
    from stepladder.wiring.servers import running_database

    url = running_database(load_settings())
    if as_json:
        print_json({"url": url})
    else:
        print(url)


def psql(context: typer.Context) -> None:
    """Open psql on the database, an embedded one too; what follows goes to psql, e.g. -c "SELECT ..."."""
    from stepladder.embedded.postgres import psql_path
    from stepladder.wiring import servers

    with servers.database(load_settings(), lambda _: None) as url:
        command = [str(psql_path()), url, *context.args]
        code = subprocess.run(command, check=False).returncode  # noqa: S603 -- the user's own words for the user's own psql
    raise typer.Exit(code)
