"""``stepladder worker``: a process that runs jobs."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Annotated

import typer

from stepladder.cli.options import App, LogLevel, Model
from stepladder.wiring.settings import load_settings


def worker(
    app: App = None,
    model: Model = None,
    concurrency: Annotated[int | None, typer.Option(min=1, help="jobs held at once; default 400")] = None,
    log_level: LogLevel = None,
) -> None:
    """Run jobs until Ctrl-C or SIGTERM, and then finish the turns under way."""
    from stepladder.tasks.worker import WorkerConfig, work
    from stepladder.wiring import servers
    from stepladder.wiring.app import load_kit
    from stepladder.wiring.logs import configure_logs, say

    settings = load_settings(app=app, model=model, concurrency=concurrency, log_level=log_level)
    configure_logs(settings.log_level or "info")
    kit = load_kit(settings.app)
    broker_url = servers.needed_broker(settings)
    with ExitStack() as stack:
        database_url = stack.enter_context(servers.database(settings, say))
        engine_url = stack.enter_context(servers.engine(settings, say))
        code = work(WorkerConfig(database_url, broker_url, engine_url, kit, settings))
    raise typer.Exit(code)
